// Messages between devices of one process: peer copies beside the computations.
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "array/memory_order.h"
#include "catena/core/backend.h"
#include "catena/core/memory.h"
#include "parallel/pipeline/link.h"

namespace catena::parallel::pipeline {

void wait_for(Parcel& parcel, Device device) {
  if (!parcel.ready) return;
  const Stream stream = current_stream(device);
  stream.wait(parcel.ready);
  for (const Array& a : parcel.arrays)
    if (a.defined()) record_use(*a.storage(), stream);
  parcel.ready = {};
}

namespace {

class LocalLink final : public Link {
 public:
  explicit LocalLink(const std::vector<Device>& devices) : devices_(devices) {}

  void begin_step() override { queues_.clear(); }

  void exchange(std::vector<Message>& group) override {
    for (Message& message : group)
      if (message.is_send) send(message);
    for (Message& message : group)
      if (!message.is_send) receive(message);
  }

 private:
  using Route = std::pair<int, int>;

  void send(const Message& message) {
    const Device target = devices_[size_t(message.to)];
    Parcel arrived;
    Moment begin;
    if (devices_[size_t(message.from)] == target) {
      if (recorder_) begin = Recorder::now(current_stream(target));
      arrived = std::move(*message.parcel);
      if (recorder_) note(message, begin, begin);
    } else {
      const bool beside = target.is_cuda() && devices_[size_t(message.from)].is_cuda();
      std::optional<StreamScope> scope;
      if (beside) {
        const Stream& side = side_stream({message.from, message.to});
        side.wait(message.parcel->ready);
        scope.emplace(side);
      }
      if (recorder_) begin = Recorder::now(current_stream(target));
      for (const Array& a : message.parcel->arrays)
        arrived.arrays.push_back(!a.defined() ? a : beside ? pulled(a, target) : a.to(target));
      if (beside) arrived.ready = current_stream(target).record();
      if (recorder_) note(message, begin, Recorder::now(current_stream(target)));
    }
    *message.parcel = {};
    queues_[{message.from, message.to}].push_back(std::move(arrived));
  }

  void note(const Message& message, const Moment& begin, const Moment& end) {
    recorder_->message(message.from, message.action, begin, end);
    recorder_->message(message.to, other_end(message.action), begin, end);
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

  void receive(const Message& message) {
    std::deque<Parcel>& queue = queues_[{message.from, message.to}];
    CATENA_CHECK(ValueError, !queue.empty(), "Pipeline: rank ", message.to,
                 " of the schedule receives from rank ", message.from,
                 " what has not been sent; check(schedule) says why");
    *message.parcel = std::move(queue.front());
    queue.pop_front();
  }

  // Each route has its own, so that a message does not wait for one that is made later elsewhere.
  const Stream& side_stream(const Route& route) {
    Stream& stream = streams_[route];
    if (!stream.defined()) stream = Stream::create(devices_[size_t(route.second)], -5);
    return stream;
  }

  std::vector<Device> devices_;
  std::map<Route, Stream> streams_;  // between GPUs
  std::map<Route, std::deque<Parcel>> queues_;
};

}  // namespace

std::unique_ptr<Link> make_local_link(const std::vector<Device>& devices) {
  return std::make_unique<LocalLink>(devices);
}

}  // namespace catena::parallel::pipeline
