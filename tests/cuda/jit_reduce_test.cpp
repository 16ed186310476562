// Reductions, copies, fills, arange and concatenate on a GPU against the CPU.
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "gpu.h"

namespace catena {
namespace {

using namespace test;

const Device kGpu = cuda_device(0);

struct ReduceCase {
  Shape shape;
  Axes axes;
};
const std::vector<ReduceCase>& reduce_cases() {
  static const std::vector<ReduceCase> all = {{{1}, {}},
                                              {{1000}, {}},
                                              {{100000}, {}},
                                              {{3000001}, {}},
                                              {{100, 1000}, {0}},
                                              {{100, 1000}, {1}},
                                              {{100, 10}, {0}},
                                              {{100, 10}, {1}},
                                              {{100000, 3}, {0}},
                                              {{100000, 3}, {1}},
                                              {{3, 100000}, {0}},
                                              {{3, 100000}, {1}},
                                              {{2000, 2048}, {0}},
                                              {{2000, 2048}, {1}},
                                              {{64, 500, 48}, {1}},
                                              {{100000, 3, 16}, {1}},
                                              {{30000, 3, 64}, {1, 2}},
                                              {{8, 64, 33}, {1}},
                                              {{8, 64, 33}, {0, 2}},
                                              {{4, 5, 6, 7}, {1, 3}},
                                              {{4, 5, 6, 7}, {0, 2}},
                                              {{16, 32, 28, 28}, {0, 2, 3}}};
  return all;
}

class CudaReduce : public ::testing::TestWithParam<Dtype> {};

TEST_P(CudaReduce, EqualsTheCpu) {
  CATENA_NEEDS_GPUS(1);
  const Dtype dtype = GetParam();
  for (const ReduceCase& c : reduce_cases()) {
    // 16-bit sums round once in the end; few and small numbers keep them exact.
    const Array x = whole_numbers(c.shape, dtype), g = x.to(kGpu);
    const Array x2 = x(ellipsis, Slice(0, none, 2)), g2 = g(ellipsis, Slice(0, none, 2));
    const std::string what = message(c.shape, " over ", c.axes, " ", dtype);
    for (const bool keep : {false, true}) {
      expect_equal(sum(g, {c.axes, keep}), sum(x, {c.axes, keep}), "sum " + what);
    }
    expect_equal(sum(g.T(), {Axes{}, false}), sum(x.T(), {Axes{}, false}),
                 "sum of transposed " + what);
    if (x2.size() > 0)
      expect_equal(sum(g2, {c.axes, false}), sum(x2, {c.axes, false}), "strided sum " + what);
    expect_equal(amax(g, {c.axes, false}), amax(x, {c.axes, false}), "amax " + what);
    expect_equal(amin(g, {c.axes, false}), amin(x, {c.axes, false}), "amin " + what);
    expect_equal(all(g, {c.axes, false}), all(x, {c.axes, false}), "all " + what);
    expect_equal(any(g, {c.axes, false}), any(x, {c.axes, false}), "any " + what);
    if (c.axes.size() == 1) {
      expect_equal(argmax(g, c.axes[0]), argmax(x, c.axes[0]), "argmax " + what);
      expect_equal(argmin(g, c.axes[0]), argmin(x, c.axes[0]), "argmin " + what);
    } else {
      expect_equal(argmax(g), argmax(x), "flat argmax " + what);
    }
    if (HasFatalFailure()) return;
  }
}

std::string dtype_name(const ::testing::TestParamInfo<Dtype>& test) { return name(test.param); }
INSTANTIATE_TEST_SUITE_P(Dtypes, CudaReduce,
                         ::testing::Values(Dtype::kBool, Dtype::kInt8, Dtype::kInt32, Dtype::kInt64,
                                           Dtype::kUInt8, Dtype::kUInt16, Dtype::kFloat16,
                                           Dtype::kBFloat16, Dtype::kFloat32, Dtype::kFloat64),
                         dtype_name);

TEST(CudaReduceFloat, RealNumbersAreAccurateAndRepeatable) {
  CATENA_NEEDS_GPUS(1);
  const Array x = real_numbers({3000, 1111}, Dtype::kFloat32, 0, 1), g = x.to(kGpu);
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}}) {
    const Array actual = sum(g, {axes, false});
    expect_close(actual, sum(x.astype(Dtype::kFloat64), {axes, false}), 1e-5,
                 message("sum over ", axes));
    for (int i = 0; i < 5; ++i) expect_equal(sum(g, {axes, false}), actual, "the same again");
    expect_close(mean(g, {axes, false}), mean(x.astype(Dtype::kFloat64), {axes, false}), 1e-6,
                 message("mean over ", axes));
  }
}

TEST(CudaReduceFloat, NanWins) {
  CATENA_NEEDS_GPUS(1);
  const Array x = real_numbers({50, 300}, Dtype::kFloat32);
  x.data<float>()[50 * 150 + 7] = std::nanf("");
  const Array g = x.to(kGpu);
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{1}}) {
    expect_equal(amax(g, {axes, false}), amax(x, {axes, false}), "amax with NaN");
    expect_equal(amin(g, {axes, false}), amin(x, {axes, false}), "amin with NaN");
  }
  expect_equal(argmax(g), argmax(x), "argmax with NaN");
}

// Inputs of another type are not rounded to the type of the result on the way.
TEST(CudaReduceFloat, SixteenBitResultsRoundOnce) {
  CATENA_NEEDS_GPUS(1);
  const auto same = [](const Array& x, Dtype to, const char* what) {
    const Array g = x.to(kGpu);
    expect_equal(mean(g, {.dtype = to}), mean(x, {.dtype = to}), message("mean of ", what));
    expect_equal(sum(g, {.dtype = to}), sum(x, {.dtype = to}), message("sum of ", what));
  };
  same(array(std::vector<uint16_t>{65535, 1}), Dtype::kFloat16, "uint16 as float16");
  for (const Dtype from : {Dtype::kInt16, Dtype::kFloat16})
    same(array({257, 257, 258}).astype(from), Dtype::kBFloat16, "three numbers as bfloat16");
  same(array({1e5f, -1e5f}).astype(Dtype::kBFloat16), Dtype::kFloat16, "bfloat16 as float16");
}

TEST(CudaReduceFloat, EmptySums) {
  CATENA_NEEDS_GPUS(1);
  const Array x = zeros({4, 0, 3}, Dtype::kFloat32), g = x.to(kGpu);
  for (const Axes& axes : {Axes{}, Axes{1}, Axes{0, 1}}) {
    expect_equal(sum(g, {axes, false}), sum(x, {axes, false}), "empty sum");
    expect_equal(prod(g, {axes, false}), prod(x, {axes, false}), "empty product");
  }
}

TEST(CudaCopies, EveryCast) {
  CATENA_NEEDS_GPUS(1);
  for (int from = 0; from < kDtypeCount; ++from) {
    const Array x = is_float(Dtype(from)) ? real_numbers({33, 70}, Dtype(from), 0, 100)
                                          : whole_numbers({33, 70}, Dtype(from), 0, 100);
    const Array g = x.to(kGpu);
    for (int to = 0; to < kDtypeCount; ++to) {
      const std::string what = message(Dtype(from), " to ", Dtype(to));
      expect_equal(g.astype(Dtype(to)), x.astype(Dtype(to)), what);
      expect_equal(g.T().astype(Dtype(to)), x.T().astype(Dtype(to)), "transposed " + what);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(CudaCopies, LayoutsOfEveryItemSize) {
  CATENA_NEEDS_GPUS(1);
  for (const Dtype d : {Dtype::kInt8, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    const Array x = whole_numbers({5, 130, 257}, d, 0, 100), g = x.to(kGpu);
    for (const Axes& axes : {Axes{2, 1, 0}, Axes{0, 2, 1}, Axes{1, 0, 2}, Axes{2, 0, 1}}) {
      expect_equal(g.transpose(axes).copy(), x.transpose(axes).copy(),
                   message("transpose ", axes, " ", d));
    }
    expect_equal(g(ellipsis, Slice(1, none, 3)).copy(), x(ellipsis, Slice(1, none, 3)).copy(),
                 "every third");
    expect_equal(g(ellipsis, Slice(none, none, -1)).copy(),
                 x(ellipsis, Slice(none, none, -1)).copy(), "reversed");
    expect_equal(g(Slice(1, 3), Slice(2, 100), Slice(5, 200)).copy(),
                 x(Slice(1, 3), Slice(2, 100), Slice(5, 200)).copy(), "block");
  }
}

TEST(CudaCopies, Fill) {
  CATENA_NEEDS_GPUS(1);
  for (int d = 0; d < kDtypeCount; ++d) {
    for (const double value : {0.0, 1.0, 3.0}) {
      const Array x = zeros({40, 50}, Dtype(d)), g = x.to(kGpu);
      x.fill(value);
      g.fill(value);
      expect_equal(g, x, message("fill ", Dtype(d)));
      x(Slice(1, 30), Slice(0, none, 3)).fill(1.0);
      g(Slice(1, 30), Slice(0, none, 3)).fill(1.0);
      expect_equal(g, x, message("strided fill ", Dtype(d)));
    }
  }
}

TEST(CudaCopies, Arange) {
  CATENA_NEEDS_GPUS(1);
  for (int d = int(Dtype::kInt8); d < kDtypeCount; ++d) {
    expect_equal(arange(2, 100, 3, {Dtype(d), kGpu}), arange(2, 100, 3, {Dtype(d), cpu()}),
                 message("arange ", Dtype(d)));
  }
  expect_equal(arange(0.0, 1.0, 0.1, {Dtype::kFloat64, kGpu}),
               arange(0.0, 1.0, 0.1, {Dtype::kFloat64, cpu()}), "fractions");
}

TEST(CudaCopies, Concatenate) {
  CATENA_NEEDS_GPUS(1);
  for (const Dtype d : {Dtype::kInt8, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    for (const int64_t axis : {0, 1, 2}) {
      std::vector<Array> host, device;
      for (int k = 0; k < 19; ++k) {
        Shape shape{4, 6, 8};
        shape[size_t(axis)] = k % 5;
        const Array x = whole_numbers(shape, d);
        host.push_back(k == 7 ? x.transpose({0, 1, 2})(ellipsis, Slice(none, none, -1)) : x);
        device.push_back(k == 7 ? x.to(kGpu)(ellipsis, Slice(none, none, -1)) : x.to(kGpu));
      }
      expect_equal(concatenate(device, axis), concatenate(host, axis),
                   message("concatenate axis ", axis, " ", d));
    }
  }
}

}  // namespace
}  // namespace catena
