// The suite over NCCL: ranks are threads of this process, one GPU each.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "catena/comm/factory.h"
#include "catena/core/stream.h"
#include "comm/nccl.h"
#include "comm/suite.h"

namespace catena {
namespace {

using comm_suite::most_ranks;
using comm_suite::run_nccl;

const auto kName = [](const auto& info) { return std::string(info.param.name); };

class NcclSuite : public ::testing::TestWithParam<comm_suite::Case> {};
TEST_P(NcclSuite, GivesExactResults) {
  CATENA_NEEDS_NCCL(1);
  run_nccl(1, GetParam().body);
  // One size of several: NCCL takes seconds to connect the GPUs of each communicator.
  if (most_ranks() > 1) run_nccl(most_ranks(), GetParam().body);
}
INSTANTIATE_TEST_SUITE_P(Collectives, NcclSuite,
                         ::testing::ValuesIn(comm_suite::collective_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Objects, NcclSuite, ::testing::ValuesIn(comm_suite::object_cases()),
                         kName);

// The threads communicator on GPUs: copies between devices and array operations.
class ThreadsOnGpus : public ::testing::TestWithParam<comm_suite::Case> {};
TEST_P(ThreadsOnGpus, GivesExactResults) {
  CATENA_NEEDS_GPU();
  comm::ThreadsOptions options;
  // Unlike NCCL it lets ranks share a GPU.
  for (int r = 0; r < 3; ++r)
    options.devices.push_back(cuda_device(r % device_count(DeviceType::kCuda)));
  comm::run_threads(3, GetParam().body, options);
}
INSTANTIATE_TEST_SUITE_P(Collectives, ThreadsOnGpus,
                         ::testing::ValuesIn(comm_suite::collective_cases()), kName);

TEST(Nccl, SharedGpuIsRefused) {
  CATENA_NEEDS_NCCL(1);
  comm::ThreadsOptions options;
  options.devices = {cuda_device(0), cuda_device(0)};
  options.implementation = "nccl";
  try {
    comm::run_threads(
        2, [](Communicator&) {}, options);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("ranks 0 and 1 both use the GPU"), std::string::npos)
        << error.what();
  }
}

TEST(Nccl, MissingRankIsNamedNotWaitedFor) {
  CATENA_NEEDS_NCCL(2);
  const auto start = std::chrono::steady_clock::now();
  try {
    run_nccl(2, [&](Communicator& comm) {
      const Array x = comm_suite::make(comm, {4}, Dtype::kFloat32, comm.rank());
      comm.all_reduce(x);
      synchronize(comm.device());
      if (comm.rank() == 1) throw std::out_of_range("no more samples");
      comm.all_reduce(x);
      synchronize(comm.device());
      ADD_FAILURE() << "nothing was noticed";
    });
    FAIL();
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "no more samples");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(Nccl, HangingRankRunsIntoTheDeadline) {
  CATENA_NEEDS_NCCL(2);
  try {
    run_nccl(
        2,
        [&](Communicator& comm) {
          const Array x = comm_suite::make(comm, {4}, Dtype::kFloat32, comm.rank());
          comm.all_reduce(x);
          synchronize(comm.device());
          if (comm.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(8));
          comm.all_reduce(x);
          synchronize(comm.device());
        },
        3);
    FAIL();
  } catch (const CommError& error) {
    EXPECT_NE(std::string(error.what()).find("waited 3 s (CATENA_TIMEOUT)"), std::string::npos)
        << error.what();
  }
}

// Rank 1 has made the call, and on its way to more of them it runs ahead of its GPU, which is busy
// with something else. Rank 0, which waits, has made fewer calls: neither it nor rank 1 is late.
TEST(Nccl, BusyGpuBlamesNoRankThatHasMadeTheCall) {
  CATENA_NEEDS_NCCL(2);
  for (const int ahead : {0, 3}) {
    std::mutex mutex;
    std::vector<std::string> texts;
    const auto body = [&](Communicator& comm) {
      const Array x = comm_suite::make(comm, {4}, Dtype::kFloat32, comm.rank());
      comm.all_reduce(x);
      synchronize(comm.device());
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const Stream stream = current_stream(comm.device());
      if (comm.rank() == 1)
        stream.launch_host_func([] { std::this_thread::sleep_for(std::chrono::seconds(7)); });
      try {
        for (int i = 0; i <= (comm.rank() == 1 ? ahead : 0); ++i) comm.all_reduce(x);
        synchronize(comm.device());
        ADD_FAILURE() << "rank " << comm.rank() << " was told nothing";
      } catch (const CommError& error) {
        std::lock_guard lock(mutex);
        texts.push_back(error.what());
        throw;
      }
    };
    EXPECT_THROW(run_nccl(2, body, 3), CommError);
    EXPECT_EQ(texts.size(), 2u);
    for (const std::string& text : texts) {
      EXPECT_NE(text.find("waited 3 s (CATENA_TIMEOUT) for a collective on the GPU: all ranks have "
                          "made call #2: a GPU has not finished the work"),
                std::string::npos)
          << ahead << " calls ahead: " << text;
    }
  }
}

TEST(Nccl, HostTimeOfACall) {
  CATENA_NEEDS_NCCL(1);
  run_nccl(1, [](Communicator& comm) {
    const Array x = comm_suite::make(comm, {256}, Dtype::kFloat32, 0);
    for (int i = 0; i < 100; ++i) comm.all_reduce(x, comm::Reduction::kSum, x);
    synchronize(comm.device());
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 500; ++i) comm.all_reduce(x, comm::Reduction::kSum, x);
    const double each =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 500;
    synchronize(comm.device());
    std::printf("host time of all_reduce, NCCL included: %.0f ns\n", each * 1e9);
  });
}

}  // namespace
}  // namespace catena
