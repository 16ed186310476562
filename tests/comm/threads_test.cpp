// The suite over ranks that are threads, and their faults.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "catena/comm/factory.h"
#include "catena/comm/fault.h"
#include "catena/comm/internals.h"
#include "catena/comm/transport.h"
#include "comm/communicator_state.h"
#include "comm/suite.h"
#include "core/ranks_in_use.h"
#include "error_text.h"

namespace catena {
namespace {

using comm::Fault;
using comm::Reduction;
using comm::run_threads;
using comm::ThreadsOptions;
using comm_suite::Case;
using Clock = std::chrono::steady_clock;

struct Setting {
  Case one;
  int ranks;
  bool generic;
};

std::vector<Setting> settings() {
  std::vector<Setting> list;
  for (const auto& cases : {comm_suite::collective_cases(), comm_suite::object_cases()})
    for (const Case& one : cases)
      for (int ranks : {1, 2, 3, 4, 8})
        for (bool generic : {false, true}) list.push_back({one, ranks, generic});
  return list;
}

class ThreadsSuite : public ::testing::TestWithParam<Setting> {};
TEST_P(ThreadsSuite, GivesExactResults) {
  const Setting& s = GetParam();
  // One rank cannot wait for itself.
  run_threads(s.ranks, s.one.body, {.timeout = 60, .generic = s.generic});
}
INSTANTIATE_TEST_SUITE_P(All, ThreadsSuite, ::testing::ValuesIn(settings()), [](const auto& info) {
  return std::string(info.param.one.name) + "_" + std::to_string(info.param.ranks) +
         (info.param.generic ? "_generic" : "");
});

class ThreadsMismatch : public ::testing::TestWithParam<comm_suite::MismatchCase> {};
TEST_P(ThreadsMismatch, IsNamedOnAllRanks) {
  for (int ranks : {2, 4}) {
    const auto start = Clock::now();
    std::atomic<int> told = 0;
    run_threads(ranks,
                [&](Communicator& comm) {
                  comm_suite::expect_mismatch(comm, GetParam());
                  ++told;
                },
                {.timeout = 30});
    EXPECT_EQ(told, ranks);
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  }
}
INSTANTIATE_TEST_SUITE_P(All, ThreadsMismatch, ::testing::ValuesIn(comm_suite::mismatch_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

using comm_suite::holds;
using comm_suite::texts_of;

Array some(Communicator& comm) { return comm_suite::make(comm, {4}, Dtype::kFloat32, comm.rank()); }

TEST(ThreadsFaults, ThrowingRankEndsTheOthersAndIsNamed) {
  const auto texts = texts_of(4, [](Communicator& comm) {
    comm.all_reduce(some(comm));
    if (comm.rank() == 2) throw std::runtime_error("disk is full");
    comm.all_reduce(some(comm));
  });
  for (int r : {0, 1, 3}) {
    EXPECT_TRUE(holds(texts[size_t(r)], "rank 2 failed")) << texts[size_t(r)];
    EXPECT_TRUE(holds(texts[size_t(r)], "disk is full")) << texts[size_t(r)];
  }
}

// Runs in another process, which the test below pauses.
TEST(ThreadsPause, DISABLED_Body) {
  run_threads(4, [](Communicator& comm) {
    const auto until = Clock::now() + std::chrono::seconds(7);
    const Array x = some(comm);
    while (comm.all_reduce_value(double(Clock::now() < until), Reduction::kMin) > 0)
      comm.all_reduce(x);
  });
}

// As Ctrl-Z and fg, a debugger or a suspended machine do: longer than a wait lasts before its cause
// is looked for.
TEST(ThreadsPause, IsNoDeadlock) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "test", "--gtest_filter=ThreadsPause.DISABLED_Body",
          "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
    _exit(127);
  }
  for (int pause = 0; pause < 2; ++pause) {
    sleep(1);
    kill(child, SIGSTOP);
    sleep(3);
    kill(child, SIGCONT);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ThreadsFaults, RethrowsTheFirstFailureWithItsType) {
  EXPECT_THROW(run_threads(3,
                           [](Communicator& comm) {
                             if (comm.rank() == 1) throw std::out_of_range("mine");
                             comm.barrier();
                           }),
               std::out_of_range);
}

TEST(ThreadsFaults, ReturningRankIsNamed) {
  const auto texts = texts_of(3, [](Communicator& comm) {
    comm.all_reduce(some(comm));
    if (comm.rank() == 1) return;
    comm.all_reduce(some(comm));
  });
  EXPECT_TRUE(holds(texts[0], "rank 1 has returned")) << texts[0];
  EXPECT_TRUE(holds(texts[0], "all_reduce #2")) << texts[0];
  EXPECT_TRUE(holds(texts[2], "rank 1 has returned")) << texts[2];
}

TEST(ThreadsFaults, HangingRankRunsIntoTheDeadline) {
  const auto start = Clock::now();
  ::testing::internal::CaptureStderr();
  const auto texts = texts_of(
      3,
      [](Communicator& comm) {
        if (comm.rank() == 2)
          inject_fault(comm, {.kind = Fault::Kind::kDelay, .at_call = 2, .seconds = 2});
        comm.all_reduce(some(comm));
        comm.all_reduce(some(comm));
      },
      0.5);
  const std::string log = ::testing::internal::GetCapturedStderr();  // said before rank 2 returned
  EXPECT_TRUE(holds(log, "run_threads: rank") && holds(log, "waited 0.5 s")) << log;
  EXPECT_TRUE(holds(log, "still waits for rank 2 to return")) << log;
  for (int r : {0, 1}) {
    EXPECT_TRUE(holds(texts[size_t(r)], "waited 0.5 s")) << texts[size_t(r)];
    EXPECT_TRUE(holds(texts[size_t(r)], "for rank 2")) << texts[size_t(r)];
  }
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(8));
}

TEST(ThreadsFaults, SkippedCallIsFound) {
  const auto texts = texts_of(4, [](Communicator& comm) {
    if (comm.rank() == 3) inject_fault(comm, {.kind = Fault::Kind::kSkip, .at_call = 2});
    comm.all_reduce(some(comm));
    comm.all_gather(some(comm));
    comm.broadcast(some(comm), 1);
  });
  for (const std::string& text : texts) {
    EXPECT_TRUE(holds(text, "call #2")) << text;
    EXPECT_TRUE(holds(text, "ranks 0, 1, 2 called all_gather #2")) << text;
    EXPECT_TRUE(holds(text, "rank 3 called broadcast #2")) << text;
  }
}

// A call and an open group, which others break into. The ranks' communicators are dead then.
TEST(ThreadsFaults, CallsOfTwoThreadsAtOnceAreNamed) {
  for (const bool grouped : {false, true}) {
    std::atomic<bool> seen = false;
    const auto texts = texts_of(2, [&](Communicator& comm) {
      if (comm.rank() == 1) {
        while (!seen) std::this_thread::yield();
        comm.barrier();
      }
      std::string first;
      std::thread other([&] {
        first = error_of<CommError>([&] {
          const Array x = some(comm);
          if (!grouped) comm.all_reduce(x);
          comm.group([&] {
            comm.send(x, 1);
            while (!seen) std::this_thread::yield();
          });
        });
      });
      while (internals(comm).calls() == 0) std::this_thread::yield();
      const std::string second = error_of<CommError>([&] { comm.gather_object(1); });
      seen = true;
      other.join();
      EXPECT_EQ(first, second);
      throw CommError(second);
    });
    const std::string call = grouped ? "is in group" : "is in all_reduce";
    for (const std::string& text : texts) {
      EXPECT_TRUE(holds(text, "gather_object: called while another thread of rank 0 " + call))
          << text;
      EXPECT_TRUE(holds(text, "one thread at a time")) << text;
    }
  }
}

TEST(ThreadsFaults, ThreadsMayTakeTurns) {
  run_threads(2, [](Communicator& comm) {
    for (int i = 0; i < 3; ++i) std::thread([&] { EXPECT_EQ(comm.all_reduce_value(1), 2); }).join();
  });
}

TEST(ThreadsFaults, InjectedThrow) {
  EXPECT_THROW(run_threads(2,
                           [](Communicator& comm) {
                             if (comm.rank() == 1)
                               inject_fault(comm, {.kind = Fault::Kind::kThrow, .at_call = 1});
                             comm.barrier();
                           }),
               std::runtime_error);
}

TEST(ThreadsFaults, DeadlineNamesRanks) {
  const auto texts = texts_of(
      3,
      [](Communicator& comm) {
        if (comm.rank() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1200));
        comm.barrier();
      },
      0.3);
  EXPECT_TRUE(holds(texts[0], "for ranks 1, 2")) << texts[0];
}

TEST(ThreadsFaults, MessagesOfAnotherDtypeAreNamed) {
  const auto texts = texts_of(2, [](Communicator& comm) {
    if (comm.rank() == 0)
      comm.send(some(comm), 1);
    else
      comm.recv(some(comm).astype(Dtype::kInt32), 0);
  });
  EXPECT_TRUE(holds(texts[1], "float32[4]") && holds(texts[1], "int32[4]")) << texts[1];
}

TEST(ThreadsFaults, AbortEndsAll) {
  const auto texts = texts_of(3, [](Communicator& comm) {
    const CommunicatorPtr part = comm.split(0);
    if (comm.rank() == 1) part->abort("loss is NaN");
    comm.barrier();
  });
  for (const std::string& text : texts) EXPECT_TRUE(holds(text, "loss is NaN")) << text;
  EXPECT_EQ(texts[1], "loss is NaN") << "its own";
}

TEST(ThreadsFaults, FailureReachesOtherTeams) {
  const auto texts = texts_of(4, [](Communicator& comm) {
    const auto half = comm.split(comm.rank() / 2);
    if (comm.rank() == 0) throw std::runtime_error("gone");
    half->barrier();
    for (;;) half->barrier();
  });
  for (int r : {1, 2, 3}) EXPECT_TRUE(holds(texts[size_t(r)], "rank 0 failed")) << texts[size_t(r)];
}

TEST(ThreadsCommunicator, AllRanksGetTheSameBits) {
  // Values whose sum depends on the order.
  std::vector<std::vector<float>> results(5);
  for (bool generic : {false, true}) {
    for (int64_t n : {10, 20000}) {
      run_threads(5,
                  [&](Communicator& comm) {
                    std::vector<float> x;
                    for (int64_t i = 0; i < n; ++i)
                      x.push_back(std::pow(-1.7f, float((i + comm.rank() * 5) % 23)) / 3);
                    results[size_t(comm.rank())] =
                        comm.all_reduce(array(x, comm.device())).to_vector<float>();
                  },
                  {.generic = generic});
      for (const auto& result : results) EXPECT_EQ(result, results[0]);
      for (int64_t i = 0; i < n; ++i) {
        float sum = 0;
        for (int r = 0; r < 5; ++r) sum += std::pow(-1.7f, float((i + r * 5) % 23)) / 3;
        ASSERT_EQ(results[0][size_t(i)], sum);
      }
    }
  }
}

TEST(ThreadsCommunicator, HalfPrecisionRoundsOnce) {
  run_threads(4, [&](Communicator& comm) {
    // 2048 + 1 + 1 + 1 is 2048 when every step is rounded to float16.
    const float mine = comm.rank() == 0 ? 2048.f : 1.f;
    const Array x = array({mine}, comm.device()).astype(Dtype::kFloat16);
    EXPECT_EQ(comm.all_reduce(x).item<float>(), 2052.f);
  });
  // So is 256 + 1 + 1 in bfloat16.
  for (const bool generic : {false, true})
    run_threads(3,
                [](Communicator& comm) {
                  const float mine = comm.rank() == 0 ? 256.f : 1.f;
                  const Array x = array({mine}, comm.device()).astype(Dtype::kBFloat16);
                  EXPECT_EQ(comm.all_reduce(x).item<float>(), 258.f);
                },
                {.generic = generic});
}

TEST(ThreadsCommunicator, ArraysThatLieSideBySideDoNotOverlap) {
  run_threads(2, [](Communicator& comm) {
    const Array both = zeros({2, 3}, {dtype::float32, comm.device()});
    for (const int from : {0, 1}) comm.all_reduce(both(from), {}, both(1 - from));
    if (comm.rank() == 0) {
      EXPECT_THROW(comm.scatter(both, both(Slice(1, 2)), 0), ValueError) << "the other rank's";
    }
    comm.scatter(both, both(Slice(comm.rank(), comm.rank() + 1)), 1);  // in place
  });
}

TEST(ThreadsCommunicator, PartsOfOneColourAreDifferentCommunicators) {
  run_threads(2, [](Communicator& comm) {
    const CommunicatorPtr first = comm.split(0), second = comm.split(0);
    EXPECT_NE(comm::Communicator::State::of(*first).id, comm::Communicator::State::of(*second).id);
  });
}

TEST(ThreadsCommunicator, ASingleNumberIsNoExchangeOfGradients) {
  ranks_in_use().exchanges = false;
  run_threads(2, [](Communicator& comm) { comm.all_reduce_value(1.5); });
  EXPECT_FALSE(ranks_in_use().exchanges);
  run_threads(2, [](Communicator& comm) { comm.all_reduce(some(comm)); });
  EXPECT_TRUE(ranks_in_use().exchanges);
}

TEST(ThreadsCommunicator, CountsHosts) {
  run_threads(4,
              [](Communicator& comm) {
                EXPECT_EQ(comm.inter_size(), 2);
                EXPECT_EQ(comm.intra_size(), 2);
                EXPECT_EQ(comm.inter_rank(), comm.rank() / 2);
                EXPECT_EQ(comm.intra_rank(), comm.rank() % 2);
              },
              {.hosts = {7, 7, 3, 3}});
}

TEST(ThreadsCommunicator, RanksHaveTheirDevices) {
  run_threads(3, [](Communicator& comm) {
    EXPECT_EQ(comm.device(), cpu(comm.rank()));
    EXPECT_EQ(current_device(), cpu(comm.rank()));
    EXPECT_EQ(comm.name(), "threads");
  });
  EXPECT_THROW(run_threads(2, [](Communicator&) {}, {.devices = {cpu(0)}}), ValueError);
  EXPECT_THROW(run_threads(2, [](Communicator&) {}, {.hosts = {0}}), ValueError);
  EXPECT_THROW(run_threads(0, [](Communicator&) {}), ValueError);
}

TEST(ThreadsCommunicator, CloseRunsCallbacksOnceAndEndsCalls) {
  run_threads(2, [](Communicator& comm) {
    int ran = 0;
    internals(comm).before_close([&] { ++ran; });
    const int id = internals(comm).before_close([&] { ran += 100; });
    internals(comm).cancel_before_close(id);
    comm.close();
    comm.close();
    EXPECT_EQ(ran, 1);
    EXPECT_THROW(comm.barrier(), CommError);
  });
}

TEST(ThreadsCommunicator, CheckFindsNothingWhenAllIsWell) {
  run_threads(4, [](Communicator& comm) {
    for (int i = 0; i < 2000; ++i) comm.all_reduce(some(comm));
    comm.check();
    EXPECT_EQ(internals(comm).find_problem(0), "");
  });
}

}  // namespace
}  // namespace catena
