#include "catena/core/stream.h"

#include <array>
#include <map>
#include <mutex>
#include <utility>

#include "catena/core/backend.h"
#include "catena/core/error.h"
#include "catena/core/fork_mutex.h"

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

Stream Stream::create(Device device, const StreamOptions& options) {
  require_device(device);
  Backend& b = backend(device.type());
  return Stream(options.non_blocking ? b.create_stream(device.index(), options.priority)
                                     : b.create_blocking_stream(device.index(), options.priority));
}

Stream Stream::null(Device device) {
  return device.is_cpu() ? default_of(device) : wrap(device, nullptr);
}

Stream Stream::per_thread(Device device) {
  require_device(device);
  if (device.is_cpu()) return default_of(device);
  // Not cudaStreamPerThread: that handle means another stream in each thread, but memory and events
  // that were used on a stream must know it in every thread.
  static thread_local std::array<Stream, kMaxDevices> streams;
  Stream& own = streams[static_cast<size_t>(device.index())];
  if (!own.defined()) own = create(device, StreamOptions{.non_blocking = false});
  return own;
}

Stream Stream::default_of(Device device) {
  require_device(device);
  return Stream(backend(device.type()).default_stream(device.index()));
}

Stream Stream::wrap(Device device, void* native) {
  require_device(device);
  // Kept for good: one small object for each stream that was ever wrapped, however often.
  static ForkMutex mutex;
  static auto& known = *new std::map<std::pair<int, void*>, StreamState*>;
  const std::lock_guard lock(mutex);
  StreamState*& state =
      known[{static_cast<int>(device.type()) * kMaxDevices + device.index(), native}];
  if (!state) {
    state = new StreamState;
    state->device = device;
    state->native = native;
    state->is_default = true;  // not ours to destroy
    state->retain();
  }
  return Stream(state);
}

void Stream::fail_undefined(const char* who) {
  fail<ValueError>(who, ": this stream is undefined; use Stream::create or Stream::default_of");
}

void Stream::synchronize() const {
  backend(known("Stream::synchronize").device.type()).synchronize_stream(state());
}
bool Stream::query() const {
  return backend(known("Stream::query").device.type()).query_stream(state());
}

void Stream::wait(const Event& event) const {
  const Device device = known("Stream::wait").device;
  if (event) backend(device.type()).stream_wait_event(state(), event.state());
}

void Stream::wait(const Stream& other) const {
  known("Stream::wait");
  if (other == *this || other.known("Stream::wait").device.is_cpu()) return;
  wait(other.record());
}

Event Stream::record() const {
  Event event = Event::create(known("Stream::record").device);
  event.record(*this);
  return event;
}

void Stream::record(const Event& event) const {
  known("Stream::record");
  event.record(*this);
}

void Stream::use() const {
  const Device device = known("Stream::use").device;
  t_current[static_cast<int>(device.type())][device.index()] = state_;
}

void Stream::add_callback(Callback callback) const {
  const Device device = known("Stream::add_callback").device;
  CATENA_CHECK(ValueError, bool(callback), "Stream::add_callback: the function is empty");
  backend(device.type()).add_callback(state(), std::move(callback));
}
void Stream::launch_host_func(std::function<void()> function) const {
  const Device device = known("Stream::launch_host_func").device;
  CATENA_CHECK(ValueError, bool(function), "Stream::launch_host_func: the function is empty");
  backend(device.type()).launch_host_func(state(), std::move(function));
}

Stream current_stream() { return current_stream(current_device()); }
Stream current_stream(Device device) { return Stream(current_state(device)); }
void* current_native_stream(Device device) { return current_state(device)->native; }

StreamScope::StreamScope(const Stream& stream) : device_(stream.known("StreamScope").device) {
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
Event Event::create(Device device, const EventOptions& options) {
  CATENA_CHECK(ValueError, !(options.interprocess && options.timing),
               "Event::create: an interprocess event cannot have timing; create it without");
  require_device(device);
  if (!options.blocking && !options.interprocess) return create(device, options.timing);
  return Event(backend(device.type()).create_event_with(device.index(), options));
}
void Event::record() const {
  CATENA_CHECK(ValueError, bool(state_), "Event::record: this event is empty; use Event::create");
  record(current_stream(state_->device));
}
void Event::record(const Stream& stream) const {
  CATENA_CHECK(ValueError, bool(state_), "Event::record: this event is empty; use Event::create");
  backend(stream.known("Event::record").device.type()).record_event(state(), stream.state());
}
void Event::synchronize() const {
  if (state_) backend(state_->device.type()).synchronize_event(state());
}
bool Event::query() const { return !state_ || backend(state_->device.type()).query_event(state()); }
double Event::elapsed_ms(const Event& start, const Event& stop) {
  CATENA_CHECK(ValueError, start && stop && start.state()->timing && stop.state()->timing,
               "Event::elapsed_ms: both events must have been made with timing");
  CATENA_CHECK(DeviceError, start.state()->device == stop.state()->device,
               "Event::elapsed_ms: events of ", start.state()->device, " and ",
               stop.state()->device);
  return backend(start.state()->device.type()).elapsed_ms(start.state(), stop.state());
}

}  // namespace catena
