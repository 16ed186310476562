// Every element-wise operation of the CPU backend in every dtype it computes in, against references
// of higher precision: contiguous, strided, transposed, broadcast, 0-d, numbers for arrays, other
// input and output dtypes, in place, and calls large enough for threads.
#include <gtest/gtest.h>

#include <random>

#include "array/elementwise_reference.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/kernels/elementwise_ops.h"

namespace catena {
namespace {

using testing::Real;
using testing::Wide;

std::vector<ElementwiseOp> all_ops() {
  return {elementwise_ops().begin(), elementwise_ops().end()};
}
std::vector<Dtype> all_dtypes() {
  std::vector<Dtype> dtypes;
  for (int i = 0; i < kDtypeCount; ++i) dtypes.push_back(static_cast<Dtype>(i));
  return dtypes;
}

// Samples of the operation's own range; integers get their extremes and zero as well.
Array samples(const ElementwiseInfo& op, Dtype dtype, const Shape& shape, unsigned seed) {
  std::mt19937 engine(seed);
  Array result = Array::uninitialized(shape, dtype, cpu(0));
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < result.size(); ++i) {
      const double u = std::uniform_real_distribution<double>(op.low, op.high)(engine);
      T value;
      if constexpr (std::is_same_v<T, bool>)
        value = engine() % 2;
      else if constexpr (std::is_integral_v<T>) {
        const uint64_t pick = engine() % 16;
        const bool shift = op.types == OpTypes::kInt && seed % 3 == 1;
        if (pick == 0)
          value = std::numeric_limits<T>::max();
        else if (pick == 1)
          value = std::numeric_limits<T>::min();
        else if (pick == 2)
          value = T(-1);
        else
          value = static_cast<T>(static_cast<int64_t>(u));
        if (std::string(op.name) == "power" && seed % 3 == 1)
          value = static_cast<T>(static_cast<int64_t>(engine() % 9) - 2);
        if (shift && pick > 2) value = static_cast<T>(engine() % 70);
      } else {
        value = T(compute_t<T>(u));
      }
      result.data<T>()[i] = value;
    }
  });
  return result;
}

template <class T>
double ulp(Real at) {
  constexpr int digits = std::is_same_v<T, float16>    ? 11
                         : std::is_same_v<T, bfloat16> ? 8
                         : std::is_same_v<T, float>    ? 24
                                                       : 53;
  constexpr int least = std::is_same_v<T, float16>    ? -24
                        : std::is_same_v<T, bfloat16> ? -133
                        : std::is_same_v<T, float>    ? -149
                                                      : -1074;
  int exponent = 0;
  std::frexp(double(at), &exponent);
  return std::ldexp(1.0, std::max(exponent - digits, least));
}

// Element i (C order) of any view.
template <class T>
T element(const Array& a, int64_t i) {
  int64_t offset = 0;
  for (int d = a.ndim() - 1; d >= 0; --d) {
    offset += i % a.shape()[size_t(d)] * a.strides()[size_t(d)];
    i /= a.shape()[size_t(d)];
  }
  return *reinterpret_cast<const T*>(static_cast<const char*>(a.raw_data()) + offset);
}

// The reference of that name, or null.
template <class References>
const typename References::mapped_type* find(const References& references, const char* name) {
  const auto found = references.find(name);
  return found == references.end() ? nullptr : &found->second;
}

// Expects output = op(inputs), all of the output's shape, computed in `dtype` with the natural
// result.
void expect_results(ElementwiseOp op, Dtype dtype, const std::vector<Array>& inputs,
                    const Array& output) {
  const ElementwiseInfo& row = info(op);
  const bool first_bool = row.first_is_bool();
  ASSERT_TRUE(is_float(dtype) ? testing::float_references().contains(row.name)
                              : testing::int_references().contains(row.name))
      << "elementwise_reference.h lacks " << row.name;
  int failures = 0;
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    [[maybe_unused]] const auto* float_reference = find(testing::float_references(), row.name);
    [[maybe_unused]] const auto* int_reference = find(testing::int_references(), row.name);
    for (int64_t i = 0; i < output.size() && failures < 3; ++i) {
      T x[3] = {};
      for (size_t k = 0; k < inputs.size(); ++k) {
        if (k == 0 && first_bool)
          x[0] = T(compute_t<T>(element<bool>(inputs[0], i)));
        else
          x[k] = element<T>(inputs[k], i);
      }
      if constexpr (std::is_integral_v<T>) {
        const int bits = std::is_same_v<T, bool> ? 1 : int(sizeof(T)) * 8;
        const Wide wide = (*int_reference)(Wide(x[0]), Wide(x[1]), Wide(x[2]), bits);
        bool same;
        if (output.dtype() == Dtype::kBool)
          same = element<bool>(output, i) == (wide != 0);
        else
          same = element<T>(output, i) == static_cast<T>(wide);
        if (!same) {
          ++failures;
          ADD_FAILURE() << row.name << " in " << name(dtype) << " at " << i << " of "
                        << int64_t(x[0]) << ", " << int64_t(x[1]) << ", " << int64_t(x[2])
                        << ": expected " << int64_t(wide) << ", got "
                        << (output.dtype() == Dtype::kBool ? int64_t(element<bool>(output, i))
                                                           : int64_t(element<T>(output, i)));
        }
      } else {
        using C = compute_t<T>;
        const auto& reference = *float_reference;
        const Real expected = reference.value(Real(C(x[0])), Real(C(x[1])), Real(C(x[2])));
        if (output.dtype() == Dtype::kBool) {
          if (element<bool>(output, i) == (expected != 0)) continue;
          ++failures;
          ADD_FAILURE() << row.name << " in " << name(dtype) << ": expected " << (expected != 0);
          continue;
        }
        const Real got = Real(C(element<T>(output, i)));
        if (std::isnan(expected) ? std::isnan(got) : got == expected) continue;
        constexpr Real kHuge = std::is_same_v<T, float16>  ? 65520.0L
                               : std::is_same_v<T, double> ? 0x1p1024L
                                                           : 0x1p128L;
        if (std::fabs(expected) >= kHuge && std::isinf(got) && (got > 0) == (expected > 0))
          continue;
        Real magnitude = std::fabs(expected);
        if (reference.of_inputs) {
          for (const T& v : x) magnitude = std::max(magnitude, std::fabs(Real(C(v))));
        }
        Real bound = ulp<T>(magnitude) * (reference.exact ? 0.5 : reference.ulps);
        // Functions may lose subnormal results.
        if (!reference.exact) bound = std::max(bound, Real(std::numeric_limits<C>::min()));
        if (!(std::fabs(got - expected) <= bound)) {
          ++failures;
          ADD_FAILURE() << row.name << " in " << name(dtype) << " at " << i << " of "
                        << double(C(x[0])) << ", " << double(C(x[1])) << ", " << double(C(x[2]))
                        << ": expected " << double(expected) << ", got " << double(got) << ", "
                        << double(std::fabs(got - expected) / ulp<T>(expected)) << " ulp";
        }
      }
    }
  });
}

void run(ElementwiseOp op, Dtype dtype, const std::vector<Array>& inputs, const Array& output) {
  ElementwiseCall call{op, dtype, static_cast<int>(inputs.size()), {}, {}, &output};
  for (size_t k = 0; k < inputs.size(); ++k) call.arrays[k] = &inputs[k];
  kernels::elementwise(cpu(0), call);
}

class CpuElementwise : public ::testing::TestWithParam<ElementwiseOp> {
 protected:
  // Calls body(dtype) for every dtype the operation computes in.
  template <class F>
  void for_each_dtype(const F& body) {
    for (Dtype d : all_dtypes()) {
      if (computes_in(GetParam(), d)) body(d);
    }
  }
  std::vector<Array> inputs(Dtype dtype, const Shape& shape) {
    const ElementwiseInfo& row = info(GetParam());
    std::vector<Array> result;
    for (int k = 0; k < row.inputs; ++k)
      result.push_back(samples(row, operand_dtype(GetParam(), k, dtype), shape, unsigned(k + 3)));
    return result;
  }
  Array output(Dtype dtype, const Shape& shape) {
    return Array::uninitialized(shape, natural_result(GetParam(), dtype), cpu(0));
  }
};

TEST_P(CpuElementwise, Contiguous) {
  for_each_dtype([&](Dtype d) {
    for (int64_t n : {1, 7, 16, 77, 1024}) {
      const auto in = inputs(d, {n});
      const Array out = output(d, {n});
      run(GetParam(), d, in, out);
      expect_results(GetParam(), d, in, out);
    }
  });
}

TEST_P(CpuElementwise, ViewsOfEveryLayout) {
  for_each_dtype([&](Dtype d) {
    auto in = inputs(d, {6, 10, 14});
    const Array whole = output(d, {14, 10, 6});
    for (size_t k = 0; k < in.size(); ++k) {
      if (k % 3 == 0)
        in[k] = in[k](Slice(none, none, 2), ellipsis, Slice(none, none, -2));
      else if (k % 3 == 1)
        in[k] = in[k](Slice(0, 1), ellipsis, Slice(0, 7)).broadcast_to({3, 10, 7});
      else
        in[k] = in[k](Slice(1, 2), Slice(2, 3), Slice(5, 6)).broadcast_to({3, 10, 7});
    }
    const Array out = whole.transpose()(Slice(none, none, 2), ellipsis, Slice(none, none, 2));
    run(GetParam(), d, in, out);
    expect_results(GetParam(), d, in, out);
  });
}

TEST_P(CpuElementwise, ZeroDimensional) {
  for_each_dtype([&](Dtype d) {
    const auto in = inputs(d, {});
    const Array out = output(d, {});
    run(GetParam(), d, in, out);
    expect_results(GetParam(), d, in, out);
  });
}

// Rows of the same numbers have the same bits, wherever they lie and whichever thread computes
// them.
TEST_P(CpuElementwise, LargeEnoughForThreads) {
  const Shape shape{311, 263};
  for_each_dtype([&](Dtype d) {
    if (d != Dtype::kFloat32 && d != Dtype::kInt16 && d != Dtype::kFloat16) return;
    const auto row = inputs(d, {263});
    const Array expected = output(d, {263});
    run(GetParam(), d, row, expected);
    expect_results(GetParam(), d, row, expected);
    std::vector<Array> in;
    for (const Array& a : row) in.push_back(a.broadcast_to(shape).copy());
    for (const bool broadcast : {false, true}) {
      if (broadcast) in.back() = row.back().broadcast_to(shape);
      const Array out = output(d, shape);
      run(GetParam(), d, in, out);
      for (int64_t i = 0; i < shape[0]; ++i) {
        const Array got = out(i);
        ASSERT_EQ(std::memcmp(got.raw_data(), expected.raw_data(), size_t(got.nbytes())), 0)
            << info(GetParam()).name << " in " << name(d) << ", row " << i;
      }
    }
  });
}

TEST_P(CpuElementwise, InPlace) {
  for_each_dtype([&](Dtype d) {
    if (natural_result(GetParam(), d) != operand_dtype(GetParam(), 0, d)) return;
    const auto in = inputs(d, {5, 77});
    auto copies = in;
    for (Array& a : copies) a = a.copy();
    run(GetParam(), d, in, in[0]);
    expect_results(GetParam(), d, copies, in[0]);
  });
}

// A number in place of an array gives the same bits as an array full of it.
TEST_P(CpuElementwise, NumbersForArrays) {
  for_each_dtype([&](Dtype d) {
    const auto in = inputs(d, {3, 41});
    for (size_t k = 0; k < in.size() && in.size() > 1; ++k) {
      auto filled = in;
      const Scalar number = in[k](1, 7).item();
      filled[k] = full({3, 41}, number, operand_dtype(GetParam(), int(k), d));
      const Array expected = output(d, {3, 41}), got = output(d, {3, 41});
      run(GetParam(), d, filled, expected);
      ElementwiseCall call{GetParam(), d, static_cast<int>(in.size()), {}, {}, &got};
      for (size_t j = 0; j < in.size(); ++j) call.arrays[j] = j == k ? nullptr : &in[j];
      call.scalars[k] = number;
      kernels::elementwise(cpu(0), call);
      EXPECT_EQ(std::memcmp(expected.raw_data(), got.raw_data(), size_t(got.nbytes())), 0)
          << info(GetParam()).name << " in " << name(d) << ", input " << k;
    }
  });
}

// Inputs of other dtypes are converted first, the result last.
TEST_P(CpuElementwise, OtherInputAndOutputDtypes) {
  for_each_dtype([&](Dtype d) {
    const auto in = inputs(d, {4, 600});
    for (Dtype other : {Dtype::kFloat64, Dtype::kInt32, Dtype::kFloat16, Dtype::kBool}) {
      if (kind_of(other) == DtypeKind::kFloat && kind_of(d) != DtypeKind::kFloat)
        continue;  // out of range
      auto foreign = in, converted = in;
      foreign.back() = in.back().astype(other);
      converted.back() = foreign.back().astype(operand_dtype(GetParam(), int(in.size()) - 1, d));
      const Array natural = output(d, {4, 600});
      run(GetParam(), d, converted, natural);
      const Array expected = natural.astype(other);
      const Array got = Array::uninitialized({4, 600}, other, cpu(0));
      run(GetParam(), d, foreign, got);
      EXPECT_EQ(std::memcmp(expected.raw_data(), got.raw_data(), size_t(got.nbytes())), 0)
          << info(GetParam()).name << " in " << name(d) << " with " << name(other);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ops, CpuElementwise, ::testing::ValuesIn(all_ops()),
                         [](const auto& param) {
                           return std::string(catena::info(param.param).name);
                         });

// Infinities, NaN, signed zeros, subnormals and large arguments.
TEST(CpuElementwiseSpecial, FloatsOutsideTheSampleRange) {
  const std::vector<double> values = {0.0,
                                      -0.0,
                                      1.0,
                                      -1.0,
                                      0.5,
                                      2.5,
                                      -2.5,
                                      1e-40,
                                      3e38,
                                      -3e38,
                                      100.0,
                                      -100.0,
                                      1e4,
                                      12345.678,
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN()};
  for (ElementwiseOp op :
       {ops::add,      ops::maximum,  ops::minimum,  ops::fmax, ops::fmin,    ops::sign,
        ops::relu,     ops::exp,      ops::log,      ops::sqrt, ops::tanh,    ops::isnan,
        ops::isinf,    ops::isfinite, ops::signbit,  ops::sin,  ops::cos,     ops::sigmoid,
        ops::softplus, ops::power,    ops::absolute, ops::erf,  ops::arctan2, ops::expm1,
        ops::log1p,    ops::rint,     ops::less,     ops::equal}) {
    for (Dtype d : {Dtype::kFloat32, Dtype::kFloat64}) {
      const int64_t n = static_cast<int64_t>(values.size());
      const Array column = array(values).astype(d).reshape({n, 1}).broadcast_to({n, n}).copy();
      std::vector<Array> in = {column};
      if (info(op).inputs == 2) in.push_back(column.T().copy());
      const Array out = Array::uninitialized({n, n}, natural_result(op, d), cpu(0));
      run(op, d, in, out);
      expect_results(op, d, in, out);
    }
  }
}

// Clip is minimum(maximum(x, low), high), with NaN anywhere and limits in any order.
TEST(CpuElementwiseSpecial, ClipIsMinimumOfMaximum) {
  const std::vector<double> values = {0.0,
                                      -0.0,
                                      1.5,
                                      -1.5,
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN()};
  const int64_t n = static_cast<int64_t>(values.size());
  for (Dtype d : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16}) {
    const Array v = array(values).astype(d);
    const Shape cube{n, n, n};
    const std::vector<Array> in = {v.reshape({n, 1, 1}).broadcast_to(cube).copy(),
                                   v.reshape({n, 1}).broadcast_to(cube).copy(),
                                   v.broadcast_to(cube).copy()};
    const Array raised = zeros(cube, d), expected = zeros(cube, d), out = zeros(cube, d);
    run(ops::maximum, d, {in[0], in[1]}, raised);
    run(ops::minimum, d, {raised, in[2]}, expected);
    run(ops::clip, d, in, out);
    const auto got = out.to_vector<double>(), wanted = expected.to_vector<double>();
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(wanted[i]))
        ASSERT_TRUE(std::isnan(got[i])) << i;
      else
        ASSERT_TRUE(got[i] == wanted[i] && std::signbit(got[i]) == std::signbit(wanted[i])) << i;
    }
  }
}

TEST(CpuElementwiseSpecial, DtypesTheOperationDoesNotComputeInAreRefused) {
  const Array a = zeros({3}, Dtype::kInt32);
  EXPECT_THROW(run(ops::exp, Dtype::kInt32, {a}, a), DtypeError);
  const Array f = zeros({3}, Dtype::kFloat16);
  EXPECT_THROW(run(ops::bitwise_and, Dtype::kFloat16, {f, f}, f), DtypeError);
}

TEST(CpuElementwiseSpecial, SigmoidReachesTheSmallestNumbers) {
  const float y = sigmoid(array<float>({-90.0F})).item<float>();
  EXPECT_NEAR(y, std::exp(-90.0), 4 * std::numeric_limits<float>::denorm_min());
  EXPECT_GT(y, 0.0F);
  EXPECT_EQ(sigmoid(array<float>({90.0F})).item<float>(), 1.0F);
}

}  // namespace
}  // namespace catena
