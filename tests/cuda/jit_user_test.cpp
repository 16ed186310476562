// Users' kernels on a GPU.
#include "catena/array/kernel.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "gpu.h"

namespace catena {
namespace {

using namespace test;

const Device kGpu = cuda_device(0);

TEST(CudaUserKernel, TypedAndGeneric) {
  CATENA_NEEDS_GPUS(1);
  const ElementwiseKernel typed("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)",
                                "squared_diff");
  const ElementwiseKernel generic("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_diff");
  for (const Dtype d : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kInt32}) {
    const Array x = whole_numbers({10, 33}, d), y = whole_numbers({33}, d);
    const Array expected = square(subtract(x, y));
    expect_equal(generic(x.to(kGpu), y.to(kGpu)), expected, message("generic ", d));
    expect_equal(generic(x.to(kGpu).T(), 1), square(subtract(x.T(), 1)),
                 message("transposed, number ", d));
    if (d == Dtype::kFloat32)
      expect_equal(typed(x.to(kGpu), y.to(kGpu)), expected, "typed");
    else
      EXPECT_THROW(typed(x.to(kGpu), y.to(kGpu)), DtypeError);
  }
}

TEST(CudaUserKernel, UpdatesOutputsInPlace) {
  CATENA_NEEDS_GPUS(1);
  for (const Dtype d : {Dtype::kFloat32, Dtype::kFloat16}) {
    const Array p = whole_numbers({1001}, d), g = whole_numbers({1001}, d), device = p.to(kGpu);
    cuda::elementwise("T grad, T lr", "T param", "param -= lr * grad", "sgd")(g.to(kGpu), 2,
                                                                              device);
    expect_equal(device, subtract(p, multiply(g, 2)), "sgd");
  }
}

TEST(CudaUserKernel, SeveralOutputsAndIndices) {
  CATENA_NEEDS_GPUS(1);
  const ElementwiseKernel kernel("T x", "T y, int64 k", "y = x + x; k = i * 2 + (n - _ind.size())",
                                 "two");
  const Array x = whole_numbers({7, 9}, Dtype::kFloat32);
  const KernelOutputs result = kernel(x.to(kGpu));
  ASSERT_EQ(result.size(), 2u);
  expect_equal(result[0], add(x, x), "first output");
  expect_equal(result[1], arange(0, 126, 2, Dtype::kInt64).reshape({7, 9}), "indices");
}

TEST(CudaUserKernel, RawArguments) {
  CATENA_NEEDS_GPUS(1);
  const ElementwiseKernel reverse("raw T x, raw T y", "T z", "z = x[i] + y[_ind.size() - i - 1]",
                                  "add_reverse");
  const Array x = whole_numbers({40}, Dtype::kFloat32), y = whole_numbers({80}, Dtype::kFloat32);
  const Array every = y(Slice(0, none, 2)), out = empty({40}, {Dtype::kFloat32, kGpu});
  reverse(x.to(kGpu), y.to(kGpu)(Slice(0, none, 2)), out);
  expect_equal(out, add(x, every(Slice(none, none, -1))), "strided raw argument");
  const ElementwiseKernel all_raw("raw float32 x", "raw float32 y", "y[i] = x[n - 1 - i]",
                                  "all_raw");
  const Array target = zeros({40}, {Dtype::kFloat32, kGpu});
  EXPECT_THROW(all_raw(x.to(kGpu), target), ValueError);
  all_raw.call({x.to(kGpu), target}, 40);
  expect_equal(target, x(Slice(none, none, -1)), "size given");
}

TEST(CudaUserKernel, EmptyAndWrong) {
  CATENA_NEEDS_GPUS(1);
  const ElementwiseKernel kernel("T x, T y", "T z", "z = x + y");
  const Array none_left = zeros({0, 3}, {Dtype::kFloat32, kGpu});
  EXPECT_EQ(Array(kernel(none_left, none_left)).shape(), (Shape{0, 3}));
  EXPECT_THROW(kernel(zeros({2}, {Dtype::kFloat32, kGpu}), zeros({3}, {Dtype::kFloat32, kGpu})),
               ShapeError);
  EXPECT_THROW(kernel(zeros({2}, {Dtype::kFloat32, kGpu}), zeros({2}, {Dtype::kFloat64, kGpu})),
               DtypeError);
  EXPECT_THROW(kernel(zeros({2}, {Dtype::kFloat32, kGpu}), zeros({2}, Dtype::kFloat32)),
               DeviceError);
}

TEST(CudaUserKernel, Reductions) {
  CATENA_NEEDS_GPUS(1);
  const ReductionKernel norm("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm");
  const ReductionKernel largest("T x, T y", "T z", "x * y", "a > b ? a : b", "z = a", "",
                                "largest");
  const Array x = whole_numbers({30, 500}, Dtype::kFloat64), g = x.to(kGpu);
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}}) {
    expect_close(norm.call({g}, axes), sqrt(sum(multiply(x, x), {axes, false})), 1e-12,
                 message("norm over ", axes));
    expect_equal(largest.call({g, g}, axes, true), amax(multiply(x, x), {axes, true}),
                 message("largest over ", axes));
  }
  expect_close(norm(g.T(), 0), sqrt(sum(multiply(x.T(), x.T()), 0)), 1e-12, "transposed");
  EXPECT_THROW(largest.call({g(Slice(0, 0)), g(Slice(0, 0))}), ValueError);
}

TEST(CudaUserKernel, Raw) {
  CATENA_NEEDS_GPUS(1);
  const RawKernel& kernel = cuda::raw(
      "extern \"C\" __global__ void scale(const float* x, float* y, float factor, long long n) {\n"
      "  long long i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = x[i] * "
      "factor;\n}",
      "scale");
  const Array x = whole_numbers({1000}, Dtype::kFloat32),
              y = empty({1000}, {Dtype::kFloat32, kGpu});
  kernel({8}, {128}, {x.to(kGpu), y, 3.0f, int64_t(1000)});
  expect_equal(y, multiply(x, 3), "raw kernel");
}

TEST(CudaUserKernel, ReductionsOfEveryShape) {
  CATENA_NEEDS_GPUS(1);
  const ReductionKernel total("T x", "T y", "x", "a + b", "y = a", "0", "total");
  const ReductionKernel low("T x", "T y", "x", "a < b ? a : b", "y = a", "", "low");
  for (const Shape& shape : {Shape{1 << 20}, Shape{3, 200000}, Shape{200000, 3}, Shape{700, 900},
                             Shape{1, 5}, Shape{31, 1, 33}}) {
    for (const Dtype d : {Dtype::kFloat32, Dtype::kInt64, Dtype::kFloat16}) {
      const Array x = remainder(whole_numbers(shape, d), 2), g = x.to(kGpu);
      for (int64_t axis = -1; axis < x.ndim(); ++axis) {
        const Axes axes = axis < 0 ? Axes{} : Axes{axis};
        const std::string what = message(shape, ' ', d, " over ", axes);
        if (d != Dtype::kFloat16) expect_equal(total.call({g}, axes), sum(x, axes), what);
        expect_equal(low.call({g}, axes, true), amin(x, {axes, true}), what + ", minimum");
      }
    }
  }
}

TEST(CudaUserKernel, ReductionsWithSeveralOutputsAndRawArguments) {
  CATENA_NEEDS_GPUS(1);
  ReductionKernelOptions options;
  options.preamble =
      "struct Best { float value; long long at; };\n"
      "__device__ Best best(float v, long long i) { Best b = {v, i}; return b; }";
  options.reduce_type = "Best";
  const ReductionKernel best("T x, raw T w", "T value, int64 at", "best(x * w[_j % w.size()], _j)",
                             "a.value > b.value || (a.value == b.value && a.at < b.at) ? a : b",
                             "value = a.value; at = a.at / (4 - _i + _i)", "best(-1e30f, 0)",
                             "best", options);
  const Array x = whole_numbers({50, 4}, Dtype::kFloat32), w = ones({1}, {Dtype::kFloat32, kGpu});
  const KernelOutputs result = best.call({x.to(kGpu), w}, Axes{0});
  ASSERT_EQ(result.size(), 2u);
  expect_equal(result[0], amax(x, 0), "largest");
  expect_equal(result[1], argmax(x, 0), "its place, through _j");
  EXPECT_THROW(best.call({x.to(kGpu), w}, Axes{1}), ValueError);
  const Array out = zeros({4}, {Dtype::kFloat32, kGpu});
  ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0").call({x.to(kGpu)}, Axes{0}, false, out);
  expect_equal(out, sum(x, 0), "out");
}

TEST(CudaUserKernel, OneKernelForBothDevices) {
  CATENA_NEEDS_GPUS(1);
  const auto kernel =
      ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "both")
          .on_cpu<float, double>([]<class T>(T x, T y, T& z) { z = (x - y) * (x - y); });
  const Array x = whole_numbers({40, 50}, Dtype::kFloat32),
              y = whole_numbers({50}, Dtype::kFloat32);
  expect_equal(kernel(x.to(kGpu), y.to(kGpu)), kernel(x, y), "both devices");
  EXPECT_THROW(elementwise(x.to(kGpu), [](float a) { return a; }), DeviceError);
}

TEST(CudaUserKernel, OldFormOptionsAndLoopTexts) {
  CATENA_NEEDS_GPUS(1);
  const Array x = whole_numbers({30}, Dtype::kFloat32), y = zeros({30}, {Dtype::kFloat32, kGpu});
  cuda::elementwise("float* y, const float* x, float c", "y[i] = c * x[i]", "old")(y, x.to(kGpu),
                                                                                   2);
  expect_equal(y, multiply(x, 2), "the first versions' form");
  KernelOptions options;
  options.options = {"-DFACTOR=3"};
  options.preamble = "__device__ float plus(float x, float c) { return x + c; }";
  options.loop_prep = "float c = FACTOR";
  const ElementwiseKernel kernel("float32 x", "float32 y", "y = plus(x, c)", "texts", options);
  expect_equal(kernel(x.to(kGpu)), add(x, 3), "options, preamble and loop_prep");
}

TEST(CudaUserKernel, OldFormReductions) {
  CATENA_NEEDS_GPUS(1);
  const Array x = whole_numbers({70, 300}, Dtype::kFloat32), g = x.to(kGpu);
  const auto dot = cuda::reduce("const float* x, const float* y, float c", "c * x[i] * y[i]",
                                "a + b", "0", "old_dot", Dtype::kFloat64);
  const Array product = dot.call({g, g, 2});
  EXPECT_EQ(product.shape(), Shape{});
  expect_equal(product, sum(square(x.astype(Dtype::kFloat64))) * 2, "two arrays and a number");
  // Other layouts are walked in C order; the index is that of the first array.
  ReductionKernelOptions options;
  options.preamble = "__device__ long long weight(long long k) { return k % PERIOD; }";
  options.options = {"-DPERIOD=7"};
  const auto weighted = cuda::reduce("const float* x", "(long long)x[i] * weight(i)", "a + b", "0",
                                     "old_weighted", Dtype::kInt64, options);
  const Array weights = arange(70 * 300) % 7;
  expect_equal(Array(weighted(g.T())), sum(x.T().astype(Dtype::kInt64).ravel() * weights),
               "options, preamble and a transposed array");
  const auto largest = cuda::reduce("const float* x", "x[i]", "max(a, b)", "-1e30f", "old_max");
  expect_equal(Array(largest(g)), amax(x), "float32 by default");
  expect_equal(Array(largest(g(Slice(0, 0)))), array({-1e30f}).reshape(Shape{}),
               "the neutral element alone");
  KernelOptions texts;
  texts.preamble = "__device__ float twice(float x) { return 2 * x; }";
  texts.loop_prep = "const float c = SHIFT";
  texts.options = {"-DSHIFT=5"};
  const Array y = zeros({70, 300}, {Dtype::kFloat32, kGpu});
  cuda::elementwise("float* y, const float* x", "y[i] = twice(x[i]) + c", "old_texts", texts)(y, g);
  expect_equal(y, x * 2 + 5, "options of the first versions' form");
}

TEST(CudaUserKernel, LinearLaunchAndModules) {
  CATENA_NEEDS_GPUS(1);
  const Module module = Module::compile(
      "__device__ float offset[2];\n"
      "extern \"C\" __global__ void shift(const float* x, float* y, long long n) {\n"
      "  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long "
      "long)gridDim.x "
      "* blockDim.x)\n    y[i] = x[i] + offset[1];\n}");
  const Array x = whole_numbers({100003}, Dtype::kFloat32),
              y = empty({100003}, {Dtype::kFloat32, kGpu});
  const RawKernel shift = module.get_function("shift");
  shift.linear_launch(x.size(), {x.to(kGpu), y, x.size()});
  expect_equal(y, x, "before the variable is set");
  EXPECT_THROW(module.get_function("nothing").linear_launch(1, {y}), Error);
  EXPECT_THROW(shift({1}, {2000}, {y}), ValueError);
}

TEST(CudaUserKernel, CacheIsCounted) {
  CATENA_NEEDS_GPUS(1);
  const KernelCacheStatistics before = kernel_cache_statistics();
  const ElementwiseKernel kernel(
      "T x", "T y", message("y = x + ", int(std::random_device{}() % 1000000)), "fresh");
  const Array x = zeros({4}, {Dtype::kFloat32, kGpu});
  kernel(x);
  const KernelCacheStatistics after = kernel_cache_statistics();
  EXPECT_EQ(after.missing, before.missing + 1);
  EXPECT_EQ(after.compiled + after.disk_hits, before.compiled + before.disk_hits + 1);
  kernel(x);
  EXPECT_EQ(kernel_cache_statistics().missing, after.missing);
  EXPECT_NE(after.description.find("bundle"), std::string::npos);
}

}  // namespace
}  // namespace catena
