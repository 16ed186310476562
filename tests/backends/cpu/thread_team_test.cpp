// The threads of CPU kernels: every piece once, small work on one thread, settings of OpenMP's
// variables, jobs one inside the other, and children of fork().
#include "backends/cpu/runtime/thread_team.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "backends/cpu/matmul/gemm.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/creation.h"
#include "catena/array/linalg.h"
#include "catena/array/reduction.h"
#include "catena/core/config.h"

namespace catena {
namespace {

struct Threads {
  int before = cpu_threads();
  explicit Threads(int count) { set_cpu_threads(count); }
  ~Threads() { set_cpu_threads(before); }
};

TEST(ThreadTeam, EachPieceOnceInManyJobs) {
  for (int round = 0; round < 2000; ++round) {
    const int pieces = 1 + round % 7;
    std::vector<std::atomic<int>> seen(size_t(pieces) * 3);
    host::parallel_for(int64_t(seen.size()), pieces, [&](int64_t i) { ++seen[size_t(i)]; });
    for (const auto& count : seen) ASSERT_EQ(count, 1) << "round " << round;
  }
}

TEST(ThreadTeam, JobsInsideOfJobsStayOnTheirThread) {
  EXPECT_FALSE(host::in_parallel());
  std::atomic<int> strangers{0}, calls{0};
  host::parallel_for(4, 4, [&](int64_t) {
    const auto self = std::this_thread::get_id();
    EXPECT_TRUE(host::in_parallel());
    EXPECT_EQ(host::threads_for(int64_t{1} << 40), 1);
    host::parallel_for(8, 8, [&](int64_t) {
      ++calls;
      if (std::this_thread::get_id() != self) ++strangers;
    });
  });
  EXPECT_EQ(calls, 32);
  EXPECT_EQ(strangers, 0);
  EXPECT_FALSE(host::in_parallel());
}

TEST(ThreadTeam, EachCallingThreadHasItsOwn) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> total{0};
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round)
        host::parallel_for(10, 3, [&](int64_t i) { total += i; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 200 * 45);
}

// Products of 100 x 64 x 64 used to start threads that waited for each other.
TEST(ThreadTeam, SmallProductsStartNoThread) {
  const Threads four(4);
  std::thread([] {
    const Array a = ones({100, 64}, dtype::float32), b = ones({64, 64}, dtype::float32);
    EXPECT_EQ(matmul(a, b)(0, 0).item<float>(), 64);
    EXPECT_EQ(host::team_workers(), 0);
    const Array large = ones({256, 256}, dtype::float32);
    EXPECT_EQ(matmul(large, large)(0, 0).item<float>(), 256);
    EXPECT_GT(host::team_workers(), 0);
  }).join();
}

TEST(ThreadTeam, PartsOfProducts) {
  EXPECT_EQ(host::parts_of_product(100, 64, 64, 32, 8).count(), 1);
  EXPECT_EQ(host::parts_of_product(1024, 1024, 1024, 32, 1).count(), 1);
  EXPECT_EQ(host::parts_of_product(1024, 1024, 1024, 32, 8).count(), 8);
  EXPECT_EQ(host::parts_of_product(100, 10, 1000, 32, 8).count(), 2);
  EXPECT_EQ(host::parts_of_product(4, 100000, 64, 32, 2).columns, 2);
  EXPECT_EQ(host::parts_of_product(100000, 4, 64, 32, 2).rows, 2);
  EXPECT_LE(host::parts_of_product(128, 128, 128, 32, 64).count(), 5);
}

TEST(ThreadTeam, VariablesOfOpenMpSetTheWaiting) {
  const int64_t usual = host::spins_before_sleep(nullptr, nullptr);
  EXPECT_GT(usual, 0);
  EXPECT_LE(usual, 10000);
  EXPECT_EQ(host::spins_before_sleep("", ""), usual);
  EXPECT_EQ(host::spins_before_sleep("passive", nullptr), 0);
  EXPECT_EQ(host::spins_before_sleep("PASSIVE", nullptr), 0);
  EXPECT_GT(host::spins_before_sleep("active", nullptr), 1000 * usual);
  EXPECT_EQ(host::spins_before_sleep("active", "77"), 77);
  EXPECT_GT(host::spins_before_sleep("passive", "infinity"), 1000 * usual);
  EXPECT_EQ(host::spins_before_sleep(nullptr, "nonsense"), usual);
}

// The child has none of the parent's workers; it must neither wait for them nor count on them.
TEST(ThreadTeam, ForkedChildrenCompute) {
  const Threads three(3);
  const Array a = ones({300, 300}, dtype::float32);
  matmul(a, a);
  ASSERT_GT(host::team_workers(), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    const bool right = sum(matmul(a, a)).item<float>() == 300.f * 300.f * 300.f;
    _exit(right && host::team_workers() > 0 ? 7 : 8);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(sum(matmul(a, a)).item<float>(), 300.f * 300.f * 300.f) << "the parent goes on";
}

}  // namespace
}  // namespace catena
