// Reductions of the CPU backend against long double, over every subset of axes and layout.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "catena/array/creation.h"
#include "catena/core/config.h"
#include "catena/kernels/reduce.h"

namespace catena {
namespace {

using Real = long double;

Array random_array(Dtype dtype, const Shape& shape, unsigned seed) {
  std::mt19937 engine(seed);
  Array a = Array::uninitialized(shape, dtype, cpu(0));
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < a.size(); ++i) {
      if constexpr (std::is_same_v<T, bool>)
        a.data<T>()[i] = engine() % 8 != 0;
      else if constexpr (std::is_integral_v<T>)
        a.data<T>()[i] = T(engine() % 7) - T(std::is_signed_v<T> ? 2 : 0);
      else
        a.data<T>()[i] = T(compute_t<T>(std::uniform_real_distribution<double>(0.5, 1.5)(engine) *
                                        (engine() % 4 ? 1 : -1)));
    }
  });
  return a;
}

Real value_at(const Array& a, std::span<const int64_t> position) {
  int64_t offset = 0;
  for (int d = 0; d < a.ndim(); ++d) offset += position[size_t(d)] * a.strides()[size_t(d)];
  return visit_dtype(a.dtype(), [&]<class T>(TypeTag<T>) {
    return Real(
        compute_t<T>(*reinterpret_cast<const T*>(static_cast<const char*>(a.raw_data()) + offset)));
  });
}

struct Expected {
  Real value = 0, magnitude = 0;  // magnitude: sum of absolute terms, for the error bound
  int64_t count = 0;
};

void accumulate(ReduceOp op, Expected& e, Real x) {
  const bool first = e.count++ == 0;
  switch (op) {
    case ReduceOp::kSum:
      e.value += x;
      e.magnitude += std::fabs(x);
      break;
    case ReduceOp::kSumOfSquares:
      e.value += x * x;
      e.magnitude += x * x;
      break;
    case ReduceOp::kProd:
      e.value = (first ? 1 : e.value) * x;
      e.magnitude = std::fabs(e.value);
      break;
    case ReduceOp::kMax: e.value = first || std::isnan(x) || x > e.value ? x : e.value; break;
    case ReduceOp::kMin: e.value = first || std::isnan(x) || x < e.value ? x : e.value; break;
    case ReduceOp::kAll: e.value = (first || e.value != 0) && x != 0; break;
    case ReduceOp::kAny: e.value = (!first && e.value != 0) || x != 0; break;
  }
}

// Reduces and compares every output element.
void check(ReduceOp op, const Array& input, uint32_t axes, Dtype output_dtype) {
  Shape shape = input.shape();
  for (int d = 0; d < input.ndim(); ++d) {
    if ((axes >> d) & 1) shape[size_t(d)] = 1;
  }
  const Array output = Array::uninitialized(shape, output_dtype, cpu(0));
  kernels::reduce(cpu(0), ReduceCall{op, &input, &output, axes});
  std::vector<Expected> expected(size_t(output.size()));  // in C order of the output
  std::vector<int64_t> position(size_t(input.ndim()), 0);
  for (int64_t i = 0; i < input.size(); ++i) {
    int64_t rest = i, index = 0, step = 1;
    for (int d = input.ndim() - 1; d >= 0; --d) {
      position[size_t(d)] = rest % input.shape()[size_t(d)];
      rest /= input.shape()[size_t(d)];
      if ((axes >> d) & 1) continue;
      index += position[size_t(d)] * step;
      step *= shape[size_t(d)];
    }
    accumulate(op, expected[size_t(index)], value_at(input, position));
  }
  for (int64_t i = 0; i < output.size(); ++i) {
    const Expected& e = expected[size_t(i)];
    std::vector<int64_t> kept(size_t(input.ndim()), 0);
    for (int64_t d = input.ndim() - 1, rest = i; d >= 0; --d) {
      kept[size_t(d)] = rest % shape[size_t(d)];
      rest /= shape[size_t(d)];
    }
    const Real got = value_at(output, kept);
    Real wanted = e.value;
    if (is_int(output_dtype)) {  // wraps
      visit_dtype(output_dtype, [&]<class T>(TypeTag<T>) {
        if constexpr (std::is_integral_v<T>)
          wanted = Real(static_cast<T>(static_cast<uint64_t>(static_cast<__int128>(e.value))));
      });
      if (op == ReduceOp::kProd) continue;  // compared below where it does not overflow
      ASSERT_EQ(got, wanted) << "op " << int(op) << " in " << name(output_dtype);
      continue;
    }
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(got));
      continue;
    }
    if (std::isinf(wanted)) {
      ASSERT_EQ(got, wanted);
      continue;
    }
    const Real epsilon = output_dtype == Dtype::kFloat64   ? 0x1p-52L
                         : output_dtype == Dtype::kFloat32 ? 0x1p-23L
                         : output_dtype == Dtype::kFloat16 ? 0x1p-10L
                                                           : 0x1p-7L;
    // One rounding of the result and a tree of roundings: of everything for double; in float, of at
    // most eight values of float, and for 16-bit floats of 16 additions a lane and three joins.
    const Real tree = output_dtype == Dtype::kFloat64 ? 0x1p-52L * (8 + std::log2(Real(e.count)))
                      : op == ReduceOp::kSum ? (itemsize(input.dtype()) == 2 ? 19 : 7) * 0x1p-24L
                                             : 0x1p-48L;
    ASSERT_NEAR(got, wanted, epsilon * std::fabs(wanted) + tree * e.magnitude)
        << "op " << int(op) << " in " << name(output_dtype) << " axes " << axes << " of "
        << to_string(input.shape());
  }
}

class CpuReduce : public ::testing::TestWithParam<Dtype> {};

TEST_P(CpuReduce, EveryAxisSubsetAndLayout) {
  const Array whole = random_array(GetParam(), {4, 6, 35}, 1);
  const std::vector<Array> inputs = {
      whole, whole.transpose(), whole.transpose({1, 2, 0}),
      whole(Slice(none, none, 2), Slice(none, none, -1), Slice(3, none, 2)),
      whole(Slice(0, 1)).broadcast_to({3, 6, 35})};
  for (const Array& input : inputs) {
    for (uint32_t axes = 0; axes < 8; ++axes) {
      for (ReduceOp op :
           {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kSumOfSquares}) {
        check(op, input, axes,
              GetParam() == Dtype::kBool && (op == ReduceOp::kSum || op == ReduceOp::kSumOfSquares)
                  ? Dtype::kInt64
                  : GetParam());
      }
      check(ReduceOp::kAll, input, axes, Dtype::kBool);
      check(ReduceOp::kAny, input, axes, Dtype::kBool);
      if (is_float(GetParam()) && axes < 4) check(ReduceOp::kProd, input, axes, GetParam());
      check(ReduceOp::kSum, input, axes, Dtype::kFloat64);
    }
  }
}

TEST_P(CpuReduce, SegmentsAndThreads) {
  if (GetParam() != Dtype::kFloat32 && GetParam() != Dtype::kFloat64 && GetParam() != Dtype::kInt32)
    return;
  const Array rows = random_array(GetParam(), {2, 140000}, 2), columns = rows.reshape({140000, 2}),
              wide = rows.reshape({400, 700});
  for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
    for (const Array& a : {rows, columns, wide}) {
      for (uint32_t axes = 1; axes < 4; ++axes) check(op, a, axes, GetParam());
    }
  }
}

TEST_P(CpuReduce, KeptAxesBetweenReducedOnes) {
  const Array flat = random_array(GetParam(), {280000}, 5);
  for (const Shape& shape : {Shape{1400, 4, 50}, Shape{20, 7, 2000}, Shape{5, 28000, 2},
                             Shape{2, 7, 20000}, Shape{2, 70000, 2}}) {
    const Array a = flat.reshape(shape), halves = a(Slice(), Slice(), Slice(none, none, 2));
    for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kSumOfSquares}) {
      if (GetParam() == Dtype::kBool && op != ReduceOp::kMax) continue;
      if (GetParam() == Dtype::kFloat16 && op == ReduceOp::kSumOfSquares) continue;  // overflows
      check(op, a, 5, GetParam());
      check(op, halves, 5, GetParam());
    }
    check(ReduceOp::kAll, a, 5, Dtype::kBool);
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CpuReduce,
                         ::testing::Values(Dtype::kBool, Dtype::kInt8, Dtype::kInt16, Dtype::kInt32,
                                           Dtype::kInt64, Dtype::kUInt8, Dtype::kUInt16,
                                           Dtype::kUInt32, Dtype::kUInt64, Dtype::kFloat16,
                                           Dtype::kBFloat16, Dtype::kFloat32, Dtype::kFloat64),
                         [](const auto& p) { return std::string(name(p.param)); });

TEST(CpuReduceForms, IndependentOfTheNumberOfThreads) {
  const int before = cpu_threads();
  const Array a = random_array(Dtype::kFloat64, {1000, 1000}, 3);
  for (uint32_t axes : {1u, 2u, 3u}) {
    const Shape shape{axes & 1 ? 1 : 1000, axes & 2 ? 1 : 1000};
    std::vector<Array> results;
    for (int threads : {1, 2, 5}) {
      set_cpu_threads(threads);
      results.push_back(Array::uninitialized(shape, Dtype::kFloat64, cpu(0)));
      kernels::reduce(cpu(0), ReduceCall{ReduceOp::kSum, &a, &results.back(), axes});
    }
    EXPECT_EQ(results[0].to_vector<double>(), results[1].to_vector<double>());
    EXPECT_EQ(results[0].to_vector<double>(), results[2].to_vector<double>());
  }
  set_cpu_threads(before);
}

TEST(CpuReduceForms, DivideAndAccumulate) {
  for (Dtype d : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16}) {
    const Array a = ones({4, 8}, d), out = full({4, 1}, 3, d);
    kernels::reduce(cpu(0), ReduceCall{ReduceOp::kSum, &a, &out, 2, 4, true});
    EXPECT_EQ(out.to_vector<double>(), std::vector<double>(4, 5.0));
    kernels::reduce(cpu(0), ReduceCall{ReduceOp::kSum, &a, &out, 2, 4, false});
    EXPECT_EQ(out.to_vector<double>(), std::vector<double>(4, 2.0));
  }
  const Array n = full({4, 8}, 2, Dtype::kInt16), out = full({1, 8}, 3, Dtype::kInt16);
  kernels::reduce(cpu(0), ReduceCall{ReduceOp::kSum, &n, &out, 1, 1, true});
  EXPECT_EQ(out.to_vector<int>(), std::vector<int>(8, 11));
}

TEST(CpuReduceForms, ProductsOfIntegers) {
  const Array a = full({5, 3}, 3, Dtype::kInt64),
              out = Array::uninitialized({1, 3}, Dtype::kInt64, cpu(0));
  kernels::reduce(cpu(0), ReduceCall{ReduceOp::kProd, &a, &out, 1});
  EXPECT_EQ(out.to_vector<int>(), std::vector<int>(3, 243));
}

// Some values are added in float before they are in double.
TEST(CpuReduceForms, FloatSumsOverflowOnlyWhereTheResultDoes) {
  const Array a = Array::uninitialized({64, 300}, Dtype::kFloat32, cpu(0));
  for (int64_t i = 0; i < a.size(); ++i) a.data<float>()[i] = i / 300 < 32 ? 3e38f : -3e38f;
  a.data<float>()[5] = 0;
  const Array columns = Array::uninitialized({1, 300}, Dtype::kFloat32, cpu(0));
  kernels::reduce(cpu(0), ReduceCall{ReduceOp::kSum, &a, &columns, 1});
  for (int64_t j = 0; j < 300; ++j)
    ASSERT_EQ(columns.data<float>()[j], j == 5 ? -3e38f : 0) << "column " << j;
  const Array turned = a.T().copy(), rows = Array::uninitialized({300, 1}, Dtype::kFloat32, cpu(0));
  kernels::reduce(cpu(0), ReduceCall{ReduceOp::kSum, &turned, &rows, 2});
  EXPECT_EQ(rows.to_vector<float>(), columns.to_vector<float>());
  a.data<float>()[7] = INFINITY;
  kernels::reduce(cpu(0), ReduceCall{ReduceOp::kSum, &a, &columns, 1});
  EXPECT_EQ(columns.data<float>()[7], INFINITY);
  EXPECT_EQ(columns.data<float>()[8], 0);
}

TEST(CpuReduceForms, EmptyInputsGiveTheIdentity) {
  const Array a = zeros({0, 3}, Dtype::kFloat32), out = full({1, 3}, 7, Dtype::kFloat32);
  kernels::reduce(cpu(0), ReduceCall{ReduceOp::kSum, &a, &out, 1, 1, true});
  EXPECT_EQ(out.to_vector<float>(), std::vector<float>(3, 7));
  kernels::reduce(cpu(0), ReduceCall{ReduceOp::kSum, &a, &out, 1});
  EXPECT_EQ(out.to_vector<float>(), std::vector<float>(3, 0));
  kernels::reduce(cpu(0), ReduceCall{ReduceOp::kProd, &a, &out, 1});
  EXPECT_EQ(out.to_vector<float>(), std::vector<float>(3, 1));
}

TEST(CpuReduceForms, NanWinsExtremes) {
  for (Dtype d : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kBFloat16}) {
    for (int64_t at : {0, 40, 99}) {
      Array a = random_array(Dtype::kFloat64, {100}, 4);
      a.data<double>()[at] = std::nan("");
      for (ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
        check(op, a.astype(d), 1, d);
        check(op, a.astype(d).reshape({100, 1}).broadcast_to({100, 5}).copy(), 1, d);
      }
      const Array cast = a.astype(d), out = Array::uninitialized({1}, Dtype::kInt64, cpu(0));
      kernels::arg_reduce(cpu(0), ArgReduceCall{true, &cast, 0, &out});
      EXPECT_EQ(out.item<int64_t>(), at);
    }
  }
}

// Lengths around the widths of the loops; infinities of both signs are taken for a NaN at first.
TEST(CpuReduceForms, ExtremesOfEveryLength) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (Dtype d : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16}) {
    for (int64_t n : {1, 7, 8, 15, 16, 17, 33, 63, 64, 65, 127, 130, 1000, 2500}) {
      for (int special = 0; special < 4; ++special) {  // none, both infinities, NaN, all of them
        const Array wide = random_array(Dtype::kFloat64, {n}, unsigned(n));
        if (special % 2 == 1) {
          wide.data<double>()[n / 3] = kInf;
          wide.data<double>()[n - 1] = -kInf;
        }
        if (special >= 2) wide.data<double>()[n / 2] = std::nan("");
        const Array a = wide.astype(d);
        for (bool maximum : {true, false}) {
          check(maximum ? ReduceOp::kMax : ReduceOp::kMin, a, 1, d);
          const Array out = Array::uninitialized({1}, Dtype::kInt64, cpu(0));
          kernels::arg_reduce(cpu(0), ArgReduceCall{maximum, &a, 0, &out});
          int64_t best = 0;
          for (int64_t i = 1; i < n; ++i) {
            const Real x = value_at(a, std::array{i}), y = value_at(a, std::array{best});
            if (!std::isnan(y) && (std::isnan(x) || (maximum ? x > y : x < y))) best = i;
          }
          ASSERT_EQ(out.item<int64_t>(), best) << name(d) << " of " << n << ", case " << special;
        }
      }
    }
  }
}

TEST(CpuReduceForms, TruthIsDecidedEarlyAndLate) {
  for (int64_t n : {1, 5, 100, 5000, 300000}) {
    for (int64_t at : {int64_t{0}, n / 2, n - 1}) {
      const Array yes = ones({n}, Dtype::kBool), no = zeros({n}, Dtype::kBool);
      const Array out = Array::uninitialized({1}, Dtype::kBool, cpu(0));
      const auto reduced = [&](ReduceOp op, const Array& a) {
        kernels::reduce(cpu(0), ReduceCall{op, &a, &out, 1});
        return out.item<bool>();
      };
      EXPECT_TRUE(reduced(ReduceOp::kAll, yes));
      EXPECT_FALSE(reduced(ReduceOp::kAny, no));
      yes.data<bool>()[at] = false;
      no.data<bool>()[at] = true;
      EXPECT_FALSE(reduced(ReduceOp::kAll, yes));
      EXPECT_TRUE(reduced(ReduceOp::kAny, no));
    }
  }
}

// Rows added several at a time give the bits of rows added one by one.
TEST(CpuReduceForms, ColumnsAreAddedInOrder) {
  for (int64_t rows = 1; rows < 40; ++rows) {
    const Array a = random_array(Dtype::kFloat64, {rows, 37}, unsigned(rows));
    const Array out = Array::uninitialized({1, 37}, Dtype::kFloat64, cpu(0));
    kernels::reduce(cpu(0), ReduceCall{ReduceOp::kSum, &a, &out, 1});
    for (int64_t j = 0; j < 37; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < rows; ++i) sum += a.data<double>()[i * 37 + j];
      ASSERT_EQ(out.data<double>()[j], sum) << rows << " rows, column " << j;
    }
  }
}

TEST(CpuArgReduce, ColumnsWithNanAndThreads) {
  const Array whole = random_array(Dtype::kFloat64, {2, 50, 5001}, 8);
  for (int64_t i = 0; i < whole.size(); i += 977) whole.data<double>()[i] = std::nan("");
  for (Dtype d : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kInt16}) {
    const Array values = d == Dtype::kInt16 ? random_array(d, {2, 50, 5001}, 9) : whole.astype(d);
    for (const Array& a : {values, values(Slice(), Slice(none, none, 2), Slice(none, none, -2))}) {
      const int64_t rows = a.shape()[1], columns = a.shape()[2];
      for (bool maximum : {true, false}) {
        const Array out = Array::uninitialized({2, 1, columns}, Dtype::kInt64, cpu(0));
        kernels::arg_reduce(cpu(0), ArgReduceCall{maximum, &a, 1, &out});
        for (int64_t i = 0; i < out.size(); ++i) {
          const auto at = [&](int64_t k) {
            return value_at(a, std::array{i / columns, k, i % columns});
          };
          int64_t best = 0;
          for (int64_t k = 1; k < rows && !std::isnan(at(best)); ++k) {
            if (std::isnan(at(k)) || (maximum ? at(k) > at(best) : at(k) < at(best))) best = k;
          }
          ASSERT_EQ(out.data<int64_t>()[i], best) << name(d) << " column " << i;
        }
      }
    }
  }
}

TEST(CpuArgReduce, FirstExtremeAlongEveryAxis) {
  for (Dtype d : {Dtype::kBool, Dtype::kInt8, Dtype::kUInt64, Dtype::kFloat16, Dtype::kFloat32,
                  Dtype::kFloat64}) {
    for (const Array& a :
         {random_array(d, {3, 5, 130}, 5), random_array(d, {130, 5, 3}, 5).transpose(),
          random_array(d, {2, 2, 3000}, 6)}) {
      for (int axis = 0; axis < 3; ++axis) {
        for (bool maximum : {true, false}) {
          Shape shape = a.shape();
          shape[size_t(axis)] = 1;
          const Array out = Array::uninitialized(shape, Dtype::kInt64, cpu(0));
          kernels::arg_reduce(cpu(0), ArgReduceCall{maximum, &a, axis, &out});
          for (int64_t i = 0; i < out.size(); ++i) {
            std::vector<int64_t> p = {i / (shape[1] * shape[2]), i / shape[2] % shape[1],
                                      i % shape[2]};
            const int64_t got = out.data<int64_t>()[i];
            int64_t best = 0;
            Real extreme = 0;
            for (int64_t k = 0; k < a.shape()[size_t(axis)]; ++k) {
              p[size_t(axis)] = k;
              const Real v = value_at(a, p);
              if (k == 0 || (maximum ? v > extreme : v < extreme)) {
                extreme = v;
                best = k;
              }
            }
            ASSERT_EQ(got, best) << name(d) << " axis " << axis;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace catena
