// Kernels and copies of a GPU in traces.
#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "catena/array/linalg.h"
#include "catena/array/math.h"
#include "catena/core/device_trace.h"
#include "catena/core/graph.h"
#include "gpu.h"
#include "temp_folder.h"

namespace catena {
namespace {

using namespace test;
using Json = nlohmann::json;

const Device kTracedGpu = cuda_device(0);

struct TracedRun {
  Json trace;
  std::vector<Json> of(const std::string& category) const {
    std::vector<Json> found;
    for (const Json& event : trace.at("traceEvents"))
      if (event.value("cat", "") == category) found.push_back(event);
    return found;
  }
  bool has_cupti() const { return !trace.at("otherData").contains("device_problems"); }
  std::string problem() const { return trace.at("otherData").at("device_problems").dump(); }
};

template <class Work>
TracedRun traced(Work work) {
  const TempFolder folder;
  tracing::start(folder / "t.json");
  work();
  tracing::stop();
  return {Json::parse(read_file(folder / "t.json"))};
}

double end_of_event(const Json& event) {
  return event.at("ts").get<double>() + event.at("dur").get<double>();
}

#define CATENA_NEEDS_CUPTI(run) \
  if (!(run).has_cupti()) GTEST_SKIP() << "SKIPPED: needs CUPTI: " << (run).problem()

TEST(CudaDeviceSpans, KernelsAndCopiesAreOnTheHostsClock) {
  CATENA_NEEDS_GPUS(1);
  const Array host = whole_numbers({512, 512}, Dtype::kFloat32);
  matmul(host.to(kTracedGpu), host.to(kTracedGpu)).to(cpu());  // what the first call sets up
  const TracedRun run = traced([&] {
    const tracing::Range range("outside");
    const Array a = host.to(kTracedGpu);
    matmul(a, a).to(cpu());
  });
  CATENA_NEEDS_CUPTI(run);
  const auto kernels = run.of("kernel"), copies = run.of("copy");
  const Json outside = run.of("range").at(0);
  SCOPED_TRACE(run.trace.dump());
  ASSERT_GE(kernels.size(), 1u);
  EXPECT_GE(copies.size(), 2u);
  bool has_bytes = false;
  // The result has come back, so all of it lies inside of the host's range. CUPTI is right to some
  // microseconds.
  constexpr double kSlack = 50;
  for (const auto* events : {&kernels, &copies}) {
    for (const Json& event : *events) {
      EXPECT_GE(event.at("ts").get<double>(), outside.at("ts").get<double>() - kSlack) << event;
      EXPECT_LE(end_of_event(event), end_of_event(outside) + kSlack) << event;
      if (!event.contains("args")) continue;
      has_bytes |= event["args"].value("bytes", 0) == 512 * 512 * 4;
      if (event["args"].contains("launched")) {
        EXPECT_LE(event["args"]["launched"].get<double>(), event.at("ts").get<double>() + kSlack);
      }
    }
  }
  EXPECT_TRUE(has_bytes);
  EXPECT_TRUE(kernels[0].contains("args") && kernels[0]["args"].contains("launched"))
      << "the call that launched it is known";
}

TEST(CudaDeviceSpans, KernelsOfGraphs) {
  CATENA_NEEDS_GPUS(1);
  const Array x = zeros({1000}, {Dtype::kFloat32, kTracedGpu});
  add(x, 1, x);
  const TracedRun run = traced([&] {
    cuda::Graph graph = cuda::Graph::capture(kTracedGpu, [x] { add(x, 1, x); });
    for (int i = 0; i < 5; ++i) graph.launch();
  });
  CATENA_NEEDS_CUPTI(run);
  int replayed = 0;
  for (const Json& kernel : run.of("kernel"))
    replayed += kernel.contains("args") && kernel["args"].value("graph", false) ? 1 : 0;
  EXPECT_EQ(replayed, 5);
  EXPECT_EQ(x(0).item<float>(), 6);
}

// A graph that was instantiated before the trace began.
TEST(CudaDeviceSpans, KernelsOfOlderGraphs) {
  CATENA_NEEDS_GPUS(1);
  const Array x = zeros({1000}, {Dtype::kFloat32, kTracedGpu});
  add(x, 1, x);
  cuda::Graph graph = cuda::Graph::capture(kTracedGpu, [x] { add(x, 1, x); });
  const TracedRun run = traced([&] { graph.launch(); });
  CATENA_NEEDS_CUPTI(run);
  EXPECT_EQ(run.of("kernel").size(), 1u);
}

TEST(CudaDeviceSpans, StreamsHaveTracksOfTheirOwn) {
  CATENA_NEEDS_GPUS(1);
  const Array a = zeros({1000}, {Dtype::kFloat32, kTracedGpu});
  const Array b = zeros({1000}, {Dtype::kFloat32, kTracedGpu});
  add(a, 1, a);
  const Stream side = Stream::create(kTracedGpu);
  const TracedRun run = traced([&] {
    add(a, 1, a);
    {
      const StreamScope scope(side);
      add(b, 1, b);
    }
  });
  CATENA_NEEDS_CUPTI(run);
  const auto kernels = run.of("kernel");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_NE(kernels[0].at("tid"), kernels[1].at("tid"));
}

// The end of a trace waits for the work of GPUs, in which it must not break a capture.
TEST(CudaDeviceSpans, TracesMayEndWhileGraphsAreCaptured) {
  CATENA_NEEDS_GPUS(1);
  const Array x = zeros({1000}, {Dtype::kFloat32, kTracedGpu});
  add(x, 1, x);
  const TempFolder folder;
  std::atomic<bool> done{false};
  std::thread traces([&] {
    while (!done) {
      tracing::start(folder / "t.json");
      tracing::stop();
    }
  });
  std::string error;
  constexpr int kCaptures = 100;
  try {
    for (int i = 0; i < kCaptures; ++i) {
      cuda::Graph graph = cuda::Graph::capture(kTracedGpu, [x] {
        for (int k = 0; k < 10; ++k) add(x, 1, x);
      });
      graph.launch();
    }
  } catch (const std::exception& problem) {
    error = problem.what();
  }
  done = true;
  traces.join();
  EXPECT_EQ(error, "");
  EXPECT_EQ(x(0).item<float>(), 1 + 10 * kCaptures);
}

// Nothing of one trace is left for the next.
TEST(CudaDeviceSpans, TracesFollowEachOther) {
  CATENA_NEEDS_GPUS(1);
  const Array x = zeros({1000}, {Dtype::kFloat32, kTracedGpu});
  add(x, 1, x);
  for (const int launches : {3, 1, 2}) {
    const TracedRun run = traced([&] {
      for (int i = 0; i < launches; ++i) add(x, 1, x);
    });
    CATENA_NEEDS_CUPTI(run);
    EXPECT_EQ(run.of("kernel").size(), size_t(launches));
    add(x, 1, x);  // between traces
  }
}

}  // namespace
}  // namespace catena
