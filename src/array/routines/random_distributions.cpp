// Integers, choices and draws made from the basic ones of RandomState, and the module's functions.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "array/routines/random_draws.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/core/dtype_info.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/random.h"

namespace catena {
namespace {

// Probabilities of choice as doubles on the host.
std::vector<double> probabilities(const Array& p, int64_t n) {
  CATENA_CHECK(ShapeError, p.ndim() == 1 && p.size() == n, "expected one probability for each of ",
               n, " positions, got shape ", p.shape());
  std::vector<double> values = p.to_vector<double>();
  const double tolerance = std::sqrt(finfo(is_float(p.dtype()) ? p.dtype() : Dtype::kFloat64).eps);
  double sum = 0;
  for (double v : values) {
    CATENA_CHECK(ValueError, v >= 0 && std::isfinite(v), "probabilities must not be negative, got ",
                 v);
    sum += v;
  }
  CATENA_CHECK(ValueError, std::abs(sum - 1) <= tolerance, "probabilities must add up to 1, these ",
               p.dtype(), " ones give ", sum, "; divide them by their sum");
  for (double& v : values) v /= sum;
  return values;
}

// The alias method (Walker 1977, tables after Vose 1991): position k is kept with probability
// keep[k], else alias[k] is taken.
struct AliasTables {
  std::vector<double> keep;
  std::vector<int64_t> alias;
};

AliasTables alias_tables(const std::vector<double>& p) {
  const auto n = static_cast<int64_t>(p.size());
  AliasTables t{std::vector<double>(p.size(), 1.0), std::vector<int64_t>(p.size())};
  std::iota(t.alias.begin(), t.alias.end(), 0);
  std::vector<double> weight(p.size());
  std::vector<size_t> small, large;
  for (size_t k = 0; k < p.size(); ++k) {
    weight[k] = p[k] * static_cast<double>(n);
    (weight[k] < 1 ? small : large).push_back(k);
  }
  while (!small.empty() && !large.empty()) {
    const size_t s = small.back(), l = large.back();
    small.pop_back();
    t.keep[s] = weight[s];
    t.alias[s] = static_cast<int64_t>(l);
    weight[l] -= 1 - weight[s];
    if (weight[l] < 1) {
      large.pop_back();
      small.push_back(l);
    }
  }
  // What rounding leaves over gets probability 1, unless it had no weight from the start.
  for (size_t k : small) {
    if (p[k] > 0) continue;
    t.keep[k] = 0;
    t.alias[k] = std::max_element(p.begin(), p.end()) - p.begin();
  }
  return t;
}

Array weighted(RandomState& state, const std::vector<double>& p, const Shape& shape) {
  const AliasTables t = alias_tables(p);
  const Device device = current_device();
  const auto n = static_cast<int64_t>(p.size());
  const Array column = state.integers(shape, 0, n, {Dtype::kInt64, device});
  const Array u = state.uniform(shape, 0, 1, {Dtype::kFloat64, device});
  const Array keep = take(array(t.keep, device), column, 0, OutOfRange::kWrap);
  const Array alias = take(array(t.alias, device), column, 0, OutOfRange::kWrap);
  return where(u < keep, column, alias);
}

// Exponential waiting times with rates p; the first `count` to end are chosen (Efraimidis &
// Spirakis 2006). Computed on the host, so that the result does not depend on the device's
// logarithm.
Array weighted_without_replacement(RandomState& state, const std::vector<double>& p,
                                   const Shape& shape) {
  const auto count = static_cast<size_t>(element_count(shape));
  const auto possible =
      static_cast<size_t>(std::count_if(p.begin(), p.end(), [](double v) { return v > 0; }));
  CATENA_CHECK(ValueError, count <= possible, "expected at most ", possible,
               " positions without replacement, the number of positive probabilities, got ", count);
  const std::vector<double> u =
      state.uniform({int64_t(p.size())}, 0, 1, {Dtype::kFloat64, cpu(0)}).to_vector<double>();
  std::vector<double> time(p.size());
  for (size_t k = 0; k < p.size(); ++k) time[k] = p[k] > 0 ? -std::log(1 - u[k]) / p[k] : HUGE_VAL;
  std::vector<int64_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](int64_t a, int64_t b) {
                      return std::pair(time[size_t(a)], a) < std::pair(time[size_t(b)], b);
                    });
  order.resize(count);
  return array(order, shape, current_device());
}

}  // namespace

Array RandomState::random_sample(const Shape& shape, const ArrayOptions& options) {
  const EntryScope call("random_sample");
  return uniform(shape, 0, 1, options);
}
Array RandomState::standard_normal(const Shape& shape, const ArrayOptions& options) {
  const EntryScope call("standard_normal");
  return normal(shape, 0, 1, options);
}
Array RandomState::rand(const Shape& shape, const ArrayOptions& options) {
  const EntryScope call("rand");
  return uniform(shape, 0, 1, options);
}
Array RandomState::randn(const Shape& shape, const ArrayOptions& options) {
  const EntryScope call("randn");
  return normal(shape, 0, 1, options);
}

Array RandomState::randint(int64_t low, std::optional<int64_t> high, const Shape& shape,
                           const ArrayOptions& options) {
  const EntryScope call("randint");
  const int64_t from = high ? low : 0, to = high ? *high : low;
  CATENA_CHECK(ValueError, from < to, "low >= high: no integer is in [", from, ", ", to, ")");
  return integers(shape, from, to, {options.dtype.value_or(Dtype::kInt32), options.device});
}

Array RandomState::random_integers(int64_t low, std::optional<int64_t> high, const Shape& shape,
                                   const ArrayOptions& options) {
  const EntryScope call("random_integers");
  const int64_t from = high ? low : 1, to = high ? *high : low;
  CATENA_CHECK(ValueError, from <= to && to < INT64_MAX, "low > high: no integer", " is in [", from,
               ", ", to, "], or high + 1 does not fit int64");
  return integers(shape, from, to + 1, {options.dtype.value_or(Dtype::kInt32), options.device});
}

Array RandomState::interval(int32_t largest, const Shape& shape) {
  const EntryScope call("interval");
  CATENA_CHECK(ValueError, largest >= 0, "expected a largest number of at least 0, got ", largest);
  return integers(shape, 0, int64_t{largest} + 1, Dtype::kInt32);
}

Array RandomState::choice(int64_t n, const Shape& shape, YesNo replace, const OptionalArray& p) {
  const EntryScope call("choice");
  CATENA_CHECK(ValueError, n > 0, "expected at least 1 position to choose from, got ", n);
  const int64_t count = element_count(shape);
  CATENA_CHECK(ValueError, replace || count <= n, "expected at most ", n,
               " positions without replacement, got ", count);
  if (p.given()) {
    const std::vector<double> weights = probabilities(p, n);
    return replace ? weighted(*this, weights, shape)
                   : weighted_without_replacement(*this, weights, shape);
  }
  if (replace) return integers(shape, 0, n);
  return permutation(n)(Slice(0, count)).reshape(shape).copy();
}

Array RandomState::choice(const Array& a, const Shape& shape, YesNo replace,
                          const OptionalArray& p) {
  const EntryScope call("choice");
  CATENA_CHECK(ShapeError, a.ndim() > 0, "expected an array with an axis to choose along");
  const DeviceScope scope(a.device());
  return take(a, choice(a.length(), shape, replace, p), 0, OutOfRange::kWrap);
}

Array RandomState::permutation(const Array& a) {
  const EntryScope call("permutation");
  CATENA_CHECK(ShapeError, a.ndim() > 0, "expected an array with at least one axis");
  if (a.size() == 0) return a.copy();
  return take(a, permutation(a.length(), a.device()), 0, OutOfRange::kWrap);
}

void RandomState::shuffle(const Array& a) {
  const EntryScope call("shuffle");
  CATENA_CHECK(ShapeError, a.ndim() > 0, "expected an array with at least one axis");
  a.assign(permutation(a));
}

std::vector<uint8_t> RandomState::bytes(int64_t count) {
  const EntryScope entry("bytes");
  CATENA_CHECK(ValueError, count >= 0, "expected a count of at least 0, got ", count);
  std::vector<uint8_t> result(static_cast<size_t>(count));
  if (count == 0) return result;
  const int64_t words = (count + 7) / 8;
  const Array bits = Array::uninitialized({words}, Dtype::kUInt64, cpu(0));
  RandomCall call{};
  call.kind = RandomKind::kBits64;
  call.bits = reserve(static_cast<uint64_t>((words + 1) / 2), cpu(0));
  call.output = &bits;
  kernels::random(cpu(0), call);
  std::memcpy(result.data(), bits.raw_data(), result.size());
  return result;
}

namespace random {

Array random_sample(const Shape& shape, const ArrayOptions& options) {
  return default_state(options.device_or_current()).random_sample(shape, options);
}
Array standard_normal(const Shape& shape, const ArrayOptions& options) {
  return default_state(options.device_or_current()).standard_normal(shape, options);
}
Array rand(const Shape& shape, const ArrayOptions& options) {
  return default_state(options.device_or_current()).rand(shape, options);
}
Array randn(const Shape& shape, const ArrayOptions& options) {
  return default_state(options.device_or_current()).randn(shape, options);
}
Array randint(int64_t low, std::optional<int64_t> high, const Shape& shape,
              const ArrayOptions& options) {
  return default_state(options.device_or_current()).randint(low, high, shape, options);
}
Array random_integers(int64_t low, std::optional<int64_t> high, const Shape& shape,
                      const ArrayOptions& options) {
  return default_state(options.device_or_current()).random_integers(low, high, shape, options);
}
Array choice(int64_t n, const Shape& shape, YesNo replace, const OptionalArray& p) {
  return default_state().choice(n, shape, replace, p);
}
Array choice(const Array& a, const Shape& shape, YesNo replace, const OptionalArray& p) {
  const EntryScope call("choice");
  return default_state(device_of({a})).choice(a, shape, replace, p);
}
Array permutation(const Array& a) {
  const EntryScope call("permutation");
  return default_state(device_of({a})).permutation(a);
}
void shuffle(const Array& a) {
  const EntryScope call("shuffle");
  default_state(device_of({a})).shuffle(a);
}
std::vector<uint8_t> bytes(int64_t count) { return default_state(cpu(0)).bytes(count); }

}  // namespace random

}  // namespace catena
