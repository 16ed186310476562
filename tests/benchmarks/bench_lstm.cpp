// LSTM over sequences on a GPU, with each provider: forward in training, and forward with backward.
// The goals are those of docs/benchmarks.md; PyTorch's figures are printed beside them there.
#include <string>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/core/config.h"
#include "catena/core/device.h"
#include "catena/functions/connection/n_step_lstm.h"
#include "catena/kernels/rnn.h"
#include "timing.h"

namespace {

using namespace bench;
using namespace catena;
namespace F = catena::functions;

struct Case {
  const char* name;
  int64_t steps, batch, cells, layers;
  // Milliseconds: forward, forward + backward, in tf32 and in bf16.
  double goals[2][2];
};
constexpr Case kCases[] = {
    {"T35 B20 H650 L2", 35, 20, 650, 2, {{0.60, 1.8}, {0.45, 1.4}}},
    {"T35 B80 H650 L2", 35, 80, 650, 2, {{0.90, 2.4}, {0.60, 1.8}}},
    {"T100 B64 H1024 L1", 100, 64, 1024, 1, {{1.3, 3.6}, {0.9, 2.3}}},
};

// Milliseconds of the products alone, at the rate of large ones.
double products_ms(const Case& c, bool bf16, bool backward) {
  const double rate = bf16 ? 783e12 : 374e12;
  const double flops =
      2.0 * double(c.steps * c.batch) * double(4 * c.cells) * double(2 * c.cells * c.layers);
  return flops * (backward ? 3 : 1) / rate * 1e3;
}

void run_case(Table& table, const Sampling& sampling, Device device, const Case& c, bool bf16,
              const ProviderInfo& provider) {
  const ProviderScope scope("lstm/" + provider.name + ":only");
  const Dtype dtype = bf16 ? dtype::bfloat16 : dtype::float32;
  F::NStepLSTM lstm(c.layers, c.cells, c.cells, {.dtype = dtype});
  const Shape shape{c.steps, c.batch, c.cells};
  const Variable x(random::normal(shape, 0, 1, dtype::float32).astype(dtype));
  const Array gy = random::normal(shape, 0, 1, dtype::float32).astype(dtype);
  for (const bool backward : {false, true}) {
    const auto step = [&] {
      const Variable y = lstm(x).ys;
      if (!backward) return;
      lstm.zero_grads();
      y.set_grad(gy);
      y.backward();
    };
    const std::string name = std::string(c.name) + (backward ? ", with backward, " : ", ");
    try {
      const Times times = device_time(sampling, device, step);
      table.row({.name = name + provider.name,
                 .precision = bf16 ? "bf16" : "tf32",
                 .value = times.median * 1e3,
                 .unit = "ms",
                 .limit = products_ms(c, bf16, backward),
                 .limit_name = "products at the rate of 8192^3",
                 .goal = c.goals[bf16][backward]});
    } catch (const DeviceError&) {
      // Declined.
    }
  }
}

int body(int argc, char** argv) {
  const Arguments arguments(argc, argv, "LSTM over sequences on a GPU, with each provider.");
  if (!have_gpu("bench_lstm")) return 0;
  const Device device = cuda_device(0);
  const DeviceScope scope(device);
  config().matmul_precision = Precision::kTf32;
  const Sampling sampling{.warm_up = 3, .runs = arguments.quick() ? 3 : 9, .calls = 10};
  Table table("LSTM over sequences", device.name());
  for (const Case& c : kCases)
    for (const bool bf16 : {false, true})
      for (const ProviderInfo& provider : kernels::lstm.providers(DeviceType::kCuda))
        run_case(table, sampling, device, c, bf16, provider);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
