// The matmul slot of the CPU backend: all transposition cases, dtypes, batches and epilogues.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/kernels/matmul.h"

namespace catena {
namespace {

using Real = long double;

Array random_matrix(Dtype dtype, const Shape& shape, unsigned seed) {
  std::mt19937 engine(seed);
  Array a = Array::uninitialized(shape, dtype, cpu(0));
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < a.size(); ++i) {
      if constexpr (std::is_same_v<T, bool>)
        a.data<T>()[i] = engine() % 4 == 0;
      else
        a.data<T>()[i] = T(compute_t<T>(int(engine() % 7) - 3));  // sums are exact in every dtype
    }
  });
  return a;
}

Real value_at(const Array& a, int64_t batch, int64_t i, int64_t j) {
  const int d = a.ndim() - 2;
  const int64_t offset = (d > 0 ? batch * a.strides()[0] : 0) + i * a.strides()[size_t(d)] +
                         j * a.strides()[size_t(d + 1)];
  return visit_dtype(a.dtype(), [&]<class T>(TypeTag<T>) {
    return Real(
        compute_t<T>(*reinterpret_cast<const T*>(static_cast<const char*>(a.raw_data()) + offset)));
  });
}

struct Extents {
  int64_t batch, m, n, k;
};

// 0: rows contiguous, 1: columns contiguous, 2: rows contiguous with a gap, 3: columns with a gap.
Array with_layout(const Array& a, int layout) {
  const int d = a.ndim() - 2;
  if (layout == 0) return a.copy();
  if (layout == 1) return a.swapaxes(d, d + 1).copy().swapaxes(d, d + 1);
  const Array base = layout == 2 ? a : a.swapaxes(d, d + 1);
  Shape shape = base.shape();
  shape[size_t(d + 1)] += 3;
  const Array roomy = zeros(shape, a.dtype());
  const Array part = d > 0 ? roomy(Slice(), Slice(), Slice(2, shape[2] - 1))
                           : roomy(Slice(), Slice(2, shape[1] - 1));
  part.assign(base);
  return layout == 2 ? part : part.swapaxes(d, d + 1);
}

void check(Dtype d, const Extents& e, int layout_a, int layout_b, int layout_c, bool bias,
           bool relu, bool accumulate) {
  const auto shape = [&](int64_t rows, int64_t columns) {
    return e.batch > 0 ? Shape{e.batch, rows, columns} : Shape{rows, columns};
  };
  const Array a = with_layout(random_matrix(d, shape(e.m, e.k), 1), layout_a);
  const Array b = with_layout(random_matrix(d, shape(e.k, e.n), 2), layout_b);
  const Array old = random_matrix(d, shape(e.m, e.n), 3), c = with_layout(old, layout_c);
  const Array row = random_matrix(d, {e.n}, 4);
  MatmulCall call{
      &a, &b, &c, bias ? &row : nullptr, relu ? Activation::kRelu : Activation::kNone, accumulate};
  kernels::matmul(cpu(0), call);
  for (int64_t s = 0; s < std::max<int64_t>(1, e.batch); ++s) {
    for (int64_t i = 0; i < e.m; ++i) {
      for (int64_t j = 0; j < e.n; ++j) {
        Real sum = bias ? Real(row.astype(Dtype::kFloat64).data<double>()[j]) : 0;
        for (int64_t k = 0; k < e.k; ++k) sum += value_at(a, s, i, k) * value_at(b, s, k, j);
        if (relu && sum < 0) sum = 0;
        if (accumulate) sum += value_at(old, s, i, j);
        Real wanted = sum;
        visit_dtype(d, [&]<class T>(TypeTag<T>) {
          if constexpr (std::is_same_v<T, bool>)
            wanted = sum != 0;
          else if constexpr (std::is_integral_v<T>)
            wanted = Real(static_cast<T>(static_cast<int64_t>(sum)));
          else
            wanted = Real(compute_t<T>(T(compute_t<T>(sum))));
        });
        ASSERT_EQ(value_at(c, s, i, j), wanted)
            << name(d) << " " << e.batch << "x" << e.m << "x" << e.k << "x" << e.n << " layouts "
            << layout_a << layout_b << layout_c << " bias " << bias << " relu " << relu
            << " accumulate " << accumulate << " at " << i << ", " << j;
      }
    }
  }
}

class CpuMatmul : public ::testing::TestWithParam<Dtype> {};

TEST_P(CpuMatmul, EveryLayout) {
  const bool number = is_float(GetParam());
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      for (int c = 0; c < 4; ++c) {
        check(GetParam(), {0, 5, 7, 9}, a, b, c, number, false, false);
        check(GetParam(), {0, 5, 7, 9}, a, b, c, false, false, GetParam() != Dtype::kBool);
      }
    }
  }
}

TEST_P(CpuMatmul, VectorsAndDegenerateExtents) {
  for (const Extents& e : std::vector<Extents>{{0, 1, 9, 4},
                                               {0, 9, 1, 4},
                                               {0, 9, 6, 1},
                                               {0, 1, 1, 5},
                                               {0, 1, 1, 1},
                                               {0, 1, 8, 1},
                                               {0, 8, 1, 1}}) {
    for (int a = 0; a < 4; ++a) {
      for (int b = 0; b < 4; ++b) {
        for (int c = 0; c < 4; ++c) check(GetParam(), e, a, b, c, false, false, false);
      }
    }
  }
  check(GetParam(), {0, 3, 4, 0}, 0, 0, 0, false, false, false);
  check(GetParam(), {0, 3, 4, 0}, 0, 0, 1, is_float(GetParam()), false, false);
  check(GetParam(), {0, 3, 4, 0}, 0, 0, 0, false, false, GetParam() != Dtype::kBool);
}

TEST_P(CpuMatmul, Batches) {
  for (int a = 0; a < 4; ++a)
    check(GetParam(), {6, 5, 7, 9}, a, (a + 1) % 4, 0, false, false, false);
  check(GetParam(), {40, 12, 17, 19}, 0, 1, 0, false, false, false);
}

TEST_P(CpuMatmul, BiasAndRelu) {
  if (!is_float(GetParam())) return;
  for (int c = 0; c < 2; ++c) {
    check(GetParam(), {0, 20, 33, 9}, 0, 1, c, true, true, false);
    check(GetParam(), {0, 20, 33, 9}, 0, 0, c, false, true, false);
    check(GetParam(), {0, 20, 33, 9}, 0, 0, c, true, false, true);
    check(GetParam(), {0, 20, 1, 9}, 0, 0, c, true, true, false);
  }
  check(GetParam(), {0, 300, 400, 5}, 0, 0, 0, true, true, false);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CpuMatmul,
                         ::testing::Values(Dtype::kBool, Dtype::kInt8, Dtype::kInt32, Dtype::kInt64,
                                           Dtype::kUInt16, Dtype::kFloat16, Dtype::kBFloat16,
                                           Dtype::kFloat32, Dtype::kFloat64),
                         [](const auto& p) { return std::string(name(p.param)); });

// Whole numbers that 16 bits do not hold, as products and before them.
TEST(CpuMatmulWide, SixteenBitOperandsOfAFloat32Result) {
  for (const Dtype d : {Dtype::kFloat16, Dtype::kBFloat16})
    for (int layout = 0; layout < 4; ++layout)
      for (const int64_t k : {0, 1, 300})
        for (const bool accumulate : {false, true}) {
          const Array a = with_layout(random_matrix(d, {5, k}, 1), layout),
                      b = with_layout(random_matrix(d, {k, 7}, 2), (layout + 1) % 4),
                      old = random_matrix(Dtype::kFloat32, {5, 7}, 3) + 16777208.0f,
                      c = with_layout(old, layout);
          a.assign(a * 15);
          kernels::matmul(cpu(0), {.a = &a, .b = &b, .output = &c, .accumulate = accumulate});
          for (int64_t i = 0; i < 5; ++i)
            for (int64_t j = 0; j < 7; ++j) {
              Real sum = 0;
              for (int64_t l = 0; l < k; ++l) sum += value_at(a, 0, i, l) * value_at(b, 0, l, j);
              if (accumulate) sum = Real(float(float(sum) + float(value_at(old, 0, i, j))));
              ASSERT_EQ(value_at(c, 0, i, j), sum) << d << " layout " << layout << " k " << k;
            }
        }
}

TEST(CpuMatmulBroadcast, ABatchOfStrideZero) {
  const Array a = random_matrix(Dtype::kFloat32, {4, 3, 5}, 1),
              b = random_matrix(Dtype::kFloat32, {1, 5, 2}, 2).broadcast_to({4, 5, 2});
  const Array c = Array::uninitialized({4, 3, 2}, Dtype::kFloat32, cpu(0));
  kernels::matmul(cpu(0), MatmulCall{&a, &b, &c});
  for (int64_t s = 0; s < 4; ++s) {
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        Real sum = 0;
        for (int64_t k = 0; k < 5; ++k) sum += value_at(a, s, i, k) * value_at(b, s, k, j);
        EXPECT_EQ(value_at(c, s, i, j), sum);
      }
    }
  }
}

}  // namespace
}  // namespace catena
