// Locks that a child of fork() finds free, whatever other threads of the parent were doing.
//
// A child has a copy of the thread that forked and of no other. A lock that another thread held at
// that moment would stay locked in the child for ever, and what it protects would be half written.
// So fork() waits until no other thread holds one of these locks, and threads that want one wait
// until fork() is done; a thread that holds one may take others meanwhile. No order among the locks
// is needed for this. What a computation on the CPU may lock is a ForkMutex; locks of GPUs and
// communicators, which do not survive a fork, need not be.
#pragma once

#include <mutex>

namespace catena {

// While one lives, a fork() of another thread waits: for initialisations and calls of libraries
// that hold other locks. Scopes may be nested. A thread that forks inside of one waits for nobody.
// fork() waits for ten seconds at most, should a thread inside of a scope never leave it.
class ForkScope {
 public:
  ForkScope() noexcept { enter(); }
  ~ForkScope() { leave(); }
  ForkScope(const ForkScope&) = delete;
  ForkScope& operator=(const ForkScope&) = delete;

 private:
  template <class Mutex>
  friend class BasicForkMutex;
  static void enter() noexcept;
  static void leave() noexcept;
};

// A mutex of the standard library that is held in a ForkScope. Costs some nanoseconds more.
template <class Mutex>
class BasicForkMutex {
 public:
  void lock() {
    ForkScope::enter();
    mutex_.lock();
  }
  bool try_lock() {
    ForkScope::enter();
    if (mutex_.try_lock()) return true;
    ForkScope::leave();
    return false;
  }
  void unlock() {
    mutex_.unlock();
    ForkScope::leave();
  }

 private:
  Mutex mutex_;
};
// What std::mutex and std::recursive_mutex are to programs that do not fork.
using ForkMutex = BasicForkMutex<std::mutex>;
using RecursiveForkMutex = BasicForkMutex<std::recursive_mutex>;

}  // namespace catena
