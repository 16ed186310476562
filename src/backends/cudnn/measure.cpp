#include "backends/cudnn/measure.h"

#include <algorithm>
#include <limits>

#include "backends/cuda/companion.h"
#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/core/error.h"
#include "catena/core/graph.h"
#include "catena/core/log.h"
#include "catena/core/stream.h"
#include "catena/kernels/copy.h"

namespace catena::cudnn {
namespace {

constexpr double kRound = 1;  // milliseconds
constexpr double kMostRuns = 10;
constexpr int kRounds = 2;  // the best one counts: other work on the GPU only makes runs slower
constexpr double kFailed = std::numeric_limits<double>::infinity();

// A row of numbers of both signs from 1/32 to 1/16: exact in every dtype, with normal products.
Array pattern(Dtype dtype, Device device) {
  std::vector<float> values(4096);
  uint32_t random = 1;
  for (float& value : values) {
    random = random * 1664525u + 1013904223u;
    const float magnitude = static_cast<float>(64 + (random >> 26)) / 2048;
    value = (random >> 25 & 1) != 0 ? -magnitude : magnitude;
  }
  const auto size = static_cast<int64_t>(values.size());
  return array(values, {1, size}).astype(dtype).to(device);
}

// At least `count` numbers of the pattern.
Array scratch(int64_t count, const Array& pattern) {
  const int64_t width = pattern.size();
  const Shape shape{(count + width - 1) / width, width};
  const Array filled = Array::uninitialized(shape, pattern.dtype(), pattern.device());
  kernels::copy(filled.device(), {broadcast_to(pattern, shape), filled});
  return filled;
}

// Memory of the sizes of a problem.
class Operands {
 public:
  Operands(const Problem& p, const Array& pattern)
      : x_(scratch(p.batch * p.channels * p.image_size(), pattern)),
        w_(scratch(p.filters * (p.channels / p.groups) * p.window.taps(), pattern)),
        y_(scratch(p.batch * p.filters * p.positions(), pattern)) {
    if (p.bias) b_ = scratch(p.filters, pattern);
  }
  Pointers pointers() const {
    return {x_.raw_data(), w_.raw_data(), b_.defined() ? b_.raw_data() : nullptr, y_.raw_data()};
  }

 private:
  Array x_, w_, y_, b_;
};

// Runs plans on the thread's current stream.
class Runner {
 public:
  Runner(const Problem& p, cudnnHandle_t handle)
      : device_(cuda_device(p.device)),
        handle_(handle),
        operands_(p, pattern(p.dtype, device_)),
        start_(Event::create(device_, true)),
        stop_(Event::create(device_, true)) {}

  // The first run, which loads kernels. False if cuDNN refuses it.
  bool warm_up(const Plan& plan) const {
    try {
      run(plan, 1);
      return true;
    } catch (const NotSupported&) {
    } catch (const DeviceError& error) {
      cudaGetLastError();  // what is wrong with the GPU itself is reported again
      logging::debug("cuDNN: an engine is left out: ", error.what());
    }
    return false;
  }
  // Milliseconds of one run, the mean of `count`. Waits for the stream.
  double time(const Plan& plan, int count) const {
    start_.record();
    run(plan, count);
    stop_.record();
    stop_.synchronize();
    return Event::elapsed_ms(start_, stop_) / count;
  }

 private:
  void run(const Plan& plan, int count) const {
    const StoragePtr workspace = gpu::scratch_memory(device_, static_cast<size_t>(plan.workspace));
    const cudaStream_t stream = gpu::companion_stream(device_);
    const ConvolutionBindings bindings(operands_.pointers());
    for (int i = 0; i < count; ++i)
      enqueue_plan(plan, bindings, workspace ? workspace->data : nullptr, stream, handle_);
  }

  Device device_;
  cudnnHandle_t handle_;
  Operands operands_;
  Event start_, stop_;
};

}  // namespace

bool is_measured(const Problem& problem) { return problem.tuned && cuda::capture_id() == 0; }

std::vector<double> measure(std::span<const Plan> plans, const Problem& problem,
                            cudnnHandle_t handle) {
  const Runner runner(problem, handle);
  std::vector<int> runs(plans.size(), 0);
  for (size_t i = 0; i < plans.size(); ++i)
    if (runner.warm_up(plans[i]))
      runs[i] = static_cast<int>(std::clamp(kRound / runner.time(plans[i], 1), 1.0, kMostRuns));
  std::vector<double> times(plans.size(), kFailed);
  // The plans take turns, so that a change of the GPU's clock meets all of them.
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < plans.size(); ++i)
      if (runs[i] > 0) times[i] = std::min(times[i], runner.time(plans[i], runs[i]));
  return times;
}

}  // namespace catena::cudnn
