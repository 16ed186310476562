// Comparison of calls beside the data path, as nccl uses it: a transport that compares nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "catena/comm/transport.h"
#include "comm/suite.h"

namespace catena {
namespace {

using comm::Call;
using comm::Reduction;

// Accepts every call and moves nothing.
class LooseTransport : public comm::Transport {
 public:
  explicit LooseTransport(CommunicatorPtr control) : control_(std::move(control)) {}
  const char* name() const override { return "loose"; }
  int rank() const override { return control_->rank(); }
  const std::vector<int>& hosts() const override { return control_->topology().hosts; }
  bool moves(DeviceType) const override { return true; }
  CommunicatorPtr control() const override { return control_; }
  void run(std::span<const Call> calls) override { ran += int(calls.size()); }
  std::unique_ptr<Transport> split(const std::vector<int>&, int, int) override { return nullptr; }
  void abort(const std::string&) noexcept override {}
  void close() override {}
  int ran = 0;

 private:
  CommunicatorPtr control_;
};

// Runs fn on communicators over LooseTransport, ranks on the given hosts.
void run_loose(int n, const std::function<void(Communicator&, Communicator&)>& fn,
               std::vector<int> hosts = {}) {
  comm::run_threads(n,
                    [&](Communicator& control) {
                      const CommunicatorPtr loose = comm::make_communicator(
                          std::make_unique<LooseTransport>(control.shared_from_this()),
                          control.device(), {});
                      control.barrier();
                      fn(*loose, control);
                    },
                    {.timeout = 30, .hosts = std::move(hosts)});
}

bool holds(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

std::string thrown_by(const std::function<void()>& body) {
  try {
    body();
  } catch (const CommError& error) {
    return error.what();
  }
  return {};
}

TEST(OutOfBand, EqualCallsPass) {
  run_loose(4, [](Communicator& comm, Communicator& control) {
    for (int i = 0; i < 3000; ++i) comm.all_reduce(comm_suite::make(comm, {2}, Dtype::kFloat32, 0));
    comm.check();
    EXPECT_EQ(comm.find_difference(), "");
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
    EXPECT_TRUE(holds(comm.find_difference(), "call #101"));
    control.barrier();
    const std::string text = thrown_by([&] { comm.check(); });
    EXPECT_TRUE(holds(text, "ranks 0, 1, 3 called all_reduce #101 sum float32[2]")) << text;
    EXPECT_TRUE(holds(text, "rank 2 called all_reduce #101 max float32[2]")) << text;
    EXPECT_TRUE(comm.failed());
    EXPECT_EQ(thrown_by([&] { comm.all_reduce(x); }), text);
  });
}

TEST(OutOfBand, DifferentMessageIsNamedAtItsPair) {
  run_loose(3, [](Communicator& comm, Communicator& control) {
    const Array four = comm_suite::make(comm, {4}, Dtype::kFloat32, 0);
    const Array five = comm_suite::make(comm, {5}, Dtype::kFloat32, 0);
    if (comm.rank() == 0) comm.send(four, 2);
    if (comm.rank() == 2) comm.recv(five, 0);
    control.barrier();
    const std::string text = comm.find_difference();
    EXPECT_EQ(text.empty(), comm.rank() == 1) << text;
    if (!text.empty()) {
      EXPECT_TRUE(holds(text, "float32[4]") && holds(text, "float32[5]")) << text;
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
              EXPECT_EQ(comm.find_difference(), "");
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
                    text = comm.find_problem(2);
                  }
                  EXPECT_TRUE(holds(text, "rank 1 failed") && holds(text, "no more samples"))
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
