// An NCCL communicator that cannot hang the host: non-blocking, polled, watched, aborted.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

#include "nccl_calls.h"

namespace catena::comm::nccl {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Everything but construction is done under `mutex`, unless said otherwise.
class Core {
 public:
  Core(int device, double timeout) : device_(device), timeout_(timeout) {}
  ~Core();
  Core(const Core&) = delete;

  std::mutex mutex;
  ncclComm_t comm = nullptr;
  int device() const { return device_; }
  double timeout() const { return timeout_; }
  void set_owner(const Communicator* owner) { owner_ = owner; }

  // Returns when NCCL has taken in what was asked for. Throws CommError after an error, the
  // deadline or when other ranks' records say that it cannot end; the communicator is then aborted.
  // `child`: another communicator that is being made by the call.
  void finish(ncclResult_t code, const char* call, double timeout, ncclComm_t* child = nullptr);
  void finish(ncclResult_t code, const char* call) {
    // The usual case costs one comparison.
    if (code != ncclSuccess) finish(code, call, timeout_);
  }

  // Notes that work was queued on the stream, to be watched; not while the stream records a graph.
  // Cheap: an event is recorded at most every 100 us, what came later is marked by flush().
  void mark(const Stream& stream);
  // Before the host waits: marks what mark() left out.
  void flush();
  // Waits for all that was marked.
  void drain();

  // One look by the watchdog.
  void look();

  // Gives up: the text is what every later call throws.
  void fail(const std::string& text);
  // Without the mutex.
  void throw_if_failed() const;
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  std::string failure() const;
  // After a host wait: calls made since the last time must agree with the other ranks'.
  void verify();
  void close();

 private:
  // The last marked point of one stream.
  struct Point {
    Stream stream;  // kept alive, so that its event may be recorded later
    cudaEvent_t event = nullptr;
    bool dirty = false;  // work came after the event was recorded
    Clock::time_point recorded;
    uint64_t number = 0;  // of the mark; 0: never used
    bool pending = false;
    uint64_t seen = 0;  // number at the last look
    Clock::time_point since;
    double next_look = 0;
  };
  Point* find_point(const Stream& stream);
  Point& make_point(const Stream& stream);
  bool record(Point& point);
  void look_at(Point& point);
  std::string problem(double waited, double timeout, const char* doing, double& next_look) const;

  const int device_;
  const double timeout_;
  const Communicator* owner_ = nullptr;
  std::array<Point, 4> points_;
  uint64_t marks_ = 0;
  bool capturing_ = false;
  uint64_t verified_ = 0;
  std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  std::string failure_;
};

}  // namespace catena::comm::nccl
