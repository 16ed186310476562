// Collectives inside a captured step: ranks that record different calls are refused at the end of
// the capture. And what a communicator says of the memory that its calls use. Runs without a GPU.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <ostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "catena/core/graph.h"
#include "comm/loose.h"
#include "comm/suite.h"
#include "error_text.h"
#include "pretended_gpu.h"

namespace catena {
namespace {

using comm::Reduction;
using comm_suite::holds;
using comm_suite::thrown_by;
using testing::PretendedGpu;

PretendedGpu& gpu() { return testing::pretended_gpu(); }

// float32[n] on a rank's pretended GPU.
Array on_gpu(const Communicator& comm, int64_t n, Dtype dtype = Dtype::kFloat32) {
  const auto memory = std::make_shared<std::vector<double>>(static_cast<size_t>(n));
  const Device device = cuda_device(comm.rank());
  return Array::from_storage(borrow(device, memory->data(), size_t(n) * 8, memory), 0, {n},
                             {int64_t(itemsize(dtype))}, dtype);
}

void run_on_gpus(int n, const std::function<void(Communicator&, Communicator& control)>& fn,
                 std::vector<int> hosts = {}) {
  gpu();
  comm_suite::run_loose(n, fn, std::move(hosts), true);
}

struct Case {
  const char* name;
  // What a rank's step calls; the last rank is the odd one.
  std::function<void(Communicator&, bool odd)> step;
  std::vector<std::string> words;  // that every rank must be told
};

std::ostream& operator<<(std::ostream& os, const Case& one) { return os << one.name; }

void reduce(Communicator& comm, int64_t n, Reduction how = Reduction::kSum,
            Dtype dtype = Dtype::kFloat32) {
  const Array x = on_gpu(comm, n, dtype);
  comm.all_reduce(x, how, x);
}

std::vector<Case> cases() {
  return {
      {"reduction",
       [](Communicator& c, bool odd) { reduce(c, 4, odd ? Reduction::kMax : Reduction::kSum); },
       {"call #4", "ranks 0, 1 called all_reduce #4 sum float32[4]",
        "rank 2 called all_reduce #4 max float32[4]"}},
      {"size",
       [](Communicator& c, bool odd) { reduce(c, odd ? 5 : 4); },
       {"call #4", "rank 2 called all_reduce #4 sum float32[5]"}},
      {"dtype",
       [](Communicator& c, bool odd) {
         reduce(c, 4, Reduction::kSum, odd ? Dtype::kFloat64 : Dtype::kFloat32);
       },
       {"call #4", "rank 2 called all_reduce #4 sum float64[4]"}},
      {"call",
       [](Communicator& c, bool odd) {
         const Array x = on_gpu(c, 4);
         odd ? c.broadcast(x, 0) : c.all_reduce(x, Reduction::kSum, x);
       },
       {"call #4", "ranks 0, 1 called all_reduce #4", "rank 2 called broadcast #4"}},
      {"missing_call",
       [](Communicator& c, bool odd) {
         reduce(c, 4);
         if (!odd) reduce(c, 9);
       },
       {"call #5", "ranks 0, 1 called all_reduce #5 sum float32[9]",
        "rank 2 made no call after #4"}},
      {"in_a_group",
       [](Communicator& c, bool odd) {
         const Array x = on_gpu(c, 4), y = on_gpu(c, odd ? 6 : 4);
         c.group([&] {
           c.all_reduce(x, Reduction::kSum, x);
           c.all_reduce(y, Reduction::kSum, y);
         });
       },
       {"call #5", "rank 2 called all_reduce #5 sum float32[6]"}},
      // The step itself agrees, what came before it does not.
      {"before_the_capture", [](Communicator& c, bool) { reduce(c, 4); }, {"call #3"}},
  };
}

class CapturedCalls : public ::testing::TestWithParam<Case> {};

TEST_P(CapturedCalls, ThatDifferAreRefused) {
  const Case& one = GetParam();
  for (const std::vector<int>& hosts : {std::vector<int>{0, 0, 0}, {0, 0, 1}}) {
    const int ended = gpu().captures.ended, given_up = gpu().captures.given_up;
    std::mutex mutex;
    std::vector<std::string> texts;
    run_on_gpus(
        3,
        [&](Communicator& comm, Communicator&) {
          const bool odd = comm.rank() == 2;
          for (int i = 0; i < 2; ++i) reduce(comm, 8);
          reduce(comm, odd && one.name == std::string("before_the_capture") ? 9 : 8);
          const auto start = std::chrono::steady_clock::now();
          const std::string text = thrown_by([&] {
            cuda::Graph::capture(cuda_device(comm.rank()), [&] { one.step(comm, odd); });
          });
          EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
          std::lock_guard lock(mutex);
          texts.push_back(text);
          EXPECT_TRUE(comm.failed());
          EXPECT_EQ(thrown_by([&] { reduce(comm, 4); }), text);
        },
        hosts);
    for (const std::string& text : texts)
      for (const std::string& word : one.words) EXPECT_TRUE(holds(text, word)) << text;
    EXPECT_EQ(gpu().captures.ended, ended);
    EXPECT_EQ(gpu().captures.given_up, given_up + 3);
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, CapturedCalls, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CapturedCalls, ThatAgreeAreRecordedAndCompareNothingTwice) {
  const int ended = gpu().captures.ended;
  run_on_gpus(3, [](Communicator& comm, Communicator& control) {
    const Array x = on_gpu(comm, 4);
    // One comparison a capture, however many calls it has.
    for (const int calls : {1, 20}) {
      const uint64_t before = internals(control).calls();
      cuda::Graph::capture(cuda_device(comm.rank()), [&] {
        for (int i = 0; i < calls; ++i) comm.all_reduce(x, Reduction::kSum, x);
      });
      EXPECT_LE(internals(control).calls() - before, 2u);
    }
    // A step without calls of the communicator waits for nobody.
    if (comm.rank() == 0) cuda::Graph::capture(cuda_device(0), [] {});
    EXPECT_FALSE(comm.failed());
  });
  EXPECT_EQ(gpu().captures.ended, ended + 7);
}

// Ranks that exchange messages need not wait for the others, which may capture nothing.
TEST(CapturedCalls, MessagesConcernTwoRanks) {
  run_on_gpus(3, [](Communicator& comm, Communicator&) {
    if (comm.rank() == 2) return;
    const Array x = on_gpu(comm, 4);
    cuda::Graph::capture(cuda_device(comm.rank()),
                         [&] { comm.rank() == 0 ? comm.send(x, 1) : comm.recv(x, 0); });
    EXPECT_FALSE(comm.failed());
  });
}

TEST(CapturedCalls, ARankThatFailsInItsStepEndsTheOthers) {
  EXPECT_THROW(run_on_gpus(2,
                           [](Communicator& comm, Communicator&) {
                             const std::string text = thrown_by([&] {
                               cuda::Graph::capture(cuda_device(comm.rank()), [&] {
                                 reduce(comm, 4);
                                 if (comm.rank() == 1) throw std::out_of_range("no more samples");
                               });
                             });
                             EXPECT_TRUE(holds(text, "rank 1") && holds(text, "no more samples"))
                                 << text;
                           }),
               std::out_of_range);
}

// It cannot be done without the host, which a replay would leave out.
TEST(CapturedCalls, OfCommunicatorsThatNeedTheHostAreRefused) {
  gpu();
  comm::ThreadsOptions options;
  options.devices = {cuda_device(0), cuda_device(1)};
  comm::run_threads(
      2,
      [](Communicator& comm) {
        const std::string text =
            thrown_by([&] { cuda::Graph::capture(comm.device(), [&] { reduce(comm, 4); }); });
        EXPECT_TRUE(holds(text, "all_reduce: the \"threads\" communicator")) << text;
        EXPECT_TRUE(holds(text, "use \"nccl\"")) << text;
        comm.barrier();  // nothing was begun: the communicator goes on
      },
      options);
}

// Three times: what a communicator knows of graphs that are gone is forgotten at the next capture.
TEST(CapturedCalls, GraphsEndWithTheirCommunicator) {
  const int launched = gpu().captures.launched, destroyed = gpu().captures.destroyed;
  run_on_gpus(2, [](Communicator& comm, Communicator&) {
    cuda::Graph graph;
    for (int i = 0; i < 3; ++i)
      graph = cuda::Graph::capture(cuda_device(comm.rank()), [&] { reduce(comm, 4); });
    graph.launch();
    comm.close();
    const std::string text = error_of<Error>([&] { graph.launch(); });
    EXPECT_TRUE(holds(text, "communicator whose calls were recorded is closed")) << text;
  });
  EXPECT_EQ(gpu().captures.launched, launched + 2);
  EXPECT_EQ(gpu().captures.destroyed, destroyed + 6);
}

TEST(CapturedCalls, LaunchesAfterAFailureThrowIt) {
  const int launched = gpu().captures.launched;
  run_on_gpus(2, [](Communicator& comm, Communicator&) {
    cuda::Graph graph = cuda::Graph::capture(cuda_device(comm.rank()), [&] { reduce(comm, 4); });
    comm.abort("out of samples");
    const std::string text = thrown_by([&] { graph.launch(); });
    EXPECT_TRUE(holds(text, "out of samples")) << text;
  });
  EXPECT_EQ(gpu().captures.launched, launched);
}

TEST(CapturedCalls, ClosingInsideTheStepIsRefused) {
  const int ended = gpu().captures.ended;
  run_on_gpus(2, [](Communicator& comm, Communicator&) {
    const std::string text = thrown_by([&] {
      cuda::Graph::capture(cuda_device(comm.rank()), [&] {
        reduce(comm, 4);
        comm.close();
      });
    });
    EXPECT_TRUE(holds(text, "close: a graph that records calls")) << text;
    reduce(comm, 4);  // it is as before
  });
  EXPECT_EQ(gpu().captures.ended, ended);
}

TEST(CapturedCalls, AStepThatEndsTheCommunicatorItUsedIsRefused) {
  const int ended = gpu().captures.ended;
  run_on_gpus(2, [](Communicator& comm, Communicator& control) {
    const std::string text = error_of<Error>([&] {
      cuda::Graph::capture(cuda_device(comm.rank()), [&] {
        const CommunicatorPtr local = comm::make_communicator(
            std::make_unique<comm_suite::LooseTransport>(control.shared_from_this()),
            cuda_device(comm.rank()), {});
        reduce(*local, 4);
      });
    });
    EXPECT_TRUE(holds(text, "communicator whose calls were recorded is closed")) << text;
  });
  EXPECT_EQ(gpu().captures.ended, ended);
}

TEST(CapturedCalls, ACheckOutsideACaptureIsAnError) {
  EXPECT_THROW(cuda::add_capture_check([] { return std::string(); }, [](const std::string&) {}),
               Error);
}

TEST(RecordedUses, AreOneForEachCallAndStorage) {
  run_on_gpus(2, [](Communicator& comm, Communicator&) {
    using Uses = std::vector<std::pair<const Storage*, Stream>>;
    const Array x = on_gpu(comm, 4), y = on_gpu(comm, 4);
    const Stream current = current_stream(comm.device()), side = comm.side_stream();
    const auto expect = [](const char* what, const Uses& uses) {
      EXPECT_TRUE(std::exchange(PretendedGpu::uses(), {}) == uses) << what;
    };
    PretendedGpu::uses().clear();
    comm.all_reduce(x, Reduction::kSum, x);
    expect("in place", {{x.storage().get(), current}});
    comm.all_reduce(x, Reduction::kSum, y);
    expect("two arrays", {{x.storage().get(), current}, {y.storage().get(), current}});
    comm.all_reduce_async(x, Reduction::kSum, side);
    expect("asynchronous", {{x.storage().get(), side}});
    comm.all_gather_async(x(Slice(0, 2)), y, side);
    expect("asynchronous, two arrays", {{x.storage().get(), side}, {y.storage().get(), side}});
    comm.group([&] {
      comm.send(x, 1 - comm.rank());
      comm.recv(y, 1 - comm.rank());
    });
    expect("grouped", {{x.storage().get(), current}, {y.storage().get(), current}});
    comm.barrier();
    comm.all_reduce_value(1.0);
    expect("host calls", {});
  });
}

// ctest runs this by itself with the setting.
TEST(Nvtx, RangesOfCallsGoToTheBackend) {
  const char* setting = std::getenv("CATENA_NVTX");
  if (!setting || setting != std::string("1"))
    GTEST_SKIP() << "SKIPPED: needs CATENA_NVTX=1, which is read at the start of a process";
  run_on_gpus(2, [](Communicator& comm, Communicator&) {
    const Array x = on_gpu(comm, 4);
    PretendedGpu::ranges().clear();
    comm.all_reduce(x, Reduction::kSum, x);
    {
      const cuda::Range mine("mine");
      comm.barrier();
    }
    EXPECT_EQ(PretendedGpu::ranges(), "all_reduce()mine(barrier())");
  });
}

}  // namespace
}  // namespace catena
