// Streams (ordered queues of device work) and events (points in them).
//
// Each device has one default stream of ours, shared by all threads; a thread's current stream of a
// device starts there. On the CPU work is done when the call returns: streams order nothing there
// and events are always complete. Streams are cheap handles; copies share the stream.
#pragma once

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

class Stream {
 public:
  Stream() = default;  // null: only assignable
  explicit Stream(StreamState* state) : state_(state) {}
  // A new stream of the device; a lower priority number is served first (CUDA's convention).
  static Stream create(Device device, int priority = 0);
  static Stream default_of(Device device);
  // Wraps a foreign cudaStream_t (null: the legacy stream) that the caller keeps alive.
  static Stream wrap(Device device, void* native);

  Device device() const { return state_->device; }
  void* native() const { return state_->native; }
  StreamState* state() const { return state_.get(); }

  void synchronize() const;              // host waits
  bool query() const;                    // true when all work is done
  void wait(const Event& event) const;   // later work of this stream waits on the device
  void wait(const Stream& other) const;  // waits for what the other stream holds now
  Event record() const;                  // event after the work queued so far
  friend bool operator==(const Stream& a, const Stream& b) { return a.state_ == b.state_; }

 private:
  IntrusivePtr<StreamState> state_;
};

// Current stream of the calling thread on a device.
Stream current_stream(Device device);
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

struct EventState : RefCounted {
  Device device;
  void* native = nullptr;
  static void destroy(EventState* state);
};

class Event {
 public:
  Event() = default;  // null counts as complete
  explicit Event(EventState* state) : state_(state) {}
  // With timing, elapsed_ms works; without it recording is cheaper.
  static Event create(Device device, bool timing = false);

  void record(const Stream& stream) const;  // stands for the work queued on the stream so far
  void synchronize() const;                 // host waits for that work
  bool query() const;                       // true when it is done, or nothing was recorded
  // Milliseconds between two recorded timing events of one device.
  static double elapsed_ms(const Event& start, const Event& stop);
  EventState* state() const { return state_.get(); }
  explicit operator bool() const { return bool(state_); }

 private:
  IntrusivePtr<EventState> state_;
};

}  // namespace catena
