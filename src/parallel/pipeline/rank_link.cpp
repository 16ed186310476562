// Messages between ranks: groups of sends and receives of a communicator.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "array/memory_order.h"
#include "catena/comm/internals.h"
#include "catena/comm/transport.h"
#include "catena/core/graph.h"
#include "parallel/pipeline/link.h"
#include "parallel/pipeline/rules.h"

namespace catena::parallel::pipeline {
namespace {

// An array as the transport takes it, contiguous.
struct Piece {
  bool is_send;
  bool is_laid_out;  // anew, on the current stream
  int peer;
  Array flat;
};

class RankLink final : public Link {
 public:
  RankLink(Communicator& comm, Mailbox& mailbox, bool receives_wait)
      : Link(mailbox),
        comm_(comm),
        device_(comm.device()),
        receives_wait_(receives_wait),
        apart_(device_.is_cuda() && comm::internals(comm).transport().messages_are_independent()) {}

  // The streams take part in a capture, and end it joined to the current one.
  void begin_step() override {
    if (!device_.is_cuda()) return;
    joined_.clear();
    if (!apart_) join(comm_.side_stream());
    for (const auto& [key, wire] : wires_) join(wire);
  }
  void end_step() override {
    for (const Stream& stream : joined_) current_stream(device_).wait(stream);
  }

  void exchange(const std::vector<Message>& group) override {
    std::vector<Piece> pieces;
    for (const Message& message : group) add_pieces(message, pieces);
    Moment begin = now(group);
    if (!pieces.empty()) {
      if (device_.is_cuda()) wait_for_operands(group, pieces);
      if (device_.is_cuda() && recorder_) begin = now(group);
      issue(pieces);
    }
    for (const Message& message : group) {
      const Stream wire = wire_of(message);
      if (recorder_) recorder_->message(comm_.rank(), message.action, begin, Recorder::now(wire));
      Parcel& parcel = mailbox_.at(message.action);
      if (message.is_send())
        parcel = {};
      else
        parcel.ready = device_.is_cuda() && !pieces.empty() ? wire.record() : Event();
    }
  }

 private:
  // Those of one peer and direction have a stream where messages are independent: a receive that
  // waits for its sender keeps no other message waiting.
  Stream wire_of(bool is_send, int peer) {
    if (!device_.is_cuda()) return current_stream(device_);
    if (!apart_) return comm_.side_stream();
    Stream& wire = wires_[{peer, is_send}];
    if (!wire.defined()) wire = Stream::create(device_);
    join(wire);
    return wire;
  }
  Stream wire_of(const Message& message) { return wire_of(message.is_send(), message.peer); }

  // Once in a step.
  void join(const Stream& stream) {
    if (std::find(joined_.begin(), joined_.end(), stream) != joined_.end()) return;
    stream.wait(current_stream(device_));
    joined_.push_back(stream);
  }

  Moment now(const std::vector<Message>& group) {
    return recorder_ && !group.empty() ? Recorder::now(wire_of(group.front())) : Moment();
  }

  void add_pieces(const Message& message, std::vector<Piece>& pieces) {
    const MessageInfo& info = *message.info;
    const bool are_gradients = is_of_gradients(message.action);
    Parcel& parcel = mailbox_.at(message.action);
    if (!message.is_send()) parcel.arrays.assign(info.size(), Array());
    for (size_t i = 0; i < info.size(); ++i) {
      if (are_gradients && !info[i].wants_gradient) continue;
      Array& array = parcel.arrays[i];
      if (!message.is_send()) array = room_for(info[i], message.peer);
      if (array.size() == 0) continue;
      const Array flat = in_order(array, info[i].order);
      const bool laid_out = message.is_send() && !flat.is_contiguous();
      pieces.push_back(
          {message.is_send(), laid_out, message.peer, laid_out ? flat.contiguous() : flat});
    }
    if (are_gradients) add_count(message, pieces);
  }

  // What the loss counted goes along with gradients.
  void add_count(const Message& message, std::vector<Piece>& pieces) {
    const auto wants = [](const ArrayInfo& info) { return info.wants_gradient; };
    if (std::none_of(message.info->begin(), message.info->end(), wants)) return;
    Array& counted = mailbox_.at(message.action).counted;
    if (!message.is_send()) counted = room_for({Dtype::kFloat64, Shape{1}}, message.peer);
    pieces.push_back({message.is_send(), false, message.peer, counted});
  }

  // Memory of the wire, so that nothing waits for what is computed now. A graph has its own memory,
  // which belongs to the current stream.
  Array room_for(const ArrayInfo& info, int peer) {
    std::optional<StreamScope> scope;
    if (device_.is_cuda() && !cuda::is_capturing(device_)) scope.emplace(wire_of(false, peer));
    return info.uninitialized(device_);
  }

  // Sends wait for what makes them, receives for nothing unless they are to.
  void wait_for_operands(const std::vector<Message>& group, const std::vector<Piece>& pieces) {
    const Stream current = current_stream(device_);
    const bool receives_wait = receives_wait_ || cuda::is_capturing(device_);
    for (const Piece& piece : pieces)
      if (piece.is_send ? piece.is_laid_out : receives_wait)
        wire_of(piece.is_send, piece.peer).wait(current);
    for (const Message& message : group)
      if (message.is_send()) wire_of(message).wait(mailbox_.at(message.action).ready);
  }

  void issue(const std::vector<Piece>& pieces) {
    comm_.group([&] {
      for (const Piece& piece : pieces) {
        const Stream wire = wire_of(piece.is_send, piece.peer);
        const StreamScope scope(wire);
        piece.is_send ? comm_.send(piece.flat, piece.peer) : comm_.recv(piece.flat, piece.peer);
      }
    });
  }

  Communicator& comm_;
  Device device_;
  bool receives_wait_;
  bool apart_;                                    // messages are independent of each other
  std::map<std::pair<int, bool>, Stream> wires_;  // by peer and is_send
  std::vector<Stream> joined_;                    // to the current stream, in this step
};

}  // namespace

std::unique_ptr<Link> make_rank_link(Communicator& comm, Mailbox& mailbox, bool receives_wait) {
  return std::make_unique<RankLink>(comm, mailbox, receives_wait);
}

}  // namespace catena::parallel::pipeline
