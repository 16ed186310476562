// Messages between ranks: groups of sends and receives of a communicator.
#include <algorithm>
#include <optional>
#include <utility>

#include "array/memory_order.h"
#include "catena/core/graph.h"
#include "parallel/pipeline/link.h"

namespace catena::parallel::pipeline {
namespace {

// An array as the transport takes it, contiguous.
struct Piece {
  bool is_send;
  int peer;
  Array flat;
};

class RankLink final : public Link {
 public:
  RankLink(Communicator& comm, bool receives_wait)
      : comm_(comm), device_(comm.device()), receives_wait_(receives_wait) {}

  // The side stream takes part in a capture, and ends it joined to the current one.
  void begin_step() override {
    if (device_.is_cuda()) comm_.side_stream().wait(current_stream(device_));
  }
  void end_step() override {
    if (device_.is_cuda()) current_stream(device_).wait(comm_.side_stream());
  }

  void exchange(std::vector<Message>& group) override {
    const std::vector<Piece> pieces = pieces_of(group);
    begin_ = {};
    if (recorder_) begin_ = Recorder::now(wire());
    if (!pieces.empty()) device_.is_cuda() ? issue_beside(group, pieces) : issue(pieces);
    const bool receives =
        std::any_of(group.begin(), group.end(), [](const Message& m) { return !m.is_send; });
    const Event done =
        device_.is_cuda() && receives && !pieces.empty() ? comm_.side_stream().record() : Event();
    if (recorder_) {
      const Moment end = Recorder::now(wire());
      for (const Message& message : group)
        recorder_->message(comm_.rank(), message.action, begin_, end);
    }
    for (Message& message : group) {
      if (message.is_send)
        *message.parcel = {};
      else
        message.parcel->ready = done;
    }
  }

 private:
  Stream wire() { return device_.is_cuda() ? comm_.side_stream() : current_stream(device_); }

  std::vector<Piece> pieces_of(std::vector<Message>& group) {
    std::vector<Piece> pieces;
    lays_out_ = false;
    for (Message& message : group) {
      const MessageInfo& info = *message.info;
      if (!message.is_send) message.parcel->arrays.assign(info.size(), Array());
      for (size_t i = 0; i < info.size(); ++i) {
        if (message.is_gradient && !info[i].wants_gradient) continue;
        Array& array = message.parcel->arrays[i];
        if (!message.is_send) array = room_for(info[i]);
        if (array.size() == 0) continue;
        const Array flat = in_order(array, info[i].order);
        lays_out_ |= message.is_send && !flat.is_contiguous();
        pieces.push_back({message.is_send, message.is_send ? message.to : message.from,
                          message.is_send ? flat.contiguous() : flat});
      }
    }
    return pieces;
  }

  // Memory of the side stream, so that nothing waits for what is computed now. A graph has its own
  // memory, which belongs to the current stream.
  Array room_for(const ArrayInfo& info) {
    std::optional<StreamScope> scope;
    if (device_.is_cuda() && !cuda::is_capturing(device_)) scope.emplace(comm_.side_stream());
    return info.uninitialized(device_);
  }

  void issue(const std::vector<Piece>& pieces) {
    comm_.group([&] {
      for (const Piece& piece : pieces)
        piece.is_send ? comm_.send(piece.flat, piece.peer) : comm_.recv(piece.flat, piece.peer);
    });
  }

  // Sends wait for what makes them, receives for nothing unless they are to.
  void issue_beside(const std::vector<Message>& group, const std::vector<Piece>& pieces) {
    const Stream side = comm_.side_stream();
    const bool receives =
        std::any_of(pieces.begin(), pieces.end(), [](const Piece& p) { return !p.is_send; });
    if (lays_out_ || (receives && receives_wait_) || cuda::is_capturing(device_))
      side.wait(current_stream(device_));
    for (const Message& message : group)
      if (message.is_send) side.wait(message.parcel->ready);
    if (recorder_) begin_ = Recorder::now(side);
    const StreamScope scope(side);
    comm_.group([&] {
      for (const Piece& piece : pieces)
        piece.is_send ? comm_.send_async(piece.flat, piece.peer, side)
                      : comm_.recv_async(piece.flat, piece.peer, side);
    });
  }

  Communicator& comm_;
  Device device_;
  bool receives_wait_;
  Moment begin_;           // of the group that is issued, if it is recorded
  bool lays_out_ = false;  // a send of the group is laid out anew, on the current stream
};

}  // namespace

std::unique_ptr<Link> make_rank_link(Communicator& comm, bool receives_wait) {
  return std::make_unique<RankLink>(comm, receives_wait);
}

}  // namespace catena::parallel::pipeline
