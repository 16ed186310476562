#include "catena/core/stream.h"

#include "catena/core/backend.h"
#include "catena/core/error.h"

namespace catena {
namespace {

// The thread's current streams; an empty entry means the device's default stream.
thread_local IntrusivePtr<StreamState> t_current[kDeviceTypeCount][kMaxDevices];

StreamState* current_state(Device device) {
  StreamState* state = t_current[static_cast<int>(device.type())][device.index()].get();
  return state ? state : backend(device.type()).default_stream(device.index());
}

}  // namespace

void StreamState::destroy(StreamState* state) {
  if (!state->is_default) backend(state->device.type()).destroy_stream(state);
}

void EventState::destroy(EventState* state) { backend(state->device.type()).destroy_event(state); }

Stream Stream::create(Device device, int priority) {
  require_device(device);
  return Stream(backend(device.type()).create_stream(device.index(), priority));
}

Stream Stream::default_of(Device device) {
  require_device(device);
  return Stream(backend(device.type()).default_stream(device.index()));
}

Stream Stream::wrap(Device device, void* native) {
  require_device(device);
  auto* state = new StreamState;
  state->device = device;
  state->native = native;
  state->is_default = true;  // not ours to destroy; the small object is kept for good
  state->retain();
  return Stream(state);
}

void Stream::synchronize() const { backend(device().type()).synchronize_stream(state()); }
bool Stream::query() const { return backend(device().type()).query_stream(state()); }

void Stream::wait(const Event& event) const {
  if (event) backend(device().type()).stream_wait_event(state(), event.state());
}

void Stream::wait(const Stream& other) const {
  if (other == *this || other.device().is_cpu()) return;
  wait(other.record());
}

Event Stream::record() const {
  Event event = Event::create(device());
  event.record(*this);
  return event;
}

Stream current_stream(Device device) { return Stream(current_state(device)); }
void* current_native_stream(Device device) { return current_state(device)->native; }

StreamScope::StreamScope(const Stream& stream) : device_(stream.device()) {
  auto& slot = t_current[static_cast<int>(device_.type())][device_.index()];
  if (slot) previous_ = Stream(slot.get());
  slot = IntrusivePtr<StreamState>(stream.state());
}

StreamScope::~StreamScope() {
  t_current[static_cast<int>(device_.type())][device_.index()] =
      IntrusivePtr<StreamState>(previous_.state());
}

Event Event::create(Device device, bool timing) {
  return Event(backend(device.type()).create_event(device.index(), timing));
}
void Event::record(const Stream& stream) const {
  backend(stream.device().type()).record_event(state(), stream.state());
}
void Event::synchronize() const {
  if (state_) backend(state_->device.type()).synchronize_event(state());
}
bool Event::query() const { return !state_ || backend(state_->device.type()).query_event(state()); }
double Event::elapsed_ms(const Event& start, const Event& stop) {
  return backend(start.state()->device.type()).elapsed_ms(start.state(), stop.state());
}

}  // namespace catena
