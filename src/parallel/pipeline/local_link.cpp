// Messages between devices of one process: peer copies beside the computations.
#include <deque>
#include <map>
#include <optional>
#include <utility>

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
    if (devices_[size_t(message.from)] == target) {
      arrived = std::move(*message.parcel);
    } else {
      std::optional<StreamScope> scope;
      if (target.is_cuda()) scope.emplace(side_stream(target));
      for (const Array& a : message.parcel->arrays)
        arrived.arrays.push_back(a.defined() ? a.to(target) : a);
      if (scope) arrived.ready = current_stream(target).record();
    }
    *message.parcel = {};
    queues_[{message.from, message.to}].push_back(std::move(arrived));
  }

  void receive(const Message& message) {
    std::deque<Parcel>& queue = queues_[{message.from, message.to}];
    CATENA_CHECK(ValueError, !queue.empty(), "Pipeline: rank ", message.to,
                 " of the schedule receives from rank ", message.from,
                 " what has not been sent; check(schedule) says why");
    *message.parcel = std::move(queue.front());
    queue.pop_front();
  }

  const Stream& side_stream(Device device) {
    Stream& stream = streams_[device.index()];
    if (!stream.defined()) stream = Stream::create(device, -5);
    return stream;
  }

  std::vector<Device> devices_;
  std::map<int, Stream> streams_;  // of GPUs, by index
  std::map<Route, std::deque<Parcel>> queues_;
};

}  // namespace

std::unique_ptr<Link> make_local_link(const std::vector<Device>& devices) {
  return std::make_unique<LocalLink>(devices);
}

}  // namespace catena::parallel::pipeline
