// Link over which messages between the ranks of a pipeline travel.
#pragma once

#include <memory>
#include <vector>

#include "catena/comm/communicator.h"
#include "parallel/pipeline/mailbox.h"
#include "parallel/pipeline/message_info.h"
#include "parallel/pipeline/recorder.h"

namespace catena::parallel::pipeline {

// One message of a group.
struct Message {
  Action action;
  int rank, peer;           // of the pipeline
  const MessageInfo* info;  // of the results of a stage, or of their gradients
  bool is_send() const { return pipeline::is_send(action.kind); }
};

class Link {
 public:
  virtual ~Link() = default;
  explicit Link(Mailbox& mailbox) : mailbox_(mailbox) {}
  // Before the first message of a step, and after the last one.
  virtual void begin_step() {}
  virtual void end_step() {}
  // Messages that are issued together, from and to the mailbox. Sent parcels are empty afterwards;
  // their arrays must not be written any more.
  virtual void exchange(const std::vector<Message>& group) = 0;
  // Notes when messages are on the wire from now on; null: does not.
  void note_in(Recorder* recorder) { recorder_ = recorder; }

 protected:
  Mailbox& mailbox_;
  Recorder* recorder_ = nullptr;
};

// Between devices of this process: sends copy at once, from one device to another on a side stream
// of the receiving one for each pair. A copy waits for the parcel alone, and no computation of the
// sender waits for the copy.
std::unique_ptr<Link> make_local_link(const std::vector<Device>& devices, Mailbox& mailbox);
// Between the ranks of a communicator, on its side stream where the device has streams.
// Receives wait for the current stream if they are to (PipelineOptions::receives_wait).
std::unique_ptr<Link> make_rank_link(Communicator& comm, Mailbox& mailbox, bool receives_wait);

}  // namespace catena::parallel::pipeline
