// Streams (ordered queues of device work) and events (points in them).
//
// Each device has one default stream of ours, shared by all threads; a thread's current stream of a
// device starts there. On the CPU work is done when the call returns: streams order nothing there
// and events are always complete. Streams are cheap handles; copies share the stream.
#pragma once

#include <functional>
#include <string>

#include "catena/core/device.h"
#include "catena/core/intrusive.h"

namespace catena {

class Event;

// Owned by the backend that made it.
struct StreamState : RefCounted {
  Device device;
  void* native = nullptr;   // cudaStream_t; null on the CPU
  bool is_default = false;  // default streams live as long as the process
  static void destroy(StreamState* state);
};

// What Stream::create makes.
struct StreamOptions {
  int priority = 0;          // a lower number is served first (CUDA's convention); clamped
  bool non_blocking = true;  // false: its work and that of the legacy stream wait for each other
};

// A handle of an ordered queue of device work. Thread safe, as the queue itself is.
class Stream {
 public:
  // Undefined: it may be assigned, compared and asked whether it is defined(); anything else is a
  // ValueError.
  Stream() = default;
  explicit Stream(StreamState* state) : state_(state) {}
  // A new stream of the device.
  static Stream create(Device device, int priority = 0);
  static Stream create(Device device, const StreamOptions& options);
  static Stream default_of(Device device);
  // CUDA's legacy stream of the device. Other streams of ours do not order with it: join by wait().
  static Stream null(Device device);
  // A stream of the calling thread's own, which lives as long as the thread. As CUDA's
  // (cudaStreamPerThread), it and the legacy stream wait for each other.
  static Stream per_thread(Device device);
  // Wraps a foreign cudaStream_t (null: the legacy stream) that the caller keeps alive, also while
  // memory that was used on it is not free yet. Equal streams give equal handles.
  static Stream wrap(Device device, void* native);

  // The device and the cudaStream_t (null on the CPU); the handle's state, null when undefined.
  Device device() const { return known("Stream::device").device; }
  void* native() const { return known("Stream::native").native; }
  StreamState* state() const { return state_.get(); }
  bool defined() const { return bool(state_); }
  // Makes it the calling thread's current stream of its device for good; StreamScope does so for a
  // scope, and Stream::default_of(device).use() undoes it.
  void use() const;

  void synchronize() const;               // host waits
  bool query() const;                     // true when all work is done
  bool done() const { return query(); }   // the same in the words of CuPy
  void wait(const Event& event) const;    // later work of this stream waits on the device
  void wait(const Stream& other) const;   // waits for what the other stream holds now
  Event record() const;                   // a new event after the work queued so far
  void record(const Event& event) const;  // the same with a given event
  // Calls back when the work queued so far is done, or failed: `error` then has the driver's text.
  // Runs on a thread of the driver (on the CPU at once, by the caller); it must not use the device
  // nor throw, and work queued later waits for it. Cannot be captured.
  using Callback = std::function<void(const Stream& stream, const std::string& error)>;
  void add_callback(Callback callback) const;
  // The same without the two arguments: not called when the device failed. May be captured, and
  // then runs with every replay.
  void launch_host_func(std::function<void()> function) const;
  friend bool operator==(const Stream& a, const Stream& b) { return a.state_ == b.state_; }

 private:
  friend class Event;
  friend class StreamScope;
  const StreamState& known(const char* who) const {
    if (!state_) [[unlikely]]
      fail_undefined(who);
    return *state_;
  }
  [[noreturn, gnu::cold]] static void fail_undefined(const char* who);

  IntrusivePtr<StreamState> state_;
};

// Current stream of the calling thread on a device.
Stream current_stream(Device device);
Stream current_stream();  // of current_device()
// The raw cudaStream_t of it, the cheapest form for launches.
void* current_native_stream(Device device);

// Makes a stream the thread's current one on its device for a scope. (It does not change the
// current device.)
class StreamScope {
 public:
  explicit StreamScope(const Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Device device_;
  Stream previous_;
};

// Owned by the backend that made it.
struct EventState : RefCounted {
  Device device;
  void* native = nullptr;
  bool timing = false;
  static void destroy(EventState* state);
};

// What Event::create makes.
struct EventOptions {
  bool timing = false;        // elapsed_ms works; without it recording is cheaper
  bool blocking = false;      // synchronize() sleeps instead of polling
  bool interprocess = false;  // another process may open it; excludes timing
};

// A point in the work of a stream, for which hosts and other streams can wait. Copies share it.
class Event {
 public:
  Event() = default;  // null counts as complete
  explicit Event(EventState* state) : state_(state) {}
  // A new event of the device; recording is cheaper without timing.
  static Event create(Device device, bool timing = false);
  // ValueError for interprocess with timing.
  static Event create(Device device, const EventOptions& options);

  void record(const Stream& stream) const;  // marks the work queued on the stream so far
  void record() const;                      // on the thread's current stream of its device
  void synchronize() const;                 // host waits for that work
  bool query() const;                       // true when it is done, or nothing was recorded
  bool done() const { return query(); }     // the same in the words of CuPy
  // Milliseconds between two recorded timing events of one device. ValueError for events without
  // timing.
  static double elapsed_ms(const Event& start, const Event& stop);
  EventState* state() const { return state_.get(); }
  explicit operator bool() const { return bool(state_); }

 private:
  IntrusivePtr<EventState> state_;
};

// Event::elapsed_ms in the words of CuPy.
inline double get_elapsed_time(const Event& start, const Event& stop) {
  return Event::elapsed_ms(start, stop);
}

}  // namespace catena
