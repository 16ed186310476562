// Keeps the kernels of one kind in the order of their calls, on whatever streams these are.
#pragma once

#include "nccl_calls.h"

namespace catena::comm::nccl {

class CallOrder {
 public:
  // With `records_ends` the end of each call is recorded, which takes an event; without, only once
  // calls have changed streams.
  explicit CallOrder(bool records_ends = false) : records_ends_(records_ends) {}

  // Around the kernels of a call on `stream`, which waits for the call before, and not for what
  // else the stream of that one holds, if its end was recorded.
  void enter(const Stream& stream);
  void leave(const Stream& stream);
  // Whether a graph holds a call.
  bool captured() const { return captured_; }

 private:
  // The call before.
  struct Last {
    Stream stream;
    Event end;  // empty: not recorded
    unsigned long long capture = 0;
  };
  Last& last_of(unsigned long long capture) { return capture == 0 ? last_ : last_captured_; }

  Last last_, last_captured_;
  bool captured_ = false;
  bool records_ends_;  // calls on one stream need none
};

}  // namespace catena::comm::nccl
