#include "watchdog.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <thread>
#include <vector>

#include "catena/core/wait_hook.h"

namespace catena::comm::nccl {

namespace {

constexpr std::chrono::milliseconds kPeriod{100};

struct Watched {
  std::shared_ptr<Core> core;
  Clock::time_point busy_since{};  // when its mutex was first found taken
  bool busy = false;
};

class Watchdog {
 public:
  // Never destroyed: the thread runs until the process ends.
  static Watchdog& get() {
    static auto* one = new Watchdog;
    return *one;
  }

  void add(const std::shared_ptr<Core>& core) {
    std::lock_guard lock(mutex_);
    cores_.push_back({core});
    if (running_) return;
    running_ = true;
    std::thread([this] { run(); }).detach();
  }

  void remove(const std::shared_ptr<Core>& core) {
    std::lock_guard lock(mutex_);
    std::erase_if(cores_, [&](const Watched& w) { return w.core == core; });
  }

  void on_host_wait(Device device, WaitPhase phase) {
    if (!device.is_cuda()) return;
    const auto cores = cores_on(device.index());
    // All are marked before one of them throws: the wait may go on in spite of it.
    for (const std::shared_ptr<Core>& core : cores) {
      if (phase != WaitPhase::kBegin || core->failed()) continue;
      if (const auto lock = lock_soon(*core)) core->flush();
    }
    for (const std::shared_ptr<Core>& core : cores) {
      core->throw_if_failed();
      if (phase != WaitPhase::kDone) continue;
      if (const auto lock = lock_soon(*core)) core->verify();
      core->throw_if_failed();
    }
  }

 private:
  // The watchdog has it for microseconds, or until it has found out what is wrong; the rank's own
  // thread, which is inside NCCL then, perhaps until another rank comes: a host wait must not wait
  // for that, and gets no lock.
  static std::unique_lock<std::mutex> lock_soon(Core& core) {
    std::unique_lock lock(core.mutex, std::try_to_lock);
    for (int attempt = 0; !lock && attempt < 20; attempt += core.polled ? 0 : 1) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      if (lock.try_lock()) break;
    }
    return lock;
  }

  // Those of this thread too: what it waits for may come from the communicator's GPU.
  boost::container::small_vector<std::shared_ptr<Core>, 4> cores_on(int device) {
    boost::container::small_vector<std::shared_ptr<Core>, 4> found;
    std::lock_guard lock(mutex_);
    for (const Watched& w : cores_)
      if (w.core->device() == device || w.core->called_by_this_thread()) found.push_back(w.core);
    return found;
  }

  void run() {
    const RelaxedMode relaxed;  // for event queries
    for (;;) {
      std::this_thread::sleep_for(kPeriod);
      std::lock_guard lock(mutex_);
      for (Watched& w : cores_) poll(w);
    }
  }

  // False where the mutex is taken.
  static bool poll_unless_taken(Core& core) {
    core.polled = true;  // until the mutex is free again: host waits do not give up meanwhile
    const bool was_free = [&] {
      const std::unique_lock lock(core.mutex, std::try_to_lock);
      if (lock) core.poll();
      return lock.owns_lock();
    }();
    core.polled = false;
    return was_free;
  }

  static void poll(Watched& w) {
    if (cudaSetDevice(w.core->device()) != cudaSuccess) return;  // the process is ending
    if (poll_unless_taken(*w.core)) {
      w.busy = false;
      return;
    }
    if (!w.busy) {
      w.busy = true;
      w.busy_since = Clock::now();
    }
    // Inside NCCL, waiting for another rank: only an abort gets it out.
    w.core->poll_while_in_nccl(seconds_since(w.busy_since));
  }

  std::mutex mutex_;
  std::vector<Watched> cores_;
  bool running_ = false;
};

}  // namespace

void watch(const std::shared_ptr<Core>& core) { Watchdog::get().add(core); }
void unwatch(const std::shared_ptr<Core>& core) { Watchdog::get().remove(core); }

void install_wait_hook() {
  wait_hook().store(
      [](Device device, WaitPhase phase) { Watchdog::get().on_host_wait(device, phase); });
}

}  // namespace catena::comm::nccl
