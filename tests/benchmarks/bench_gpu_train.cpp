// Training steps on one GPU, eager and replayed as one CUDA graph, against what their launches or
// their matrix products alone take.
#include <functional>

#include "catena/array/creation.h"
#include "catena/autograd/parameter.h"
#include "catena/core/backend.h"
#include "catena/core/config.h"
#include "catena/core/graph.h"
#include "raw_cuda.h"
#include "timing.h"
#include "workloads.h"

namespace {

using namespace bench;
using catena::Device;
using catena::Precision;

struct Goals {
  std::optional<double> eager, replayed;
};

struct Bench {
  Device device;
  bool quick;
  Table table;
  double bytes_per_second = 0;  // of a device copy, read + write
  int runs = quick ? 3 : 9, calls = quick ? 30 : 200;

  void* stream() const { return catena::current_native_stream(device); }
  void measure_copy();
  void chain();
  void mnist(const std::string& rule, int64_t batch, bool tf32, const Goals& goals);
  void linear_stack();
  void update(catena::Dtype dtype);
  void network(const std::string& title, const std::string& network, int64_t batch,
               const std::string& rule, bool tf32, catena::Dtype dtype, const Goals& goals);
  // A step of a row's name and limit, and a graph of the step that can be captured.
  void eager_and_replayed(Row row, const Goals& goals, const Sampling& sampling,
                          catena::Optimizer& optimizer, const std::function<void()>& step,
                          const std::function<void()>& captured);
  // The matrix products of a step called back to back, then the update's pass over memory.
  double products_us(const std::vector<int64_t>& widths, int64_t batch, bool tf32, double update,
                     const Sampling& sampling) const;
};

const char* name_of(bool tf32) { return tf32 ? "tf32" : "float32"; }
void set_precision(bool tf32) {
  catena::config().matmul_precision = tf32 ? Precision::kTf32 : Precision::kFloat32;
}

void Bench::measure_copy() {
  const int64_t bytes = int64_t(1) << 28;
  const catena::Array a = catena::zeros({bytes}, {catena::dtype::uint8, device}),
                      b = catena::empty_like(a);
  const double seconds = device_time({3, 5, 10}, device, [&] {
                           raw::copy(b.raw_data(), a.raw_data(), size_t(bytes), stream());
                         }).median;
  bytes_per_second = 2 * double(bytes) / seconds;
}

double Bench::products_us(const std::vector<int64_t>& widths, int64_t batch, bool tf32,
                          double update, const Sampling& sampling) const {
  const raw::LayerProducts products(widths, batch, tf32);
  const double seconds = device_time(sampling, device, [&] { products.run(stream()); }).median;
  return (seconds + update / bytes_per_second) * 1e6;
}

void Bench::chain() {
  constexpr int kLaunches = 101;  // 20 x 2 forward, 20 x 3 backward, the sum
  SharedWeightChain chain(device);
  const Sampling sampling{10, runs, calls};
  const double eager_limit =
      wall_time({200, runs, 1000}, device, [&] { raw::launch_empty_kernel(stream()); }).median *
      1e6 * kLaunches;
  const double eager = wall_time(sampling, device, [&] { chain.step(); }).median * 1e6;
  table.row({.name = "20 x (matmul 32x32, relu), eager",
             .precision = "float32",
             .value = eager,
             .unit = "us",
             .limit = eager_limit,
             .limit_name = "101 empty launches",
             .goal = 400});
  const raw::EmptyGraph empty(kLaunches);
  const double replay_limit =
      wall_time(sampling, device, [&] { empty.launch(stream()); }).median * 1e6;
  catena::cuda::Graph graph = catena::cuda::Graph::capture(device, [&] { chain.step(); });
  const double replayed = wall_time(sampling, device, [&] { graph.launch(); }).median * 1e6;
  table.row({.name = "20 x (matmul 32x32, relu), replayed",
             .precision = "float32",
             .value = replayed,
             .unit = "us",
             .limit = replay_limit,
             .limit_name = "graph of 101 empty kernels",
             .goal = 170});
}

void Bench::eager_and_replayed(Row row, const Goals& goals, const Sampling& sampling,
                               catena::Optimizer& optimizer, const std::function<void()>& step,
                               const std::function<void()>& captured) {
  const std::string name = row.name;
  row.unit = "us";
  row.name = name + ", eager";
  row.value = wall_time(sampling, device, step).median * 1e6;
  row.goal = goals.eager;
  table.row(row);
  for (int i = 0; i < 3; ++i) captured();
  optimizer.prepare_for_capture();
  catena::cuda::Graph graph = catena::cuda::Graph::capture(device, captured);
  row.name = name + ", replayed";
  row.value = wall_time(sampling, device, [&] { graph.launch(); }).median * 1e6;
  row.goal = goals.replayed;
  table.row(row);
}

void Bench::mnist(const std::string& rule, int64_t batch, bool tf32, const Goals& goals) {
  set_precision(tf32);
  MnistStep mnist(device, batch);
  const auto optimizer = make_rule(rule);
  optimizer->setup(mnist.model());
  const Sampling sampling{20, runs, calls};
  const double limit = products_us(mnist.widths(), batch, tf32,
                                   update_bytes(rule, mnist.model().parameter_count()), sampling);
  eager_and_replayed(
      {.name = "MNIST step, batch " + std::to_string(batch) + ", " + rule,
       .precision = name_of(tf32),
       .limit = limit,
       .limit_name = "8 products + one pass"},
      goals, sampling, *optimizer, [&] { mnist.step(*optimizer); },
      [&] { mnist.step_at_cursor(*optimizer); });
}

void Bench::linear_stack() {
  constexpr int kLayers = 8;
  const int64_t width = quick ? 1024 : 4096, batch = 1024;
  set_precision(true);
  LinearStack stack(device, kLayers, width, batch);
  const auto optimizer = make_rule("SGD");
  optimizer->setup(stack.model());
  const Sampling sampling{5, quick ? 3 : 7, 20};
  const std::vector<int64_t> widths(kLayers + 1, width);
  const double limit = products_us(widths, batch, true,
                                   update_bytes("SGD", stack.model().parameter_count()), sampling) *
                       1e-3;
  const double eager = wall_time(sampling, device, [&] { stack.step(*optimizer); }).median * 1e3;
  const std::string w = std::to_string(width);
  table.row({.name = "8 x Linear(" + w + ", " + w + "), batch 1024, SGD, eager",
             .precision = "tf32",
             .value = eager,
             .unit = "ms",
             .limit = limit,
             .limit_name = "23 products + one pass"});
}

// One update by AdamW, of parameters that are float32, or 16-bit with float32 copies in the
// optimizer: either moves 28 bytes for each.
void Bench::update(catena::Dtype dtype) {
  const int64_t count = int64_t(1) << (quick ? 22 : 26);
  catena::Parameter p(catena::zeros({count}, {dtype, device}), "p");
  const auto optimizer = make_rule("AdamW");
  optimizer->setup(catena::Parameters{p});
  p.set_grad(catena::ones({count}, {dtype, device}));
  const double seconds = device_time({5, runs, 20}, device, [&] { optimizer->update(); }).median;
  table.row({.name = "AdamW update, 2^" + std::to_string(quick ? 22 : 26) + " parameters",
             .precision = catena::name(dtype),
             .value = seconds * 1e6,
             .unit = "us",
             .limit = update_bytes("AdamW", count) / bytes_per_second * 1e6,
             .limit_name = "one pass",
             .goal = {}});
}

void Bench::network(const std::string& title, const std::string& network, int64_t batch,
                    const std::string& rule, bool tf32, catena::Dtype dtype, const Goals& goals) {
  set_precision(tf32);
  NetworkStep network_step(network, device, batch, dtype);
  const auto optimizer = make_rule(rule);
  optimizer->setup(network_step.model());
  const auto step = [&] { network_step.step(*optimizer); };
  eager_and_replayed({.name = title + ", batch " + std::to_string(batch) + ", " + rule,
                      .precision = tf32 ? name_of(tf32) : catena::name(dtype)},
                     goals, {10, quick ? 3 : 7, 20}, *optimizer, step, step);
}

int body(int argc, char** argv) {
  const Arguments arguments(argc, argv, "Training steps on cuda:0, eager and replayed.");
  if (!have_gpu("bench_gpu_train")) return 0;
  const Device device = catena::cuda_device(0);
  catena::DeviceScope scope(device);
  catena::backend(device.type()).make_current(0);
  Bench bench{
      .device = device,
      .quick = arguments.quick(),
      .table = Table("Training steps on one GPU", catena::backend(device.type()).describe(0))};
  bench.measure_copy();
  bench.chain();
  bench.mnist("SGD", 100, false, {150, 110});
  bench.mnist("SGD", 100, true, {120, 75});
  bench.mnist("Adam", 100, false, {180, 120});
  bench.mnist("Adam", 100, true, {});
  bench.mnist("SGD", 1000, false, {{}, 320});
  bench.mnist("SGD", 1000, true, {{}, 170});
  bench.linear_stack();
  bench.network("LeNet step", "lenet", 64, "SGD", true, catena::Dtype::kFloat32, {140, 70});
  for (const catena::Dtype dtype : {catena::Dtype::kFloat32, catena::Dtype::kBFloat16}) {
    bench.update(dtype);
    bench.network("residual network", "resnet", 256, "AdamW", false, dtype, {});
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
