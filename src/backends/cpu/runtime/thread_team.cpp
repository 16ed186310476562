#include "backends/cpu/runtime/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

// Defined if the program uses OpenMP. The library does not need it.
extern "C" int omp_in_parallel() __attribute__((weak));

namespace catena::host {

namespace {

void pause() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

// Counts the fork() calls of this process. Workers started before a fork exist in the parent only.
std::atomic<int> forks{0};

int available_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

thread_local bool inside = false;

// What the workers of a team share. A job is open while its next piece is less than its number of
// pieces. All three numbers are in one word, so no worker can take a piece of an ended job and run
// it for the next one.
class Team {
 public:
  ~Team() {
    stop_.store(true);
    round_.fetch_add(1);
    round_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void run(int pieces, void (*piece)(void*, int), void* context) {
    start_workers(pieces - 1);
    piece_.store(piece, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    left_.store(pieces, std::memory_order_relaxed);
    job_.store(pack(++number_, pieces, 0), std::memory_order_release);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    take_pieces();
    for (int64_t i = 0; left_.load(std::memory_order_acquire) != 0 && i < spins_; ++i) pause();
    for (int left; (left = left_.load(std::memory_order_acquire)) != 0;) left_.wait(left);
  }

  int workers() const { return int(workers_.size()); }

 private:
  static uint64_t pack(uint32_t number, int pieces, int next) {
    return uint64_t(number) << 32 | uint64_t(pieces) << 16 | uint64_t(next);
  }

  void start_workers(int count) {
    try {
      while (workers() < count) {
        workers_.emplace_back([this, round = round_.load()] { work(round); });
        if (workers() + 1 > cores_) spins_ = std::min<int64_t>(spins_, kCrowdedSpins);
      }
    } catch (const std::system_error&) {
      // No more threads can be started: the existing ones take more pieces.
    }
  }

  void work(uint32_t round) {
    inside = true;
    while (!stop_.load(std::memory_order_relaxed)) {
      const int64_t limit = spins_.load(std::memory_order_relaxed);
      for (int64_t i = 0; round_.load(std::memory_order_acquire) == round && i < limit; ++i)
        pause();
      round_.wait(round, std::memory_order_acquire);
      round = round_.load(std::memory_order_acquire);
      take_pieces();
    }
  }

  void take_pieces() {
    uint64_t job = job_.load(std::memory_order_acquire);
    while (true) {
      const int pieces = int(job >> 16 & 0xffff), next = int(job & 0xffff);
      if (next >= pieces) return;
      const auto piece = piece_.load(std::memory_order_relaxed);
      void* const context = context_.load(std::memory_order_relaxed);
      if (!job_.compare_exchange_weak(job, job + 1, std::memory_order_acq_rel,
                                      std::memory_order_acquire))
        continue;
      piece(context, next);
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_all();
      job = job_.load(std::memory_order_acquire);
    }
  }

  static constexpr int64_t kCrowdedSpins = 50;

  std::atomic<uint64_t> job_{0};
  std::atomic<void (*)(void*, int)> piece_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<int> left_{0};
  std::atomic<uint32_t> round_{0};  // sleeping workers wait for it to change
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> spins_{
      spins_before_sleep(std::getenv("OMP_WAIT_POLICY"), std::getenv("GOMP_SPINCOUNT"))};
  const int cores_ = available_cores();
  uint32_t number_ = 0;
  std::vector<std::thread> workers_;
};

// The team of a thread; null again while the thread ends.
class Own {
 public:
  ~Own() {
    drop_after_fork();
    delete team_;
    team_ = nullptr;
    ended_ = true;
  }
  Team* get() {
    if (ended_) return nullptr;
    drop_after_fork();
    if (team_ == nullptr) {
      team_ = new Team;
      forks_ = forks.load();
    }
    return team_;
  }
  int workers() {
    drop_after_fork();
    return team_ ? team_->workers() : 0;
  }

 private:
  // The child cannot wait for the parent's workers, so the object is left as it is.
  void drop_after_fork() {
    if (team_ != nullptr && forks_ != forks.load(std::memory_order_relaxed)) team_ = nullptr;
  }
  Team* team_ = nullptr;
  int forks_ = 0;
  bool ended_ = false;
};

Own& own() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  (void)registered;
  thread_local Own instance;
  return instance;
}

}  // namespace

bool in_parallel() { return inside || (omp_in_parallel != nullptr && omp_in_parallel() != 0); }

void run_pieces(int pieces, void (*piece)(void*, int), void* context) {
  Team* const team = pieces > 1 && !inside ? own().get() : nullptr;
  if (team == nullptr) {
    for (int i = 0; i < pieces; ++i) piece(context, i);
    return;
  }
  inside = true;
  team->run(pieces, piece, context);
  inside = false;
}

int team_workers() { return own().workers(); }

int64_t spins_before_sleep(const char* wait_policy, const char* spin_count) {
  constexpr int64_t kUsual = 1000, kActive = int64_t{1} << 33;
  if (spin_count != nullptr && *spin_count != '\0') {
    char* end = nullptr;
    const long long count = std::strtoll(spin_count, &end, 10);
    if (end != spin_count && count >= 0) return count;
    const char first = *spin_count | 0x20;
    if (first == 'i') return kActive;  // "infinity", "infinite"
  }
  const std::string_view policy = wait_policy ? wait_policy : "";
  if (policy == "active" || policy == "ACTIVE") return kActive;
  if (policy == "passive" || policy == "PASSIVE") return 0;
  return kUsual;
}

}  // namespace catena::host
