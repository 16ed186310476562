// LSTM over sequences with each provider: forward in training, and forward with backward.
// The goals are those of docs/benchmarks.md; PyTorch's figures are printed beside them there.
#include <string>

#include "catena/catena.h"
#include "catena/kernels/matmul.h"
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

// Milliseconds of the products of the forward pass alone: for each layer one over all steps, and
// one a step. Those of the gradients are twice as many operations.
double products_ms(const Sampling& sampling, Device device, const Case& c, Dtype dtype) {
  const auto draw = [&](const Shape& shape) {
    return random::normal(shape, 0, 1, dtype::float32).astype(dtype);
  };
  const Array x = draw({c.steps * c.batch, c.cells}), h = draw({c.batch, c.cells}),
              W = draw({4 * c.cells, c.cells}).T();
  const Array all = draw({c.steps * c.batch, 4 * c.cells}), gates = draw({c.batch, 4 * c.cells});
  const Times times = device_time(sampling, device, [&] {
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      kernels::matmul(device, {.a = &x, .b = &W, .output = &all});
      for (int64_t step = 0; step < c.steps; ++step)
        kernels::matmul(device, {.a = &h, .b = &W, .output = &gates, .accumulate = true});
    }
  });
  return times.median * 1e3;
}

void run_case(Table& table, const Sampling& sampling, Device device, const Case& c, bool bf16,
              const ProviderInfo& provider, double limit) {
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
      Row row{.name = name + provider.name,
              .precision = bf16              ? "bf16"
                           : device.is_cpu() ? "fp32"
                                             : "tf32",
              .value = times.median * 1e3,
              .unit = "ms",
              .limit = backward ? 3 * limit : limit,
              .limit_name = "products alone"};
      if (!device.is_cpu()) row.goal = c.goals[bf16][backward];
      table.row(row);
    } catch (const DeviceError&) {
      // Declined.
    }
  }
}

void run_device(const Sampling& sampling, Device device, const char* machine) {
  const DeviceScope scope(device);
  Table table("LSTM over sequences", machine);
  for (const Case& c : kCases) {
    for (const bool bf16 : {false, true}) {
      if (bf16 && device.is_cpu()) continue;
      const double limit =
          products_ms(sampling, device, c, bf16 ? dtype::bfloat16 : dtype::float32);
      for (const ProviderInfo& provider : kernels::lstm.providers(device.type()))
        run_case(table, sampling, device, c, bf16, provider, limit);
    }
  }
}

int body(int argc, char** argv) {
  const Arguments arguments(argc, argv, "LSTM over sequences, with each provider.",
                            {{"--cpu", "on the CPU, in float32"}});
  config().matmul_precision = Precision::kTf32;
  if (arguments.has("--cpu")) {
    run_device({.warm_up = 1, .runs = arguments.quick() ? 1 : 5, .calls = 1}, cpu(), "CPU");
    return 0;
  }
  if (!have_gpu("bench_lstm")) return 0;
  run_device({.warm_up = 3, .runs = arguments.quick() ? 3 : 9, .calls = 10}, cuda_device(0),
             "one GPU");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
