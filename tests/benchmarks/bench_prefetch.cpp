// What fetching batches costs a training step: the time of a step of about 150 us of device work
// without data, with batches from PrefetchIterator and from ResidentIterator (MNIST's sizes, batch
// 100). Usage: bench_prefetch [DEVICE]; the goal is at most 5 % of the step.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/datasets/prefetch.h"

namespace {

using namespace catena;
using namespace catena::datasets;

constexpr int64_t kSamples = 60000, kPixels = 784, kBatch = 100;
constexpr int kSteps = 600, kRepeats = 7;
constexpr double kStepGoal = 150;  // us

// Micro-seconds a step, the median of several runs.
double time_steps(Device device, const std::function<void()>& step) {
  std::vector<double> times;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    synchronize(device);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kSteps; ++i) step();
    synchronize(device);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    times.push_back(took.count() / kSteps);
  }
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

// Launches like those of a small network; the size is chosen so that a step takes about the goal.
class Work {
 public:
  explicit Work(Device device) : device_(device) {
    for (int64_t size = 1 << 10; size < (1 << 26); size += size / 4) {
      x_ = zeros({size}, {Dtype::kFloat32, device});
      if (time_steps(device, [this] { run(); }) >= kStepGoal) return;
    }
  }
  void run() {
    for (int i = 0; i < 18; ++i) add(x_, 1, x_);
  }

 private:
  Device device_;
  Array x_;
};

DatasetPtr images() {
  const Array pixels = zeros({kSamples, kPixels}, {Dtype::kUInt8, cpu(0)});
  const Array labels = zeros({kSamples}, {Dtype::kInt32, cpu(0)});
  return std::make_shared<ImageDataset>(pixels, labels, Shape{kPixels});
}

}  // namespace

int main(int argc, char** argv) {
  const bool gpu = device_count(DeviceType::kCuda) > 0;
  const Device device(argc > 1 ? argv[1] : gpu ? "cuda:0" : "cpu:0");
  const DatasetPtr data = images();
  const ShuffledIterator order(kSamples, kBatch, 1);
  PrefetchIterator prefetch(data, order, device);
  ResidentIterator resident(data, order, device);
  Work work(device);
  const double alone = time_steps(device, [&] { work.run(); });
  const auto report = [&](const char* name, BatchIterator& batches) {
    Batch kept;
    const double with = time_steps(device, [&] {
      kept = *batches.next();
      work.run();
    });
    const double alone_again = time_steps(device, [&] { batches.next(); });
    std::printf("%-10s step %7.1f us, with batches %7.1f us: %+.1f %% (batches alone: %.1f us)\n",
                name, alone, with, 100 * (with / alone - 1), alone_again);
  };
  std::printf("device %s, batch %lld of %lld float32\n", device.name().c_str(),
              static_cast<long long>(kBatch), static_cast<long long>(kPixels));
  report("prefetch", prefetch);
  report("resident", resident);
}
