// What a checkpoint costs training: the time for which save_async keeps the caller, the time until
// the checkpoint is on the disk, and the steps meanwhile against steps without one. Eight
// Linear(WIDTH) with Adam: 1.6 GB at 4096, the default of GPUs; 1024 on the CPU.
// Usage: bench_checkpoint [DEVICE [WIDTH [FOLDER]]]. Ranks of catena-run measure side by side, each
// in a folder of its own. Goals: at most 50 ms for 1.6 GB of a GPU, and
// steps of at most 1.05.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "catena/array/random.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss/mean_squared_error.h"
#include "catena/functions/math.h"
#include "catena/optimizers/adam.h"
#include "catena/training/checkpoint_folder.h"

namespace {

using namespace catena;
namespace F = functions;
using Clock = std::chrono::steady_clock;

constexpr int kLayers = 8, kPlainSteps = 20, kSaves = 5;
constexpr int64_t kBatch = 64;

struct Layers : FunctionSet {
  std::vector<F::Linear> layers;
  CATENA_FUNCTIONS(layers)
  explicit Layers(int64_t width) {
    for (int k = 0; k < kLayers; ++k) layers.emplace_back(width, width);
  }
  Variable operator()(Variable h) {
    for (F::Linear& layer : layers) h = F::tanh(layer(h));
    return h;
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + long(values.size()) / 2, values.end());
  return values[values.size() / 2];
}

class Training {
 public:
  Training(Device device, int64_t width)
      : device_(device), scope_(device), model_(width), x_(random::normal({kBatch, width})) {
    x_ = x_.astype(dtype::float32).to(device);
    model_.to(device);
    adam_.setup(model_);
    state.add("model", model_);
    state.add("optimizer", adam_);
  }
  // Milliseconds of a step that the device has done.
  double step() {
    const auto start = Clock::now();
    adam_.zero_grads();
    F::mean_squared_error(model_(Variable::constant(x_)), Variable::constant(x_)).backward();
    adam_.update();
    synchronize(device_);
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }
  double plain_step() {
    std::vector<double> times;
    for (int i = 0; i < kPlainSteps; ++i) times.push_back(step());
    return median(times);
  }
  serializers::Checkpoint state;

 private:
  Device device_;
  DeviceScope scope_;
  Layers model_;
  Array x_;
  optimizers::Adam adam_{1e-4};
};

void measure(Device device, int64_t width, const std::string& path) {
  Training training(device, width);
  training.plain_step();
  training::CheckpointFolder folder(path, nullptr, {.keep = 1});
  const auto start = Clock::now();
  folder.reserve(training.state);
  const std::chrono::duration<double, std::milli> reserved = Clock::now() - start;
  std::vector<double> blocked, written, first, during, plain;
  for (int save = 0; save < kSaves; ++save) {
    plain.push_back(training.plain_step());
    folder.save_async(training.state, save);
    blocked.push_back(1e3 * folder.times().blocked);
    first.push_back(training.step());  // on a GPU it waits for the copies
    while (folder.times().written == 0) during.push_back(training.step());
    folder.wait();
    written.push_back(folder.times().written);
  }
  const double gigabytes = 1e-9 * double(folder.times().bytes), step = median(plain);
  std::printf("%s, 8 x Linear(%lld), Adam: %.3f GB\n", device.name().c_str(),
              static_cast<long long>(width), gigabytes);
  std::printf("host memory reserved and touched in %8.2f ms\n", reserved.count());
  std::printf("save_async blocks                   %8.2f ms (%.1f GB/s)\n", median(blocked),
              gigabytes / (1e-3 * median(blocked)));
  std::printf("complete on the disk after          %8.2f s  (%.2f GB/s)\n", median(written),
              gigabytes / median(written));
  std::printf("a plain step                        %8.2f ms\n", step);
  std::printf("the first step after a save         %8.2f ms\n", median(first));
  if (!during.empty())
    std::printf("steps during a save, %5zu          %8.2f ms, %.3f of a plain one\n", during.size(),
                median(during), median(during) / step);
}

}  // namespace

int main(int argc, char** argv) {
  const Device device(argc > 1 ? argv[1] : "cpu:0");
  const int64_t width = argc > 2 ? std::atoll(argv[2]) : device.is_cuda() ? 4096 : 1024;
  const char* const rank = std::getenv("CATENA_RANK");
  const std::string folder = argc > 3 ? argv[3] : "bench_checkpoint.tmp";
  const std::string path = rank ? folder + "-" + rank : folder;
  measure(device, width, path);
  std::filesystem::remove_all(path);
}
