// The gate between fork() and the scopes of other threads.
#include "catena/core/fork_mutex.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

namespace catena {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLongestWait{10};

// Scopes of the threads that share a counter. Several counters, so that threads with locks of their
// own do not wait for each other's cache lines.
struct alignas(64) Counter {
  std::atomic<int> scopes{0};
};
constexpr unsigned kCounters = 16;

Counter g_scope_counters[kCounters];
std::atomic<bool> g_forking{false};
std::mutex g_fork_mutex;  // of the threads that fork

thread_local int t_depth = 0;
thread_local bool t_forks = false;  // closed the gate

std::atomic<int>& scopes_of_thread() {
  static std::atomic<unsigned> next{0};
  thread_local const unsigned own = next.fetch_add(1, std::memory_order_relaxed) % kCounters;
  return g_scope_counters[own].scopes;
}

// A thread that has just seen the gate closed may still be counted for a moment, and so may one
// that comes now: nobody who is counted for longer came after the gate was closed.
void close_gate() {
  if (t_depth != 0) return;
  g_fork_mutex.lock();
  t_forks = true;
  g_forking.store(true);
  const auto deadline = Clock::now() + kLongestWait;
  for (const Counter& counter : g_scope_counters)
    while (counter.scopes.load() != 0 && Clock::now() < deadline) std::this_thread::yield();
}

void open_gate() {
  g_forking.store(false);
  g_forking.notify_all();
}

void after_fork_in_parent() {
  if (!t_forks) return;
  t_forks = false;
  open_gate();
  g_fork_mutex.unlock();
}

// The only thread. Other threads may have been inside when this one did not wait for them.
void after_fork_in_child() {
  t_forks = false;
  new (&g_fork_mutex) std::mutex;
  for (Counter& counter : g_scope_counters) counter.scopes.store(0);
  if (t_depth != 0) scopes_of_thread().store(1);
  open_gate();
}

[[maybe_unused]] const int registered =
    pthread_atfork(&close_gate, &after_fork_in_parent, &after_fork_in_child);

}  // namespace

void ForkScope::enter() noexcept {
  if (t_depth++ != 0) return;
  std::atomic<int>& scopes = scopes_of_thread();
  scopes.fetch_add(1);
  while (g_forking.load() && !t_forks) {
    scopes.fetch_sub(1);
    g_forking.wait(true);
    scopes.fetch_add(1);
  }
}

void ForkScope::leave() noexcept {
  if (--t_depth == 0) scopes_of_thread().fetch_sub(1, std::memory_order_release);
}

}  // namespace catena
