// Memory in which the gradients of buckets are whole while they are made and reduced, where a rank
// keeps a part of them.
#pragma once

#include <cstdint>
#include <vector>

#include "catena/array/array.h"
#include "catena/core/stream.h"

namespace catena::parallel {

// Slots that buckets take in turn, each of the size of the largest, so that a step asks for no
// memory, however far the host is ahead. Whoever writes into a slot does so behind the reduction
// that has read it, for which the stream waits and not the host.
class GradientSlots {
 public:
  // Makes slots of so many bytes, unless they are there.
  void prepare(Device device, int64_t bytes);
  // Memory for the gradients of a bucket that the current stream writes. Undefined where none fits,
  // and where somebody still holds what was in the slot.
  Array take(size_t bucket, int64_t elements, Dtype dtype);
  // The bucket is read until then; null: it was.
  void is_read_until(size_t bucket, const Event& end);

 private:
  struct Slot {
    Array memory;      // bytes
    StoragePtr taken;  // a part of it, which nobody but the slot holds when it is free
    Event end;
    uint64_t capture = 0;  // in which the event was recorded; 0: in none
  };
  Slot& slot_of(size_t bucket) { return slots_[bucket % slots_.size()]; }
  uint64_t current_capture(const Slot& slot) const;

  std::vector<Slot> slots_{2};
};

}  // namespace catena::parallel
