// How messages between the ranks of a pipeline travel.
#pragma once

#include <memory>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/core/stream.h"
#include "parallel/pipeline/message_info.h"

namespace catena::parallel::pipeline {

// Arrays on their way from one action to another. Those of gradients may be undefined.
struct Parcel {
  Arrays arrays;
  Event ready;  // on another stream than the one that uses them; null: nothing to wait for
};

// What a parcel holds is ready for the current stream of the device.
void wait_for(Parcel& parcel, Device device);

// One message of a group.
struct Message {
  bool is_send = false;
  int from = 0, to = 0;      // ranks of the pipeline
  Parcel* parcel = nullptr;  // to be sent, or filled
  const MessageInfo* info = nullptr;
  bool is_gradient = false;  // of the arrays that want one
};

class Link {
 public:
  virtual ~Link() = default;
  // Before the first message of a step, and after the last one.
  virtual void begin_step() {}
  virtual void end_step() {}
  // Messages that are issued together. Sent parcels are empty afterwards.
  virtual void exchange(std::vector<Message>& group) = 0;
};

// Between devices of this process: sends copy at once, on side streams of the receiving devices.
std::unique_ptr<Link> make_local_link(const std::vector<Device>& devices);
// Between the ranks of a communicator, on its side stream where the device has streams.
std::unique_ptr<Link> make_rank_link(Communicator& comm);

}  // namespace catena::parallel::pipeline
