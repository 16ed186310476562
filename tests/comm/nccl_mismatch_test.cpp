// Ranks that disagree over NCCL: named with call number and ranks within 10 s, when they run and
// when they are captured, whether or not NCCL hangs over it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "catena/core/graph.h"
#include "catena/core/stream.h"
#include "comm/nccl.h"
#include "comm/suite.h"

namespace catena {
namespace {

using comm::Reduction;
using comm_suite::bucket;
using comm_suite::most_ranks;
using comm_suite::run_nccl;

// What every rank was told; "" by ranks that were told nothing.
std::vector<std::string> told(int ranks, const std::function<void(Communicator&, bool odd)>& body) {
  std::mutex mutex;
  std::vector<std::string> texts(static_cast<size_t>(ranks));
  const auto start = std::chrono::steady_clock::now();
  std::atomic<double> slowest = 0;
  try {
    run_nccl(ranks, [&](Communicator& comm) {
      // Three equal calls, so that the first of `body` is #4.
      const Array x = comm_suite::make(comm, {4}, Dtype::kFloat32, comm.rank());
      for (int i = 0; i < 3; ++i) comm.all_reduce(x);
      synchronize(comm.device());
      const auto begin = std::chrono::steady_clock::now();
      try {
        body(comm, comm.rank() == comm.size() - 1);
      } catch (const CommError& error) {
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        std::lock_guard lock(mutex);
        slowest = std::max(slowest.load(), took.count());
        texts[static_cast<size_t>(comm.rank())] = error.what();
        throw;
      }
    });
    ADD_FAILURE() << "nothing was noticed";
  } catch (const CommError&) {
  }
  EXPECT_LT(slowest, 10);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60)) << "with start";
  return texts;
}

using comm_suite::holds;

class NcclMismatch : public ::testing::TestWithParam<comm_suite::MismatchCase> {};

TEST_P(NcclMismatch, IsNamedEagerly) {
  CATENA_NEEDS_NCCL(2);
  const comm_suite::MismatchCase& one = GetParam();
  const int ranks = std::min(4, most_ranks());
  const std::vector<std::string> texts = told(ranks, [&](Communicator& comm, bool odd) {
    one.body(comm, odd);
    synchronize(comm.device());
    // A rank whose own work was done, as a broadcast's root's is, is told at its next host call.
    comm.barrier();
    synchronize(comm.device());
    ADD_FAILURE() << "rank " << comm.rank() << " was told nothing";
  });
  for (const std::string& text : texts) {
    for (const std::string& word : one.words)
      EXPECT_TRUE(holds(text, word)) << "of " << ranks << " ranks, no '" << word << "': " << text;
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, NcclMismatch,
                         ::testing::ValuesIn(comm_suite::device_mismatch_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// NCCL runs this to its end with some result: no number of it may reach the host.
TEST(NcclMismatch, SumAgainstMaxReachesNoHost) {
  CATENA_NEEDS_NCCL(2);
  const std::vector<std::string> texts = told(2, [](Communicator& comm, bool odd) {
    const Array x = comm_suite::make(comm, {4}, Dtype::kFloat32, comm.rank());
    const Array y = comm.all_reduce(x, odd ? Reduction::kMax : Reduction::kSum);
    const std::vector<double> read = comm_suite::to_doubles(y);
    ADD_FAILURE() << "a result of a mismatched call was read: " << read[0];
  });
  // One of the two may have seen the other fail before it looked by itself.
  EXPECT_TRUE(std::any_of(texts.begin(), texts.end(),
                          [](const std::string& text) { return holds(text, "max float32[4]"); }));
  for (const std::string& text : texts) EXPECT_TRUE(holds(text, "call #4")) << text;
}

// A wait for other work of the GPU, while the other rank has yet to make its call, is no comparison
// with that call.
TEST(NcclMismatch, SumAgainstALaterMaxReachesNoHost) {
  CATENA_NEEDS_NCCL(2);
  std::atomic<bool> waited = false;
  const std::vector<std::string> texts = told(2, [&](Communicator& comm, bool odd) {
    const Array x = comm_suite::make(comm, {4}, Dtype::kFloat32, comm.rank());
    while (odd && !waited && !comm.failed()) std::this_thread::yield();
    const Array y = comm.all_reduce(x, odd ? Reduction::kMax : Reduction::kSum);
    if (!odd) Stream::create(comm.device()).synchronize();
    waited = true;
    const std::vector<double> read = comm_suite::to_doubles(y);
    ADD_FAILURE() << "a result of a mismatched call was read: " << read[0];
  });
  for (const std::string& text : texts) EXPECT_TRUE(holds(text, "call #4")) << text;
}

class NcclCapture : public ::testing::TestWithParam<comm_suite::CaptureCase> {};

TEST_P(NcclCapture, OfDifferentCallsIsRefused) {
  CATENA_NEEDS_NCCL(2);
  const comm_suite::CaptureCase& one = GetParam();
  for (int ranks = 2; ranks <= std::min(4, most_ranks()); ranks *= 2) {
    const std::vector<std::string> texts = told(ranks, [&](Communicator& comm, bool) {
      try {
        comm_suite::capture_differently(comm, one);
        ADD_FAILURE() << "rank " << comm.rank() << " captured a step that others did not";
      } catch (const CommError&) {
        EXPECT_TRUE(comm.failed());
        EXPECT_FALSE(cuda::is_capturing(comm.device()));
        throw;
      }
    });
    for (const std::string& text : texts) {
      for (const std::string& word : one.words)
        EXPECT_TRUE(holds(text, word)) << "of " << ranks << " ranks, no '" << word << "': " << text;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, NcclCapture, ::testing::ValuesIn(comm_suite::capture_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(NcclCapture, OfEqualCallsReplays) {
  CATENA_NEEDS_NCCL(2);
  const int ranks = std::min(4, most_ranks());
  run_nccl(ranks, [&](Communicator& comm) {
    const Array x = comm_suite::make(comm, {8}, Dtype::kFloat32, 0);
    bucket(comm, x, Reduction::kMax);
    synchronize(comm.device());
    std::vector<double> expected = comm_suite::to_doubles(x);
    cuda::Graph graph = cuda::Graph::capture(comm.device(), [&] {
      bucket(comm, x, Reduction::kSum);
      comm.all_reduce(x, Reduction::kMax, x);
    });
    for (int i = 0; i < 5; ++i) {
      graph.launch();
      for (double& value : expected) value *= ranks;
      EXPECT_EQ(comm_suite::to_doubles(x), expected);
    }
  });
}

// NCCL keeps a communicator until no graph holds its calls: closing takes the recorded work away.
TEST(NcclCapture, GraphsMayOutliveTheCommunicator) {
  CATENA_NEEDS_NCCL(2);
  std::vector<cuda::Graph> graphs(2);
  const auto start = std::chrono::steady_clock::now();
  run_nccl(2, [&](Communicator& comm) {
    const Array x = comm_suite::make(comm, {8}, Dtype::kFloat32, 0);
    comm.all_reduce(x, Reduction::kSum, x);
    synchronize(comm.device());
    cuda::Graph& graph = graphs[static_cast<size_t>(comm.rank())];
    graph = cuda::Graph::capture(comm.device(), [&] { comm.all_reduce(x, Reduction::kMax, x); });
    graph.launch();
    synchronize(comm.device());
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  try {
    graphs[0].launch();
    ADD_FAILURE() << "a graph was launched after its communicator";
  } catch (const Error& error) {
    EXPECT_TRUE(holds(error.what(), "the communicator whose calls were recorded is closed"))
        << error.what();
  }
}

TEST(NcclCapture, RankThatThrowsEndsTheReplaysOfOthers) {
  CATENA_NEEDS_NCCL(2);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(run_nccl(2,
                        [&](Communicator& comm) {
                          const Array x = comm_suite::make(comm, {8}, Dtype::kFloat32, 0);
                          comm.all_reduce(x, Reduction::kMax, x);
                          synchronize(comm.device());
                          auto graph = cuda::Graph::capture(
                              comm.device(), [&] { comm.all_reduce(x, Reduction::kMax, x); });
                          for (int i = 0; i < 3; ++i) {
                            if (i == 2 && comm.rank() == 1) throw std::out_of_range("no more");
                            graph.launch();
                            synchronize(comm.device());
                          }
                          ADD_FAILURE() << "nothing was noticed";
                        }),
               std::out_of_range);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

// Host calls are the control communicator's, device calls NCCL's.
TEST(NcclMismatch, BarrierAgainstAllReduce) {
  CATENA_NEEDS_NCCL(2);
  const std::vector<std::string> texts = told(2, [](Communicator& comm, bool odd) {
    const Array x = comm_suite::make(comm, {4}, Dtype::kFloat32, comm.rank());
    if (odd)
      comm.all_reduce(x);
    else
      comm.barrier();
    synchronize(comm.device());
    ADD_FAILURE() << "rank " << comm.rank() << " was told nothing";
  });
  for (const std::string& text : texts) {
    EXPECT_TRUE(holds(text, "call #4")) << text;
    EXPECT_TRUE(holds(text, "barrier #4")) << text;
    EXPECT_TRUE(holds(text, "all_reduce #4 sum float32[4]")) << text;
  }
}

TEST(ThreadsCapture, IsRefused) {
  CATENA_NEEDS_GPU();
  comm::ThreadsOptions options;
  for (int r = 0; r < 2; ++r)
    options.devices.push_back(cuda_device(r % device_count(DeviceType::kCuda)));
  comm::run_threads(
      2,
      [](Communicator& comm) {
        const Array x = comm_suite::make(comm, {8}, Dtype::kFloat32, 0);
        try {
          cuda::Graph::capture(comm.device(), [&] { comm.all_reduce(x, Reduction::kSum, x); });
          ADD_FAILURE() << "a call that needs the host was captured";
        } catch (const CommError& error) {
          EXPECT_TRUE(holds(error.what(), "all_reduce: the \"threads\" communicator"))
              << error.what();
        }
        EXPECT_FALSE(cuda::is_capturing(comm.device()));
        comm.all_reduce(x, Reduction::kSum, x);  // it goes on outside
      },
      options);
}

}  // namespace
}  // namespace catena
