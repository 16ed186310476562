// Random call of attention, and its comparison with the provider that is composed of array
// functions, in float64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <random>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/core/device.h"
#include "catena/functions/array/cast.h"
#include "catena/functions/attention/scaled_dot_product_attention.h"
#include "catena/functions/math.h"
#include "catena/kernels/attention.h"
#include "catena/testing.h"
#include "precision_scope.h"

namespace catena::testing {

namespace F = functions;

inline constexpr const char* kComposedAlone =
    "attention/composed:only,attention_grad/composed:only";

// What a case draws.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return int64_t(engine_() % uint64_t(n)); }
  bool one_in(int64_t n) { return below(n) == 0; }
  template <class T>
  T of(std::initializer_list<T> values) {
    return values.begin()[below(int64_t(values.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

// (batch, heads, rows, columns) in C order, with positions before heads, or as a slice of a
// projection of twice as many columns.
inline Array laid_out(const Array& a, int64_t layout) {
  if (layout == 0) return a.copy();
  if (layout == 1) return a.transpose({0, 2, 1, 3}).copy().transpose({0, 2, 1, 3});
  const Array both = concatenate({a, a}, 3);
  return both.transpose({0, 2, 1, 3})
      .copy()
      .transpose({0, 2, 1, 3})
      .at({ellipsis, Slice(0, a.shape()[3])});
}

inline Array offsets_of(Dice& dice, int64_t extent, int64_t documents) {
  std::vector<int32_t> offsets{0, int32_t(extent)};
  for (int64_t n = 1; n < documents; ++n) offsets.push_back(int32_t(dice.below(extent + 1)));
  std::sort(offsets.begin(), offsets.end());
  return array(offsets, {int64_t(offsets.size())});
}

struct Case {
  Array q, k, v, bias, gy, glog_sum;
  F::AttentionOptions options;
  bool has_glog_sum = false;
};

inline Case draw(uint64_t seed, Dtype dtype) {
  Dice dice(seed);
  const int64_t queries = dice.of<int64_t>({1, 2, 63, 64, 65, 129, 197}),
                keys = dice.of<int64_t>({1, 3, 64, 127, 128, 129, 197, 300}),
                depth = dice.of<int64_t>({1, 8, 32, 64, 80, 128, 200}),
                width = dice.of<int64_t>({1, 16, 64, 96, 256}), groups = 1 + dice.below(3),
                heads = groups * (1 + dice.below(3));
  const bool has_documents = dice.one_in(5);
  const int64_t batch = has_documents ? 1 : 1 + dice.below(3);
  uint64_t stream = seed * 16;
  const auto numbers = [&](const Shape& shape, double size = 2) {
    return testing::random_array(shape, -size, size, Dtype::kFloat64, cpu(0), stream++)
        .astype(dtype);
  };
  Case c;
  const double size = dice.one_in(4) ? 20 : 1;  // large scores
  c.q = laid_out(numbers({batch, heads, queries, depth}, size), dice.below(3));
  c.k = laid_out(numbers({batch, groups, keys, depth}), dice.below(3));
  c.v = laid_out(numbers({batch, groups, keys, width}), dice.below(3));
  c.gy = numbers({batch, heads, queries, width});
  c.glog_sum = numbers({batch, heads, queries});
  c.has_glog_sum = dice.one_in(3);
  F::AttentionOptions& o = c.options;
  o.causal = dice.one_in(2);
  if (dice.one_in(3)) o.window = 1 + dice.below(keys + 2);
  if (dice.one_in(4)) o.softcap = 3.0;
  if (dice.one_in(4)) o.dropout = 0.3;
  const auto axis = [&](int64_t extent) { return dice.one_in(2) ? 1 : extent; };
  if (dice.one_in(3)) {
    c.bias = numbers({axis(batch), axis(heads), axis(queries), axis(keys)});
    o.bias = c.bias;
  }
  if (dice.one_in(4))
    o.mask = greater(numbers({axis(batch), 1, axis(queries), keys}), dice.one_in(3) ? 1.9 : -1);
  if (dice.one_in(4)) {
    std::vector<int32_t> lengths;
    for (int64_t b = 0; b < batch; ++b) lengths.push_back(int32_t(dice.below(keys + 1)));
    o.key_lengths = array(lengths, {batch});
  }
  if (has_documents) {
    const int64_t documents = 1 + dice.below(4);
    o.documents = offsets_of(dice, queries, documents);
    o.key_documents = offsets_of(dice, keys, documents);
  } else if (dice.one_in(4)) {
    o.query_start = full({batch}, double(dice.below(keys)), {Dtype::kInt32, cpu(0)});
  }
  return c;
}

inline Array moved(const Array& a, Device device, Dtype dtype) {
  return a.astype(dtype, false).to(device);
}

// y, log_sum_exp and all gradients, computed on a device in a dtype.
inline Arrays run(const Case& c, Device device, Dtype dtype) {
  const Variable q(moved(c.q, device, dtype)), k(moved(c.k, device, dtype)),
      v(moved(c.v, device, dtype));
  F::AttentionOptions o = c.options;
  const Variable bias = c.bias.defined() ? Variable(moved(c.bias, device, dtype)) : Variable();
  if (bias.defined()) o.bias = bias;
  for (std::optional<Array>* numbers :
       {&o.mask, &o.key_lengths, &o.query_start, &o.documents, &o.key_documents})
    if (*numbers) *numbers = (*numbers)->to(device);
  random::seed(7, device);
  const F::AttentionResult result = F::attention_with_statistics(q, k, v, o);
  const Variable loss = F::sum(result.y * moved(c.gy, device, dtype));
  const bool finite = all(isfinite(result.log_sum_exp.data())).truth();
  if (c.has_glog_sum && finite) {
    const Dtype wide = result.log_sum_exp.dtype();
    (F::cast(loss, wide) + F::sum(result.log_sum_exp * moved(c.glog_sum, device, wide))).backward();
  } else {
    loss.backward();
  }
  Arrays results{result.y.data(), result.log_sum_exp.data(), q.grad(), k.grad(), v.grad()};
  if (bias.defined()) results.push_back(bias.grad());
  return results;
}

struct Type {
  Dtype dtype;
  double eps;                                 // error of a number of size 1
  Precision precision = Precision::kFloat32;  // of products
};
inline constexpr Type kTypes[] = {{Dtype::kFloat64, 1e-12},
                                  {Dtype::kFloat32, 5e-5},
                                  {Dtype::kFloat16, 0x1p-11},
                                  {Dtype::kBFloat16, 0x1p-8}};
inline constexpr Type kTf32{Dtype::kFloat32, 4e-3, Precision::kTf32};
inline constexpr const char* kResults[] = {"y", "log_sum_exp", "gq", "gk", "gv", "gbias"};

// In the order of kResults.
enum class Result : size_t { kY, kLogSumExp, kGq, kGk, kGv, kGbias };

// What a result with numbers of up to `size` may be off by.
class Tolerances {
 public:
  Tolerances(const Case& c, const Type& type) : c_(c), type_(type) {}
  double of(Result result, const Shape& shape, double size) const {
    const double rounded = 2 * type_.eps * (1 + size);
    switch (result) {
      case Result::kLogSumExp: return of_norm() * (1 + size);
      case Result::kGq: return 2 * rounded + of_scores() * scale() * largest(c_.k);
      case Result::kGk:
        return 2 * rounded +
               of_scores() * scale() * largest(c_.q) * of_sums(element_count(shape) / shape[3]);
      case Result::kGbias: return 2 * rounded + of_scores() * of_sums(element_count(shape));
      case Result::kY:
      case Result::kGv: break;
    }
    return rounded;
  }

 private:
  // Computed in float32 from exact products, where those are not rounded.
  double of_norm() const {
    const bool exact = type_.precision == Precision::kFloat32;
    return exact ? std::min(type_.eps, 1e-5) : type_.eps;
  }
  // The gradient of a score is the difference of two products of rows of v's width, which cancel
  // where a weight is near 1.
  double of_scores() const { return 4 * type_.eps * std::sqrt(double(c_.v.shape()[3])); }
  // Of so many sums over the scores of a group, for which errors add up like random ones.
  double of_sums(int64_t sums) const {
    const Shape &q = c_.q.shape(), &k = c_.k.shape();
    return std::sqrt(std::max(1.0, double(q[0] * q[1] * q[2] * k[2]) / double(sums)));
  }
  double scale() const { return 1 / std::sqrt(double(c_.q.shape()[3])); }
  static double largest(const Array& a) {
    return amax(absolute(a.astype(Dtype::kFloat64))).item<double>();
  }

  const Case& c_;
  const Type& type_;
};

inline void expect_like_composed(const Case& c, const Type& type, Device device) {
  const Arrays got = [&] {
    const PrecisionScope precision(type.precision);
    return run(c, device, type.dtype);
  }();
  const ProviderScope composed(kComposedAlone);
  const Arrays expected = run(c, cpu(0), Dtype::kFloat64);
  const Tolerances tolerances(c, type);
  for (size_t i = 0; i < got.size(); ++i) {
    const Array a = got[i].to_cpu().astype(Dtype::kFloat64);
    ASSERT_EQ(a.shape(), expected[i].shape());
    const Array& b = expected[i];
    const double size = amax(where(isfinite(b), absolute(b), 0)).item<double>();
    const Array off = where(equal(a, b), 0, absolute(a - b));
    const double worst = amax(off).item<double>(), most = tolerances.of(Result(i), b.shape(), size);
    ASSERT_LE(worst, most) << kResults[i] << ", wrong: " << count_nonzero(greater(off, most))
                           << " of " << off.size() << " of " << message(off.shape());
    ASSERT_FALSE(std::isnan(worst)) << kResults[i];
  }
}
inline void expect_like_composed(uint64_t seed, const Type& type, Device device) {
  SCOPED_TRACE(message("seed ", seed, ", ", type.dtype, ", ", device));
  expect_like_composed(draw(seed, type.dtype), type, device);
}

}  // namespace catena::testing
