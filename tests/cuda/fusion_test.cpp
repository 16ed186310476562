// Fused chains on a GPU: one kernel a call, with the bits of the separate operations.
#include "catena/array/fusion.h"

#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/graph.h"
#include "gpu.h"

namespace catena {
namespace {

using namespace test;

const Device kGpu = cuda_device(0);

const auto kChain = [](auto x, auto y) { return sqrt(x * x + y * y) * 0.5; };
const auto kMixed = [](auto x, auto y) {
  return where(x > y, x - 2, y.astype(Dtype::kFloat32)) + clip(x, 1, 5) % 3;
};

// Against the separate operations on the CPU: these functions are exact on both.
template <class F, class... A>
void check(const std::string& what, const F& f, const A&... arguments) {
  const auto fused = fuse(f);
  const Array expected = f(arguments...);
  expect_equal(fused(arguments.to(kGpu)...), expected, what);
  expect_equal(fused(arguments.to(kGpu)...), expected, what + ", again");
}

TEST(CudaFusion, DtypesAndLayouts) {
  CATENA_NEEDS_GPUS(1);
  const Dtype dtypes[] = {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16,
                          Dtype::kFloat64, Dtype::kInt32,   Dtype::kUInt8};
  for (const Dtype a : dtypes) {
    for (const Dtype b : {Dtype::kFloat32, Dtype::kInt32}) {
      const Array x = whole_numbers({60, 70}, a), y = whole_numbers({70}, b);
      check(message("chain of ", a, " and ", b), kChain, x, y);
      check(message("mixed ", a, " and ", b), kMixed, x, y);
    }
  }
  const Array m = whole_numbers({300, 200}, Dtype::kFloat32);
  check("contiguous", kChain, m, m);
  check("column", kChain, m, whole_numbers({300, 1}, Dtype::kFloat32));
  check("transposed", kChain, m.T(), whole_numbers({200, 300}, Dtype::kFloat32));
  check("every other", kChain, m(Slice(none, none, 2), Slice(none, none, 2)),
        whole_numbers({150, 100}, Dtype::kFloat32));
  check("0-d", kChain, m, whole_numbers({}, Dtype::kFloat32));
  check("5-d", kChain, whole_numbers({3, 4, 5, 6, 7}, Dtype::kFloat32),
        whole_numbers({4, 1, 6, 1}, Dtype::kFloat32));
  check("empty", kChain, zeros({0, 3}, Dtype::kFloat32), whole_numbers({3}, Dtype::kFloat32));
}

TEST(CudaFusion, SeveralResultsAndOperands) {
  CATENA_NEEDS_GPUS(1);
  const Array x = whole_numbers({50, 64}, Dtype::kFloat32), y = whole_numbers({64}, Dtype::kInt32);
  const auto three = fuse([](Fused p, Fused q) { return std::make_tuple(p + q, q * 2, p > q); });
  const auto [added, twice, mask] = three(x.to(kGpu), y.to(kGpu));
  expect_equal(added, x + y, "first");
  expect_equal(twice, y * 2, "of the smaller shape");
  expect_equal(mask, x > y, "mask");
  const auto many = [](auto a, auto b, auto c, auto d, auto e, auto f, auto g, auto h, auto i) {
    return a + b * c - d + e * f - g + h * i;
  };
  for (const Array& last :
       {x, x(Slice(none, none, -1)), whole_numbers({64, 50}, dtype::float32).T()})
    check("nine operands", many, x, x, y, x, y, x, last, x, last);
  const auto scaled = fuse([](Fused p, Fused s) { return p * s + 1; });
  for (const double s : {2.0, 3.0}) expect_equal(scaled(x.to(kGpu), s), x * s + 1, "a number");
}

TEST(CudaFusion, Reductions) {
  CATENA_NEEDS_GPUS(1);
  for (const Shape& shape : {Shape{40, 30, 50}, Shape{3, 5, 20000}, Shape{20000, 4, 3}}) {
    const Array x = remainder(whole_numbers(shape, Dtype::kFloat32), 3),
                y = remainder(whole_numbers({shape[2]}, Dtype::kFloat32), 2);
    for (const Axes& axes :
         {Axes{}, Axes{0}, Axes{1}, Axes{2}, Axes{0, 1}, Axes{1, 2}, Axes{0, 2}}) {
      const ReduceOptions options{.axes = axes, .keepdims = axes.size() == 1};
      const std::string what = message(shape, " over ", axes);
      check(
          what + ", sum", [&](auto p, auto q) { return sum(p * q + p, options); }, x, y);
      check(
          what + ", max", [&](auto p, auto q) { return amax(p * q - p, options); }, x, y);
      check(
          what + ", any", [&](auto p, auto q) { return any(p > q * 3, options); }, x, y);
      expect_close(
          fuse([&](Fused p, Fused q) { return mean(exp(p) * q, options); })(x.to(kGpu), y.to(kGpu)),
          mean(exp(x) * y, options), 1e-5, what + ", mean");
    }
    check(
        message(shape, " transposed"), [](auto p) { return sum(p * 2, 0); }, x.T());
  }
  const Array big = remainder(whole_numbers({1 << 22}, Dtype::kFloat16), 2);
  const ReduceOptions wide{.dtype = Dtype::kFloat32};
  check(
      "all of a large array", [&](auto p) { return sum(p * p, wide); }, big);
}

// Read in runs of four, from an odd place on, and beside a number; what is left over at the end.
TEST(CudaFusion, ReductionsOfRuns) {
  CATENA_NEEDS_GPUS(1);
  const ReduceOptions wide{.dtype = Dtype::kFloat64}, rows{.axes = 1, .dtype = Dtype::kFloat64};
  const auto dot = [&](auto p, auto q, auto number) { return sum(p * number + q, wide); };
  const auto doubled = [&](auto p) { return sum(p + p, rows); };
  for (const Dtype dtype : {Dtype::kInt8, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    for (const int64_t n : {4096, 100003, 2097155}) {
      const Array x = remainder(whole_numbers({n + 1}, dtype), 3), y = whole_numbers({n}, dtype),
                  gpu_x = x.to(kGpu), gpu_y = y.to(kGpu);
      for (const Slice part : {Slice(0, n), Slice(1, n + 1)})
        expect_equal(fuse(dot)(gpu_x(part), gpu_y, 2), dot(x(part), y, 2),
                     message(n, " of ", dtype));
    }
    const Array table = remainder(whole_numbers({9, 10004}, dtype), 3), on_gpu = table.to(kGpu);
    for (const int64_t columns : {10004, 10003, 10000})
      expect_equal(fuse(doubled)(on_gpu(Slice(), Slice(0, columns))),
                   doubled(table(Slice(), Slice(0, columns))),
                   message("9 rows of ", columns, " ", dtype));
  }
}

TEST(CudaFusion, SumsOf16BitsDoNotRoundWiderValues) {
  CATENA_NEEDS_GPUS(1);
  const ReduceOptions narrow{.dtype = Dtype::kFloat16};
  const Array x = full({2000}, 1.0004f, Dtype::kFloat32).to(kGpu);
  EXPECT_EQ(fuse([&](Fused p) { return sum(p * 1.f, narrow); })(x).item<float>(), 2001);
}

TEST(CudaFusion, IsOneKernelAndMayBeCaptured) {
  CATENA_NEEDS_GPUS(1);
  const Array x = whole_numbers({1000}, Dtype::kFloat32), g = x.to(kGpu),
              out = zeros({1000}, {Dtype::kFloat32, kGpu});
  const auto fused = fuse([](Fused p) { return (p + 1) * p - 3; });
  EXPECT_THROW(cuda::Graph::capture(kGpu, [&] { fused(g); }), Error);
  out.assign(fused(g));
  cuda::Graph graph = cuda::Graph::capture(kGpu, [=] { out.assign(fused(g)); });
  g.fill(2);
  graph.launch();
  expect_equal(out, full({1000}, 3, Dtype::kFloat32), "replayed");
}

}  // namespace
}  // namespace catena
