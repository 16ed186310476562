// What ranks that are threads give, or get when one of them fails or differs.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "catena/comm/factory.h"

namespace catena::testing {

// What fn gives on each of so many ranks.
template <class Fn>
auto of_ranks(int ranks, const Fn& fn) {
  std::vector<std::invoke_result_t<Fn, Communicator&>> results(static_cast<size_t>(ranks));
  comm::run_threads(ranks, [&](Communicator& comm) { results[size_t(comm.rank())] = fn(comm); });
  return results;
}

// What a rank does that has caught its error: it leaves, or goes on as if nothing had happened, at
// least until all others have ended.
enum class AfterError { kLeave, kGoOn };

// The texts of the ranks' errors, "no error" for those without, in less than 20 s.
inline std::vector<std::string> errors_of_ranks(AfterError after, int ranks,
                                                const std::function<void(Communicator&)>& body) {
  std::vector<std::string> texts(size_t(ranks), "no error");
  std::atomic<int> ended = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return (std::chrono::steady_clock::now() - start) / std::chrono::seconds(1);
  };
  try {
    comm::run_threads(ranks,
                      [&](Communicator& comm) {
                        try {
                          body(comm);
                        } catch (const std::exception& error) {
                          texts[size_t(comm.rank())] = error.what();
                          if (after == AfterError::kLeave) throw;
                        }
                        ++ended;
                        while (after == AfterError::kGoOn && ended < ranks && seconds() < 20)
                          std::this_thread::yield();
                      },
                      {.timeout = 30});
  } catch (const std::exception&) {
  }
  EXPECT_LT(seconds(), 20);
  return texts;
}

}  // namespace catena::testing
