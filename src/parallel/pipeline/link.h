// How messages between the ranks of a pipeline travel.
#pragma once

#include <memory>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/core/stream.h"
#include "parallel/pipeline/message_info.h"
#include "parallel/pipeline/recorder.h"

namespace catena::parallel::pipeline {

// Arrays on their way from one action to another. Those of gradients may be undefined.
struct Parcel {
  Arrays arrays;
  // Of what makes them, where another stream than its own uses them; null: nothing to wait for.
  Event ready;
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
  Action action{};
};

class Link {
 public:
  virtual ~Link() = default;
  // Before the first message of a step, and after the last one.
  virtual void begin_step() {}
  virtual void end_step() {}
  // Messages that are issued together. Sent parcels are empty afterwards; their arrays must not be
  // written any more.
  virtual void exchange(std::vector<Message>& group) = 0;
  // Notes when messages are on the wire from now on; null: no more.
  void note_in(Recorder* recorder) { recorder_ = recorder; }

 protected:
  Recorder* recorder_ = nullptr;
};

// Between devices of this process: sends copy at once, from one device to another on a side stream
// of the receiving one for each pair. A copy waits for the parcel alone, and no computation of the
// sender waits for the copy.
std::unique_ptr<Link> make_local_link(const std::vector<Device>& devices);
// Between the ranks of a communicator, on its side stream where the device has streams.
// Receives wait for the current stream if they are to (PipelineOptions::receives_wait).
std::unique_ptr<Link> make_rank_link(Communicator& comm, bool receives_wait);

}  // namespace catena::parallel::pipeline
