// Array routines on one device, at sizes from small to memory-bound. peers_routines.py times the
// same cases, by the same names, with NumPy, PyTorch and CuPy.
//   bench_routines [--quick] [--large] [--cpu | --gpu]
// The limit of a row is the time a contiguous copy of the same run would take for the bytes that
// the case has to read and write once. On a GPU the cases of 10^3 elements have a second row, ",
// host": the host's time for a call beside as many launches of an empty kernel as the call makes.
#include <algorithm>
#include <functional>

#include "catena/catena.h"
#include "catena/core/backend.h"
#include "timing.h"
#ifdef BENCH_CUDA
#include "raw_cuda.h"
#endif

namespace {

using namespace bench;
using catena::Array;
using catena::Axes;
using catena::Device;
using catena::Dtype;
using catena::Shape;
using catena::Slice;

// Shares of the copy's rate that a case must reach.
constexpr double kContiguous = 0.90, kPermuted = 0.75, kSliced = 0.45, kReduction = 0.85;
// Smaller cases have no goal: their launches take longer than their bytes.
constexpr double kLargeBytes = 256 << 20;

// Host time that a call of k launches may take: k times kLaunches empty launches and kMore.
constexpr double kLaunches = 1.15, kMore = 0.1;  // us

#ifdef BENCH_CUDA
double empty_launch(Device device) {
  void* stream = catena::current_native_stream(device);
  return host_time({200, 25, 400}, device, [&] { raw::launch_empty_kernel(stream); }).median * 1e6;
}
// Kernels, copies and fills of a call; none where the host waits in it.
std::optional<int> launches_of(Device device, const std::function<void()>& call) {
  int count = 0;
  try {
    catena::cuda::Graph::capture(device, [&] {
      call();
      count = raw::captured_launches(catena::current_native_stream(device));
    });
  } catch (const std::exception&) {
    return {};
  }
  return count;
}
#else
double empty_launch(Device) { return 0; }
std::optional<int> launches_of(Device, const std::function<void()>&) { return {}; }
#endif

struct Bench {
  Device device;
  bool quick;
  Table table;
  double copy_rate = 0;  // bytes a second, read + write
  double launch = 0;     // us, of an empty kernel
  bool small = false;    // cases are bound by their launches

  Array uniform(const Shape& shape, Dtype dtype = Dtype::kFloat32) const {
    return catena::random::default_state(device)
        .uniform(shape, 0, 1, {Dtype::kFloat32, device})
        .astype(dtype, false);
  }
  Array integers(const Shape& shape, int64_t high) const {
    return catena::random::default_state(device).integers(shape, 0, high, {Dtype::kInt64, device});
  }

  // Fewer calls of what takes longer.
  double seconds(const std::function<void()>& call) const {
    const Times once = wall_time({2, 1, 1}, device, call);
    const int calls = int(std::clamp(2e-3 / once.median, 1.0, 200.0));
    if (device.is_cpu()) {  // shared with other programs: the shortest runs say what the code does
      const int runs = once.median > 0.2 ? 3 : once.median > 0.02 ? 7 : 25;
      return std::min(once.minimum, device_time({1, runs, calls}, device, call).minimum);
    }
    const int runs = once.median > 0.2 || quick ? 3 : 9;
    return device_time({1, runs, calls}, device, call).median;
  }

  void time(const std::string& name, Dtype dtype, double bytes, double share,
            const std::function<void()>& call) {
    const double limit = bytes / copy_rate;
    Row row{
        .name = name, .precision = catena::name(dtype), .value = seconds(call) * 1e6, .unit = "us"};
    if (bytes > 0) {
      row.limit = limit * 1e6;
      row.limit_name = "copy rate";
      if (share > 0 && bytes >= kLargeBytes) row.goal_ratio = 1 / share;
    }
    table.row(row);
    if (small && device.is_cuda()) host_row(name, dtype, call);
  }

  void host_row(const std::string& name, Dtype dtype, const std::function<void()>& call);
  void measure_launch();
  void measure_copy(int64_t n);
  void elementwise(int64_t n, const std::string& size);
  void matrices(int64_t side);
  void casts(int64_t n, const std::string& size);
  void types(int64_t n, const std::string& size);
  void truths(int64_t n, const std::string& size);
  void reductions(const Shape& shape, const std::string& size);
  void indexing(int64_t rows, int64_t columns);
  void joining(int64_t n, const std::string& size);
  void permutations(const Shape& shape, const std::string& size);
  void random(int64_t n, const std::string& size);
  void user_kernel(int64_t n, const std::string& size);
  void scans(int64_t n, const std::string& size);
  void sorts(int64_t n, const std::string& size);
  void fused(int64_t n, const std::string& size);
};

void Bench::measure_launch() {
  if (!device.is_cuda()) return;
  launch = empty_launch(device);
  table.row({.name = "empty launch, host", .precision = "", .value = launch, .unit = "us"});
}

void Bench::host_row(const std::string& name, Dtype dtype, const std::function<void()>& call) {
  const std::optional<int> count = launches_of(device, call);
  Row row{.name = name + (count ? ", host" : ", host, with its wait"),
          .precision = catena::name(dtype),
          .value = host_time({20, 9, 50}, device, call).median * 1e6,
          .unit = "us"};
  if (count.value_or(0) > 0) {
    row.limit = *count * launch;
    row.limit_name = std::to_string(*count) + (*count == 1 ? " launch" : " launches");
    row.goal = *count * (kLaunches * launch + kMore);
  }
  table.row(row);
}

void Bench::measure_copy(int64_t n) {
  const Array a = uniform({n}), b = catena::empty_like(a);
  copy_rate = 8.0 * double(n) / seconds([&] { b.assign(a); });
  table.row({.name = "copy", .precision = "float32", .value = copy_rate * 1e-9, .unit = "GB/s"});
}

void Bench::elementwise(int64_t n, const std::string& size) {
  const Array a = uniform({n}), b = uniform({n}), c = uniform({n}), out = catena::empty_like(a);
  const double each = 4.0 * double(n);
  const Dtype f = Dtype::kFloat32;
  time("copy " + size, f, 2 * each, kContiguous, [&] { out.assign(a); });
  time("sqrt " + size, f, 2 * each, kContiguous, [&] { catena::sqrt(a, out); });
  time("exp " + size, f, 2 * each, 0, [&] { catena::exp(a, out); });
  time("add " + size, f, 3 * each, kContiguous, [&] { catena::add(a, b, out); });
  time("add scalar " + size, f, 2 * each, kContiguous, [&] { catena::add(a, 2.0, out); });
  time("clip by arrays " + size, f, 4 * each, kContiguous, [&] { catena::clip(a, b, c, out); });
  time("less " + size, f, 2.25 * each, 0, [&] { catena::less(a, b); });
  if (n >= 1 << 20) {
    const Array half = a(Slice(0, catena::none, 2)), other = b(Slice(0, catena::none, 2));
    const Array to = catena::empty_like(half);
    time("add every other " + size, f, 1.5 * each, kSliced, [&] { catena::add(half, other, to); });
  }
}

void Bench::matrices(int64_t side) {
  const std::string size = std::to_string(side) + "^2";
  const double each = 4.0 * double(side) * double(side);
  const Array a = uniform({side, side}), b = uniform({side, side}), row = uniform({side}),
              column = uniform({side, 1}), out = catena::empty_like(a);
  const Dtype f = Dtype::kFloat32;
  time("add row " + size, f, 2 * each, kContiguous, [&] { catena::add(a, row, out); });
  time("add column " + size, f, 2 * each, kContiguous, [&] { catena::add(a, column, out); });
  time("add transposed " + size, f, 3 * each, kPermuted, [&] { catena::add(a, b.T(), out); });
  time("copy transposed " + size, f, 2 * each, kPermuted, [&] { out.assign(a.T()); });
  const int64_t q = side / 32;
  const Array a4 = a.reshape({32, q, 32, q}).transpose({2, 1, 0, 3}),
              b4 = b.reshape({32, q, 32, q}).transpose({0, 3, 2, 1});
  const Array out4 = catena::empty(a4.shape(), {f, device});
  time("add 4-d, two outer axes swapped " + size, f, 3 * each, kPermuted,
       [&] { catena::add(a4, a4, out4); });
  const Array c4 = catena::empty(b4.shape(), {f, device});
  time("copy 4-d, inner axis moved " + size, f, 2 * each, kPermuted, [&] { c4.assign(b4); });
  time("cumsum axis 0 " + size, f, 2 * each, 0, [&] { catena::cumsum(a, 0); });
  time("cumsum axis 1 " + size, f, 2 * each, 0, [&] { catena::cumsum(a, 1); });
}

void Bench::casts(int64_t n, const std::string& size) {
  const Array f32 = uniform({n}), i32 = integers({n}, 1000).astype(Dtype::kInt32);
  const auto cast = [&](const Array& from, Dtype to) {
    const double bytes = double(n) * double(from.itemsize() + int64_t(catena::itemsize(to)));
    const Array out = catena::empty({n}, {to, device});
    time(std::string("cast to ") + catena::name(to) + " " + size, from.dtype(), bytes, kContiguous,
         [&] { out.assign(from); });
  };
  cast(f32, Dtype::kFloat16);
  cast(f32, Dtype::kFloat64);
  cast(f32, Dtype::kInt32);
  cast(i32, Dtype::kFloat32);
  cast(i32, Dtype::kInt64);
}

// The everyday operations in the other dtypes.
void Bench::types(int64_t n, const std::string& size) {
  for (const Dtype d : {Dtype::kFloat64, Dtype::kFloat16, Dtype::kInt64, Dtype::kInt32,
                        Dtype::kInt16, Dtype::kUInt8}) {
    const auto values = [&] {
      return is_float(d) ? uniform({n}, d) : integers({n}, 100).astype(d, false);
    };
    const Array a = values(), b = values(), out = catena::empty_like(a);
    const Array half = a(Slice(0, catena::none, 2)),
                back = a(Slice(catena::none, catena::none, -1));
    const Array chosen = catena::less(a, b), halves = catena::empty_like(half);
    const double each = double(n) * double(a.itemsize());
    time("copy " + size, d, 2 * each, 0, [&] { out.assign(a); });
    time("copy every other " + size, d, 1.5 * each, 0, [&] { halves.assign(half); });
    time("copy reversed " + size, d, 2 * each, 0, [&] { out.assign(back); });
    time("add " + size, d, 3 * each, 0, [&] { catena::add(a, b, out); });
    time("multiply " + size, d, 3 * each, 0, [&] { catena::multiply(a, b, out); });
    time("maximum " + size, d, 3 * each, 0, [&] { catena::maximum(a, b, out); });
    time("clip by arrays " + size, d, 4 * each, 0, [&] { catena::clip(a, b, b, out); });
    time("less " + size, d, 2 * each + double(n), 0, [&] { catena::less(a, b); });
    time("equal " + size, d, 2 * each + double(n), 0, [&] { catena::equal(a, b); });
    time("where " + size, d, 3 * each + double(n), 0, [&] { catena::where(chosen, a, b); });
    time("sum " + size, d, each, 0, [&] { catena::sum(a); });
    time("max " + size, d, each, 0, [&] { catena::amax(a); });
    time("argmax " + size, d, each, 0, [&] { catena::argmax(a); });
    if (!is_float(d)) continue;
    time("mean " + size, d, each, 0, [&] { catena::mean(a); });
    time("var " + size, d, 2 * each, 0, [&] { catena::var(a); });
  }
}

// What has no float32 row elsewhere, and the routines of bool.
void Bench::truths(int64_t n, const std::string& size) {
  const Array a = uniform({n}), b = uniform({n}), out = catena::empty_like(a);
  const Array p = catena::less(a, b), q = catena::less(a, 0.5), r = catena::empty_like(p);
  const Array ones = catena::less(a, 2.0), none = catena::less(a, -1.0);
  const double each = 4.0 * double(n), bytes = double(n);
  const Dtype f = Dtype::kFloat32, t = Dtype::kBool;
  time("maximum " + size, f, 3 * each, 0, [&] { catena::maximum(a, b, out); });
  time("where " + size, f, 3 * each + bytes, 0, [&] { catena::where(p, a, b); });
  time("sum " + size, f, each, 0, [&] { catena::sum(a); });
  time("max " + size, f, each, 0, [&] { catena::amax(a); });
  time("argmax " + size, f, each, 0, [&] { catena::argmax(a); });
  time("mean " + size, f, each, 0, [&] { catena::mean(a); });
  time("var " + size, f, 2 * each, 0, [&] { catena::var(a); });
  time("logical_and " + size, t, 3 * bytes, 0, [&] { catena::logical_and(p, q, r); });
  time("logical_not " + size, t, 2 * bytes, 0, [&] { catena::logical_not(p, r); });
  time("where " + size, t, 4 * bytes, 0, [&] { catena::where(p, q, r); });
  time("sum " + size, t, bytes, 0, [&] { catena::sum(p); });
  time("all " + size, t, bytes, 0, [&] { catena::all(ones); });
  time("any " + size, t, bytes, 0, [&] { catena::any(none); });
  const Array wide = catena::empty({n}, {f, device});
  time("cast to float32 " + size, t, bytes + each, 0, [&] { wide.assign(p); });
}

void Bench::reductions(const Shape& shape, const std::string& size) {
  const Array a = uniform(shape);
  const double bytes = 4.0 * double(a.size());
  const Dtype f = Dtype::kFloat32;
  const std::vector<std::pair<std::string, Axes>> subsets{
      {"0", {0}},      {"1", {1}},      {"2", {2}},        {"0,1", {0, 1}},
      {"0,2", {0, 2}}, {"1,2", {1, 2}}, {"all", {0, 1, 2}}};
  for (const auto& [text, axes] : subsets) {
    double results = 4.0;
    for (int d = 0; d < 3; ++d)
      if (std::find(axes.begin(), axes.end(), d) == axes.end()) results *= double(shape[size_t(d)]);
    time("sum axes " + text + " of " + size, f, bytes + results, kReduction,
         [&] { catena::sum(a, axes); });
  }
  const auto with_results = [&](int axis) { return bytes + bytes / double(shape[size_t(axis)]); };
  time("max axes 1 of " + size, f, with_results(1), kReduction, [&] { catena::amax(a, 1); });
  time("mean axes 2 of " + size, f, with_results(2), kReduction, [&] { catena::mean(a, 2); });
  for (int axis = 0; axis < 3; ++axis) {
    time("argmax axis " + std::to_string(axis) + " of " + size, f, 2 * with_results(axis) - bytes,
         0, [&] { catena::argmax(a, axis); });
  }
}

void Bench::indexing(int64_t rows, int64_t columns) {
  const Array a = uniform({rows, columns});
  const Array some = integers({rows}, rows), flat = a.ravel(),
              places = integers({rows * columns / 4}, rows * columns);
  const std::string size = std::to_string(rows) + "x" + std::to_string(columns);
  const double bytes = 4.0 * double(a.size());
  const Dtype f = Dtype::kFloat32;
  // As the peers: nothing is looked at before.
  const auto mode = catena::OutOfRange::kClip, wrap = catena::OutOfRange::kWrap;
  time("take rows of " + size, f, 2 * bytes, 0, [&] { catena::take(a, some, 0, mode); });
  time("take columns of " + size, f, 2 * bytes, 0,
       [&] { catena::take(a, some(Slice(0, columns)), 1, wrap); });
  time("take elements of " + size, f, 0, 0, [&] { catena::take(flat, places, 0, mode); });
  const Array sums = catena::zeros_like(a), all_sums = sums.ravel();
  const Array values = flat(Slice(0, places.size()));
  time("put elements of " + size, f, 0, 0, [&] { catena::put(all_sums, places, values, mode); });
  time("scatter_add elements of " + size, f, 0, 0,
       [&] { catena::scatter_add(all_sums, places, values, 0, wrap); });
  time("scatter_add rows of " + size, f, 3 * bytes, 0,
       [&] { catena::scatter_add(sums, some, a, 0, wrap); });
  time("sort rows of " + size, f, 0, 0, [&] { catena::sort(a, 1); });
  const Array halves = a.astype(Dtype::kFloat16), half_sums = catena::zeros_like(halves);
  time("scatter_add rows of " + size, Dtype::kFloat16, 1.5 * bytes, 0,
       [&] { catena::scatter_add(half_sums, some, halves, 0, wrap); });
}

void Bench::joining(int64_t n, const std::string& size) {
  const int64_t columns = 1000;
  const Array a = uniform({n / columns, columns}), b = uniform({n / columns, columns});
  const double bytes = 4.0 * double(a.size());
  const Dtype f = Dtype::kFloat32;
  const std::vector<Array> both{a, b};
  time("concatenate axis 0 " + size, f, 4 * bytes, 0, [&] { catena::concatenate(both, 0); });
  time("concatenate axis 1 " + size, f, 4 * bytes, 0, [&] { catena::concatenate(both, 1); });
  time("stack axis 2 " + size, f, 4 * bytes, 0, [&] { catena::stack(both, 2); });
  time("split in 4 and copy " + size, f, 2 * bytes, 0, [&] {
    for (const Array& part : catena::split(a, int64_t(4), 1)) part.copy();
  });
}

void Bench::permutations(const Shape& shape, const std::string& size) {
  const Array a = uniform(shape);
  for (const Axes& axes :
       {Axes{0, 2, 1}, Axes{1, 0, 2}, Axes{1, 2, 0}, Axes{2, 0, 1}, Axes{2, 1, 0}}) {
    const Array view = a.transpose(axes), out = catena::empty(view.shape(), {a.dtype(), device});
    time("permute " + std::to_string(axes[0]) + std::to_string(axes[1]) + std::to_string(axes[2]) +
             " of " + size,
         a.dtype(), 8.0 * double(a.size()), kPermuted, [&] { out.assign(view); });
  }
}

void Bench::random(int64_t n, const std::string& size) {
  auto& state = catena::random::default_state(device);
  time("uniform " + size, Dtype::kFloat32, 4.0 * double(n), 0, [&] {
    state.uniform({n}, 0, 1, {Dtype::kFloat32, device});
  });
  time("normal " + size, Dtype::kFloat32, 4.0 * double(n), 0, [&] {
    state.normal({n}, 0, 1, {Dtype::kFloat32, device});
  });
}

void Bench::user_kernel(int64_t n, const std::string& size) {
  if (!device.is_cuda()) return;
  const Array a = uniform({n}), b = uniform({n}), c = uniform({n}), d = uniform({n});
  catena::ElementwiseKernel kernel("T a, T b, T c, T d", "T y", "y = a * b + c * d", "four");
  time("user kernel of 4 operands " + size, Dtype::kFloat32, 20.0 * double(n), kContiguous,
       [&] { kernel(a, b, c, d); });
}

void Bench::scans(int64_t n, const std::string& size) {
  const Array a = uniform({n});
  time("cumsum " + size, Dtype::kFloat32, 8.0 * double(n), 0, [&] { catena::cumsum(a); });
}

void Bench::sorts(int64_t n, const std::string& size) {
  const Array a = uniform({n});
  const Array whole = catena::multiply(a, 1073741824.0).astype(Dtype::kInt64);
  time("sort " + size, Dtype::kFloat32, 0, 0, [&] { catena::sort(a); });
  time("sort " + size, Dtype::kInt64, 0, 0, [&] { catena::sort(whole); });
  time("argsort " + size, Dtype::kFloat32, 0, 0, [&] { catena::argsort(a); });
}

// Ten operations, the same as the peers'.
void Bench::fused(int64_t n, const std::string& size) {
  auto chain = catena::fuse([](catena::Fused x, catena::Fused y) {
    catena::Fused z = (x + y) * x - y;
    z = z * 0.5 + 1.0;
    z = abs(z) * z + x;
    return (z - y) * 2.0;
  });
  const Array a = uniform({n}), b = uniform({n});
  time("fused chain of 10 " + size, Dtype::kFloat32, 12.0 * double(n), kContiguous,
       [&] { chain(a, b); });
}

using Size = std::pair<int64_t, std::string>;

// The cases of one size.
void run_size(Bench& bench, const Size& of) {
  const auto& [n, size] = of;
  bench.small = n == 1000;
  bench.elementwise(n, size);
  bench.casts(n, size);
  if (!bench.device.is_cuda()) {
    bench.truths(n, size);
    bench.types(n, size);
  }
  bench.joining(n, size);
  bench.random(n, size);
  bench.user_kernel(n, size);
  bench.scans(n, size);
  bench.sorts(n, size);
  bench.fused(n, size);
  bench.small = false;
}

void run_gpu(Bench& bench) {
  bench.measure_copy(1 << 28);
  for (const Size& size : {Size{1000, "10^3"}, {1'000'000, "10^6"}, {int64_t(1) << 27, "2^27"}})
    run_size(bench, size);
  bench.sorts(1 << 26, "2^26");
  bench.matrices(8192);
  bench.reductions({512, 1024, 1024}, "512x1024x1024");
  bench.reductions({1 << 20, 3, 64}, "2^20x3x64");
  bench.indexing(1 << 19, 256);
  bench.permutations({512, 500, 520}, "512x500x520");
}

void run_cpu(Bench& bench) {
  bench.measure_copy(100'000'000);
  for (const Size& size : {Size{1000, "10^3"}, {1'000'000, "10^6"}}) run_size(bench, size);
  bench.matrices(8192);
  bench.reductions({64, 1024, 1024}, "64x1024x1024");
  bench.reductions({1 << 18, 3, 64}, "2^18x3x64");
  bench.indexing(1 << 17, 256);
  bench.permutations({256, 250, 260}, "256x250x260");
}

void run_quick(Bench& bench) {
  bench.measure_copy(1 << 22);
  for (const Size& size : {Size{1000, "10^3"}, {1'000'000, "10^6"}}) run_size(bench, size);
  bench.matrices(1024);
  bench.reductions({16, 64, 64}, "16x64x64");
  bench.indexing(1 << 12, 64);
  bench.permutations({64, 48, 32}, "64x48x32");
}

// Takes 5 GB and minutes, so only when asked for.
void run_large(Bench& bench) {
  bench.measure_copy(100'000'000);
  run_size(bench, {100'000'000, "10^8"});
}

int body(int argc, char** argv) {
  const Arguments arguments(argc, argv, "Array routines against the rate of a copy.",
                            {{"--large", "the cases of 10^8 elements, and nothing else"},
                             {"--cpu", "on cpu:0 (the default without a GPU)"},
                             {"--gpu", "on cuda:0 (the default with one)"}});
  const bool gpu = !arguments.has("--cpu") &&
                   (arguments.has("--gpu") || catena::device_count(catena::DeviceType::kCuda) > 0);
  if (gpu && !have_gpu("bench_routines")) return 0;
  const Device device = gpu ? catena::cuda_device(0) : catena::cpu();
  catena::DeviceScope scope(device);
  Bench bench{.device = device,
              .quick = arguments.quick(),
              .table = Table(gpu ? "Array routines on a GPU" : "Array routines on the CPU",
                             gpu ? catena::backend(device.type()).describe(0) : "cpu:0")};
  bench.measure_launch();
  (bench.quick ? run_quick : arguments.has("--large") ? run_large : gpu ? run_gpu : run_cpu)(bench);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
