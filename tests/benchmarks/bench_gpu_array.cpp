// Array operations on one GPU that are bound by memory, against a device copy, and the host cost of
// a small one, against an empty kernel. Vectors of ids, and the gradient of their table.

#include "catena/catena.h"
#include "catena/core/backend.h"
#include "raw_cuda.h"
#include "timing.h"

namespace {

using namespace bench;
using catena::Array;
using catena::Device;
namespace F = catena::functions;

// Ten element-wise operations on two arrays.
const auto kChain = [](auto x, auto y) {
  return maximum((x - y) * (x - y) * 0.5f + x * y - 1.f, 0.f) / 3.f + 2.f;
};

struct Bench {
  Device device;
  bool quick;
  Sampling sampling = quick ? Sampling{3, 3, 5} : Sampling{5, 9, 10};
  Table table;
  double copy_limit = 0;  // TB/s, read + write

  Array uniform(const catena::Shape& shape) const {
    return catena::random::default_state(device).uniform(shape, 0, 1,
                                                         {catena::dtype::float32, device});
  }

  // A case that moves `bytes`, reads and writes counted, at the best.
  template <class Call>
  void rate(const std::string& name, double bytes, double goal, Call&& call) {
    const double tbs = bytes / device_time(sampling, device, call).median * 1e-12;
    table.row({.name = name,
               .precision = "float32",
               .value = tbs,
               .unit = "TB/s",
               .limit = copy_limit,
               .limit_name = "device copy",
               .goal = goal});
  }

  void large();
  void matrices();
  void embedding(catena::Dtype dtype, double forward_goal, double both_goal);
  void tiny();
};

void Bench::large() {
  const int log2 = quick ? 26 : 28;
  const int64_t n = int64_t(1) << log2;
  const std::string size = "2^" + std::to_string(log2);
  const double bytes = 4.0 * double(n);
  const Array a = uniform({n}), b = uniform({n}),
              c = catena::empty({n}, {catena::dtype::float32, device});
  void* stream = catena::current_native_stream(device);
  copy_limit = 2 * bytes /
               device_time(sampling, device,
                           [&] { raw::copy(c.raw_data(), a.raw_data(), size_t(bytes), stream); })
                   .median *
               1e-12;
  table.row(
      {.name = "device copy " + size, .precision = "float32", .value = copy_limit, .unit = "TB/s"});
  rate("add " + size, 3 * bytes, 4.3, [&] { catena::add(a, b, c); });
  rate("copy " + size, 2 * bytes, 4.3, [&] { c.assign(a); });
  rate("sum " + size, bytes, 4.2, [&] { catena::sum(a); });
  // Each call allocates its result, as the fused function of a program would.
  const auto chain = catena::fuse(kChain);
  rate("fused chain of 10 operations " + size, 3 * bytes, 4.3, [&] { chain(a, b); });
  const auto total =
      catena::fuse([](catena::Fused x, catena::Fused y) { return sum(kChain(x, y)); });
  rate("fused chain of 10 operations and a sum " + size, 2 * bytes, 3.5, [&] { total(a, b); });
}

void Bench::matrices() {
  const int64_t n = quick ? 8192 : 16384;
  const std::string size = std::to_string(n) + "^2";
  const double bytes = 4.0 * double(n) * double(n);
  const Array a = uniform({n, n}), row = uniform({n}),
              c = catena::empty({n, n}, {catena::dtype::float32, device});
  const Array transposed = a.T();
  const catena::Variable x = catena::Variable::constant(a);
  rate("add row " + size, 2 * bytes, 4.2, [&] { catena::add(a, row, c); });
  rate("sum axis 0 " + size, bytes, 4.2, [&] { catena::sum(a, 0); });
  rate("sum axis 1 " + size, bytes, 4.2, [&] { catena::sum(a, 1); });
  rate("transpose to contiguous " + size, 2 * bytes, 3.5, [&] { c.assign(transposed); });
  catena::NoBackprop no_graph;
  rate("softmax " + size, 2 * bytes, 4.1, [&] { F::softmax(x, 1); });
}

// At the best each vector is read and written once forward; backward its gradient is read, and the
// table's gradient written.
void Bench::embedding(catena::Dtype dtype, double forward_goal, double both_goal) {
  const int64_t count = 32768, rows = 50304, size = 768;
  const F::EmbedID embed(rows, size, {.dtype = dtype});
  const Array ids = (uniform({count}) * float(rows)).astype(catena::Dtype::kInt32);
  const Array gy = uniform({count, size}).astype(dtype);
  const double vectors = double(gy.nbytes()), table_bytes = double(embed.W.data().nbytes());
  const auto row = [&](const char* pass, double bytes, double goal, const auto& call) {
    table.row({.name = std::string("embedding 32768 of 50304x768, ") + pass,
               .precision = to_string(dtype),
               .value = device_time(sampling, device, call).median * 1e3,
               .unit = "ms",
               .limit = bytes / copy_limit * 1e-9,
               .limit_name = "device copy of the bytes",
               .goal = goal});
  };
  row("forward", 2 * vectors, forward_goal, [&] { embed(ids); });
  row("forward + backward", 3 * vectors + table_bytes, both_goal, [&] {
    embed.W.zero_grad();
    const catena::Variable y = embed(ids);
    y.set_grad(gy);
    y.backward();
  });
}

void Bench::tiny() {
  const Sampling calls{200, quick ? 5 : 25, 400};
  const Array a = uniform({32, 32}), b = uniform({32, 32});
  void* stream = catena::current_native_stream(device);
  const double launch =
      host_time(calls, device, [&] { raw::launch_empty_kernel(stream); }).median * 1e6;
  table.row({.name = "empty kernel, host time", .precision = "", .value = launch, .unit = "us"});
  const double add = host_time(calls, device, [&] { catena::add(a, b); }).median * 1e6;
  table.row({.name = "add 32x32, host time",
             .precision = "float32",
             .value = add,
             .unit = "us",
             .limit = launch,
             .limit_name = "empty kernel",
             .goal = 3.2});
}

int body(int argc, char** argv) {
  const Arguments arguments(argc, argv,
                            "Array operations on cuda:0 against the limits of the GPU.");
  if (!have_gpu("bench_gpu_array")) return 0;
  const Device device = catena::cuda_device(0);
  catena::DeviceScope scope(device);
  catena::backend(device.type()).make_current(0);
  Bench bench{.device = device,
              .quick = arguments.quick(),
              .table = Table("Arrays on one GPU", catena::backend(device.type()).describe(0))};
  bench.large();
  bench.matrices();
  bench.embedding(catena::Dtype::kFloat32, 0.050, 0.125);
  bench.embedding(catena::Dtype::kBFloat16, 0.026, 0.065);
  bench.tiny();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
