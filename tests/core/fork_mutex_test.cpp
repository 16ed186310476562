// fork() while other threads hold locks.
#include "catena/core/fork_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "forked_child.h"

namespace catena {
namespace {

using test::forked_child_succeeds;

// Threads that run step(i) until the end of the object.
template <class Step>
class Contention {
 public:
  Contention(int threads, Step step) {
    for (int i = 0; i < threads; ++i)
      threads_.emplace_back([this, step, i] {
        while (!stop_) step(i);
      });
  }
  ~Contention() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST(ForkMutex, IsFreeInAChildAndWhatItProtectsIsWhole) {
  struct Pair {
    ForkMutex mutex;
    int64_t first = 0, second = 0;
  } pair;
  const Contention contention(3, [&](int) {
    const std::lock_guard lock(pair.mutex);
    ++pair.first;
    for (int i = 0; i < 20; ++i) std::this_thread::yield();
    ++pair.second;
  });
  for (int round = 0; round < 100; ++round)
    ASSERT_TRUE(forked_child_succeeds([&] {
      const std::lock_guard lock(pair.mutex);
      return pair.first == pair.second;
    })) << "child "
        << round;
}

// In any order of taking them: threads that hold one may take others while fork() waits.
TEST(ForkMutex, MayBeNested) {
  ForkMutex outer[2], inner;
  RecursiveForkMutex recursive;
  const Contention contention(4, [&](int i) {
    const std::lock_guard first(outer[i % 2]);
    const std::lock_guard second(recursive);
    const std::lock_guard again(recursive);
    const std::lock_guard third(inner);
  });
  for (int round = 0; round < 100; ++round)
    ASSERT_TRUE(forked_child_succeeds([&] {
      return outer[0].try_lock() && outer[1].try_lock() && inner.try_lock() && recursive.try_lock();
    })) << "child "
        << round;
}

TEST(ForkMutex, TryLockOfOneThatIsHeldLeavesForkFree) {
  ForkMutex mutex;
  std::atomic<int> held{0};
  std::thread holder([&] {
    const std::lock_guard lock(mutex);
    held = 1;
    while (held != 2) std::this_thread::yield();
  });
  while (held != 1) std::this_thread::yield();
  EXPECT_FALSE(mutex.try_lock());
  held = 2;
  holder.join();
  EXPECT_TRUE(forked_child_succeeds([&] { return mutex.try_lock(); }));
}

// It cannot wait for threads that may want the lock that it holds.
TEST(ForkMutex, AThreadThatHoldsOneMayFork) {
  ForkMutex mutex;
  const Contention contention(2, [&](int) { const std::lock_guard lock(mutex); });
  const std::lock_guard lock(mutex);
  for (int round = 0; round < 10; ++round)
    ASSERT_TRUE(forked_child_succeeds([&] {
      const ForkScope scope;
      return true;
    })) << "child "
        << round;
}

TEST(ForkMutex, ThreadsMayForkAtOnce) {
  ForkMutex mutex;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 30; ++round)
        failures += !forked_child_succeeds([&] { return mutex.try_lock(); });
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

TEST(ForkScope, KeepsAForkOfAnotherThreadWaiting) {
  std::atomic<int> state{0};
  std::thread worker([&] {
    {
      const ForkScope scope;
      state = 1;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      state = 2;
    }
    while (state != 3) std::this_thread::yield();
  });
  while (state != 1) std::this_thread::yield();
  EXPECT_TRUE(forked_child_succeeds([&] { return state == 2; }));
  state = 3;
  worker.join();
}

}  // namespace
}  // namespace catena
