// Children of fork() that must come to their end.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

// Of the address sanitizer's runtime; null without it.
extern "C" [[gnu::weak]] void __asan_init();

namespace catena::test {

// Its allocator has no handlers of fork(): a child hangs if another thread was allocating, and the
// search for leaks of a parent with many children ends in a signal. The objects of tests are not
// compiled for the sanitizer, so that this can only be seen at run time.
inline bool under_address_sanitizer() { return &__asan_init != nullptr; }

// Runs work() in a child. False when the child hangs for ten seconds, is ended by a signal, throws,
// or work() returns false.
template <class Work>
bool forked_child_succeeds(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    bool good = false;
    try {
      good = work();
    } catch (...) {
    }
    _exit(good ? 0 : 1);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace catena::test
