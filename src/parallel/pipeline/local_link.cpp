// Messages between devices of one process: peer copies beside the computations.
#include <map>
#include <optional>
#include <utility>

#include "array/memory_order.h"
#include "catena/core/backend.h"
#include "catena/core/memory.h"
#include "parallel/pipeline/link.h"
#include "parallel/pipeline/rules.h"

namespace catena::parallel::pipeline {
namespace {

class LocalLink final : public Link {
 public:
  LocalLink(const std::vector<Device>& devices, Mailbox& mailbox)
      : Link(mailbox), devices_(devices) {}

  // Receives find what the sends before them have brought.
  void exchange(const std::vector<Message>& group) override {
    for (const Message& message : group)
      if (message.is_send()) mailbox_.at(other_end(message.action)) = carried(message);
  }

 private:
  using Route = std::pair<int, int>;

  Parcel carried(const Message& message) {
    const Device source = devices_[size_t(message.rank)], target = devices_[size_t(message.peer)];
    const bool beside = source != target && target.is_cuda() && source.is_cuda();
    Parcel sent = std::exchange(mailbox_.at(message.action), {});
    std::optional<StreamScope> scope;
    if (beside) {
      const Stream& side = side_stream({message.rank, message.peer});
      side.wait(sent.ready);
      scope.emplace(side);
    }
    const Moment begin = recorder_ ? Recorder::now(current_stream(target)) : Moment();
    if (source != target) {
      for (Array& a : sent.arrays) a = moved(a, target, beside);
      sent.counted = moved(sent.counted, target, beside);
      sent.ready = beside ? current_stream(target).record() : Event();
    }
    if (!recorder_) return sent;
    const Moment end = Recorder::now(current_stream(target));
    recorder_->message(message.rank, message.action, begin, end);
    recorder_->message(message.peer, other_end(message.action), begin, end);
    return sent;
  }

  static Array moved(const Array& a, Device target, bool beside) {
    return !a.defined() ? a : beside ? pulled(a, target) : a.to(target);
  }

  // A copy on the target's current stream. Unlike Array::to it lets the stream of the source's
  // device go on: nobody writes what was sent.
  static Array pulled(const Array& a, Device target) {
    if (!a.is_dense()) {
      const Array dense = a.copy('K');
      current_stream(target).wait(current_stream(a.device()));
      return pulled(dense, target);
    }
    const Array result = Array::uninitialized(a.shape(), a.dtype(), target, a.order());
    if (a.nbytes() == 0) return result;
    const Stream stream = current_stream(target);
    backend(target.type())
        .copy_bytes(result.raw_data(), target, a.raw_data(), a.device(), size_t(a.nbytes()),
                    stream);
    record_use(*a.storage(), stream);
    return result;
  }

  // Each route has its own, so that a message does not wait for one that is made later elsewhere.
  const Stream& side_stream(const Route& route) {
    Stream& stream = streams_[route];
    if (!stream.defined()) stream = Stream::create(devices_[size_t(route.second)], -5);
    return stream;
  }

  std::vector<Device> devices_;
  std::map<Route, Stream> streams_;  // between GPUs
};

}  // namespace

std::unique_ptr<Link> make_local_link(const std::vector<Device>& devices, Mailbox& mailbox) {
  return std::make_unique<LocalLink>(devices, mailbox);
}

}  // namespace catena::parallel::pipeline
