// Comparison of calls beside the data path, as nccl uses it: a transport that compares nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "comm/loose.h"
#include "comm/suite.h"

namespace catena {
namespace {

using comm::Reduction;
using comm_suite::holds;
using comm_suite::run_loose;
using comm_suite::thrown_by;

TEST(OutOfBand, EqualCallsPass) {
  run_loose(4, [](Communicator& comm, Communicator& control) {
    for (int i = 0; i < 3000; ++i) comm.all_reduce(comm_suite::make(comm, {2}, Dtype::kFloat32, 0));
    comm.check();
    EXPECT_EQ(internals(comm).find_difference(), "");
    control.barrier();
  });
}

TEST(OutOfBand, CallsThatAnotherRankHasYetToMakeAreNotCompared) {
  run_loose(2, [](Communicator& comm, Communicator& control) {
    const Array x = comm_suite::make(comm, {2}, Dtype::kFloat32, 0);
    for (int i = 0; i < 2; ++i) comm.all_reduce(x);
    control.barrier();
    EXPECT_EQ(internals(comm).find_difference(), "");
    EXPECT_TRUE(internals(comm).is_compared());
    control.barrier();
    if (comm.rank() == 0) {
      comm.all_reduce(x);
      EXPECT_EQ(internals(comm).find_difference(), "");
      EXPECT_FALSE(internals(comm).is_compared());
    }
    control.barrier();
    if (comm.rank() == 1) comm.all_reduce(x, Reduction::kMax);
    control.barrier();
    EXPECT_TRUE(holds(internals(comm).find_difference(), "call #3"));
    EXPECT_FALSE(internals(comm).is_compared());
    control.barrier();
  });
}

TEST(OutOfBand, DifferentReductionIsNamedByCheck) {
  run_loose(4, [](Communicator& comm, Communicator& control) {
    const Array x = comm_suite::make(comm, {2}, Dtype::kFloat32, 0);
    for (int i = 0; i < 100; ++i) comm.all_reduce(x);
    comm.all_reduce(x, comm.rank() == 2 ? Reduction::kMax : Reduction::kSum);
    for (int i = 0; i < 20; ++i) comm.all_reduce(x);
    control.barrier();
    EXPECT_TRUE(holds(internals(comm).find_difference(), "call #101"));
    control.barrier();
    const std::string text = thrown_by([&] { comm.check(); });
    EXPECT_TRUE(holds(text, "ranks 0, 1, 3 called all_reduce #101 sum float32[2]")) << text;
    EXPECT_TRUE(holds(text, "rank 2 called all_reduce #101 max float32[2]")) << text;
    EXPECT_TRUE(comm.failed());
    EXPECT_EQ(thrown_by([&] { comm.all_reduce(x); }), text);
  });
}

TEST(OutOfBand, OneRankMayGroupWhatAnotherDoesNot) {
  run_loose(2, [](Communicator& comm, Communicator& control) {
    const Array x = comm_suite::make(comm, {2}, Dtype::kFloat32, 0);
    if (comm.rank() == 0)
      comm.all_reduce(x);
    else
      comm.group([&] { comm.all_reduce(x); });
    control.barrier();
    EXPECT_EQ(internals(comm).find_difference(), "");
    control.barrier();
  });
}

TEST(OutOfBand, DifferentMessageIsNamedAtItsPair) {
  run_loose(3, [](Communicator& comm, Communicator& control) {
    const Array four = comm_suite::make(comm, {4}, Dtype::kFloat32, 0);
    const Array five = comm_suite::make(comm, {5}, Dtype::kFloat32, 0);
    if (comm.rank() == 0) comm.send(four, 2);
    if (comm.rank() == 2) comm.recv(five, 0);
    control.barrier();
    const std::string text = internals(comm).find_difference();
    EXPECT_EQ(text.empty(), comm.rank() == 1) << text;
    if (!text.empty()) {
      EXPECT_TRUE(holds(text, "rank 0 called send #1 float32[4] to rank 2")) << text;
      EXPECT_TRUE(holds(text, "rank 2 called recv #1 float32[5] from rank 0")) << text;
    }
    control.barrier();
  });
}

TEST(OutOfBand, OverHostsTheCheckIsACollective) {
  run_loose(4,
            [](Communicator& comm, Communicator& control) {
              const Array x = comm_suite::make(comm, {2}, Dtype::kFloat32, 0);
              for (int i = 0; i < 5; ++i) comm.all_reduce(x);
              comm.check();
              comm.broadcast(x, comm.rank() < 2 ? 0 : 1);
              control.barrier();
              // Each host on its own sees nothing.
              EXPECT_EQ(internals(comm).find_difference(), "");
              control.barrier();
              const std::string text = thrown_by([&] { comm.check(); });
              EXPECT_TRUE(holds(text, "ranks 0, 1 called broadcast #6 float32[2] root 0")) << text;
              EXPECT_TRUE(holds(text, "ranks 2, 3 called broadcast #6 float32[2] root 1")) << text;
            },
            {0, 0, 1, 1});
}

TEST(OutOfBand, FailedRankIsAProblemOfItsPeers) {
  EXPECT_THROW(
      run_loose(2,
                [](Communicator& comm, Communicator& control) {
                  const Array x = comm_suite::make(comm, {2}, Dtype::kFloat32, 0);
                  comm.all_reduce(x);
                  control.barrier();
                  if (comm.rank() == 1) throw std::out_of_range("no more samples");
                  std::string text;
                  for (int tries = 0; tries < 500 && text.empty(); ++tries) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(10));
                    text = internals(comm).find_problem(2);
                  }
                  EXPECT_TRUE(holds(text, "rank 1 failed") && holds(text, "no more samples"))
                      << text;
                }),
      std::out_of_range);
}

// Barriers and object calls are the control communicator's, which knows nothing of device arrays.
TEST(OutOfBand, HostCallAgainstDeviceCallIsNamed) {
  using HostCall = void (*)(Communicator&);
  const std::pair<const char*, HostCall> host_calls[] = {
      {"barrier #4", [](Communicator& c) { c.barrier(); }},
      {"all_gather_object #4 (of type ", [](Communicator& c) { c.all_gather_object(3); }},
      {"all_reduce #4 sum float64[1]", [](Communicator& c) { c.all_reduce_value(1.0); }},
  };
  for (const auto& [name, host_call] : host_calls) {
    run_loose(2, [&, name = name, host_call = host_call](Communicator& comm, Communicator&) {
      const Array x = comm_suite::make(comm, {4}, Dtype::kFloat32, 0);
      for (int i = 0; i < 3; ++i) comm.all_reduce(x);
      if (comm.rank() == 1) comm.broadcast(x);
      host_call(comm);
      const std::string text = thrown_by([&] { comm.check(); });
      EXPECT_TRUE(holds(text, "call #4") && holds(text, "broadcast #4 float32[4]")) << text;
      EXPECT_TRUE(holds(text, name)) << text;
      EXPECT_EQ(thrown_by([&] { host_call(comm); }), text);
    });
  }
}

// What the end of a graph capture does, on one host and over two.
TEST(OutOfBand, ComparisonWithAllNamesACallThatOthersDidNotMake) {
  for (const std::vector<int>& hosts : {std::vector<int>{0, 0, 0, 0}, {0, 0, 1, 1}}) {
    run_loose(
        4,
        [](Communicator& comm, Communicator&) {
          const Array x = comm_suite::make(comm, {2}, Dtype::kFloat32, 0);
          for (int i = 0; i < 5; ++i) comm.all_reduce(x);
          EXPECT_EQ(internals(comm).compare_with_all(), "");
          // It waits for the slowest.
          if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
          if (comm.rank() != 2) comm.broadcast(x, 3);
          const std::string text = internals(comm).compare_with_all();
          EXPECT_TRUE(holds(text, "call #6")) << text;
          EXPECT_TRUE(holds(text, "ranks 0, 1, 3 called broadcast #6 float32[2] root 3")) << text;
          EXPECT_TRUE(holds(text, "rank 2 made no call after #5")) << text;
          EXPECT_FALSE(comm.failed()) << "it only tells";
        },
        hosts);
  }
}

TEST(OutOfBand, ComparisonWithAllNamesADifferentCall) {
  run_loose(3, [](Communicator& comm, Communicator&) {
    const Array x = comm_suite::make(comm, {2}, Dtype::kFloat32, 0);
    comm.all_reduce(x);
    comm.all_reduce(x, comm.rank() == 1 ? Reduction::kMax : Reduction::kSum);
    for (int i = 0; i < comm.rank(); ++i) comm.all_reduce(x);  // numbers differ as well
    const std::string text = internals(comm).compare_with_all();
    EXPECT_TRUE(holds(text, "ranks 0, 2 called all_reduce #2 sum float32[2]")) << text;
    EXPECT_TRUE(holds(text, "rank 1 called all_reduce #2 max float32[2]")) << text;
  });
}

TEST(OutOfBand, ComparisonWithAllNamesARankThatFailed) {
  EXPECT_THROW(run_loose(2,
                         [](Communicator& comm, Communicator&) {
                           if (comm.rank() == 1) throw std::out_of_range("no more samples");
                           const std::string text = internals(comm).compare_with_all();
                           EXPECT_TRUE(holds(text, "rank 1") && holds(text, "no more samples"))
                               << text;
                         }),
               std::out_of_range);
}

TEST(OutOfBand, RecordingACallIsCheap) {
  run_loose(1, [](Communicator& comm, Communicator&) {
    const Array x = comm_suite::make(comm, {2}, Dtype::kFloat32, 0);
    constexpr int kCalls = 20000;
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kCalls; ++i) comm.all_reduce(x, Reduction::kSum, x);
      best = std::min(
          best,
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kCalls);
    }
    RecordProperty("nanoseconds", int(best * 1e9));
    std::printf("host time of a call without its transport: %.0f ns\n", best * 1e9);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
    EXPECT_LT(best, 2e-6);
#endif
  });
}

}  // namespace
}  // namespace catena
