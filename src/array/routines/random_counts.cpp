// Distributions of counts: Poisson, binomial, geometric, negative binomial, multinomial.
//
// If all numbers share one parameter they are drawn by inversion: a uniform number is looked up in
// the distribution function, which the host tabulates. The numbers are therefore equal bit for bit
// on every device.
#include <algorithm>
#include <cmath>
#include <vector>

#include "array/one_wait.h"
#include "array/routines/random_draws.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/scan.h"
#include "catena/array/sorting.h"
#include "catena/core/entry_scope.h"

namespace catena {
namespace {

// The distribution function at first, first + 1, ...; the last value is 1.
struct Table {
  int64_t first;
  std::vector<double> cumulated;
};

// Tabulates from the ratios of weights around the mode: up(k) = w(k + 1) / w(k), 0 at the end;
// down(k) = w(k - 1) / w(k). Weights below 2^-70 of the largest one cannot be drawn with 53 bits.
template <class Up, class Down>
Table tabulate(int64_t mode, Up up, Down down) {
  constexpr double negligible = 0x1p-70;
  std::vector<double> below, above{1};
  for (double w = down(mode); w > negligible; w *= down(mode - int64_t(below.size())))
    below.push_back(w);
  for (double w = up(mode); w > negligible; w *= up(mode + int64_t(above.size()) - 1))
    above.push_back(w);
  Table t{mode - int64_t(below.size()), {below.rbegin(), below.rend()}};
  t.cumulated.insert(t.cumulated.end(), above.begin(), above.end());
  double sum = 0;
  for (double& w : t.cumulated) w = sum += w;
  for (double& w : t.cumulated) w /= sum;
  t.cumulated.back() = 1;
  return t;
}

Array by_inversion(RandomState& state, const Table& table, const Shape& shape) {
  refuse_capture(empty({}));  // the table comes from the host
  const Array u = state.uniform(shape, 0, 1, Dtype::kFloat64);
  return searchsorted(array(table.cumulated, current_device()), u, true) + table.first;
}

Table poisson_table(double rate) {
  return tabulate(
      static_cast<int64_t>(rate), [&](int64_t k) { return rate / double(k + 1); },
      [&](int64_t k) { return k > 0 ? double(k) / rate : 0.0; });
}

// For rates of up to 10: sums the probabilities until they exceed a uniform number.
Array poisson_by_search(RandomState& state, Array rate) {
  const Array result = empty({rate.size()}, Dtype::kFloat64);
  Array u = state.uniform({rate.size()}, 0, 1, Dtype::kFloat64), term = exp(-rate), sum = term;
  Array count = zeros({rate.size()}, Dtype::kFloat64), open;
  // The probabilities beyond 80 are below 1e-40 in total; rounding may keep a sum below the largest
  // u.
  for (int k = 1; k <= 80 && rate.size() > 0; ++k) {
    count = count + (u >= sum);
    term = term * rate / k;
    sum = sum + term;
    if (k % 8 != 0) continue;
    store_round(result, open, count);
    const Array chosen = flatnonzero(u >= sum);
    const auto keep = [&](const Array& x) { return take(x, chosen, 0, OutOfRange::kWrap); };
    open = open.defined() ? keep(open) : chosen;
    rate = keep(rate), u = keep(u), term = keep(term), sum = keep(sum), count = keep(count);
  }
  return result;
}

// log(k!) minus Stirling's formula, for whole k of at least 1 (0 gives the value for 1).
Array stirling_rest(const Array& k) {
  constexpr int kTabulated = 16;
  std::vector<double> table(kTabulated);
  for (int i = 0; i < kTabulated; ++i) {
    const double x = std::max(i, 1);
    double factorial = 0;
    for (int j = 2; j <= i; ++j) factorial += std::log(double(j));
    table[size_t(i)] = factorial - (x + 0.5) * std::log(x) + x - 0.5 * std::log(2 * M_PI);
  }
  const Array position = clip(k, 0, kTabulated - 1).astype(Dtype::kInt64);
  const Array r = 1 / maximum(k, double(kTabulated)), s = r * r;
  const Array series = r * (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680))));
  return where(k < kTabulated, take(array(table, k.device()), position, 0, OutOfRange::kClip),
               series);
}

// The log of the probability of k (whole, not negative), from the deviation from the rate and
// Stirling's formula, which do not cancel for large rates (Loader, "Fast and accurate computation
// of binomial probabilities", 2000).
Array log_poisson(const Array& k, const Array& rate) {
  const Array t = (k - rate) / rate;
  const Array deviation = rate * ((t + 1) * log1p(t) - t);
  const Array rest = log(maximum(k, 1.0) * (2 * M_PI)) * 0.5 + stirling_rest(k);
  return where(k < 1, -rate, -(deviation + rest));
}

// For rates of at least 10: transformed rejection, PTRS of Hörmann, "The transformed rejection
// method for generating Poisson random variables", 1993, without its squeezes.
Array poisson_by_transformation(RandomState& state, const Array& rates) {
  const RandomParameter rate(rates);
  const int64_t count = rates.size();
  const Array result = empty({count}, Dtype::kFloat64);
  Array open;
  for (int64_t left = count; left > 0; left = open.size()) {
    const Array mean = rate.at(open), b = sqrt(mean) * 2.53 + 0.931, a = b * 0.02483 - 0.059;
    const Array height = 1.1239 + 1.1328 / (b - 3.4);
    const Array u = inside_unit(state, {left}) - 0.5, v = inside_unit(state, {left});
    const Array us = 0.5 - absolute(u);
    const Array k = floor((a * 2 / us + b) * u + mean + 0.43);
    const Array bound = log(v * height / (a / (us * us) + b));
    const Array taken = logical_and(k >= 0, bound <= log_poisson(maximum(k, 0.0), mean));
    store_round(result, open, k);
    open = still_open(open, logical_not(taken));
  }
  return result;
}

constexpr double kLargestRate = 1e15;          // counts are exact in a double
constexpr double kLargestTabulatedRate = 1e6;  // 20000 numbers

}  // namespace

Array poisson_by_rejection(RandomState& state, const RandomParameter& rate, int64_t count) {
  const Array rates = rate.value().broadcast_to({count}), low = rates < 10;
  const Array result = empty({count}, Dtype::kFloat64);
  for (const bool small : {true, false}) {
    const Array positions = flatnonzero(small ? low : logical_not(low));
    if (positions.size() == 0) continue;
    const Array part = take(rates, positions, 0, OutOfRange::kWrap);
    put(result, positions,
        small ? poisson_by_search(state, part) : poisson_by_transformation(state, part),
        OutOfRange::kWrap);
  }
  return result;
}

Array RandomState::poisson(const DrawShape& given, const Operand& lam) {
  const EntryScope call("poisson");
  const DeviceScope scope(device_of({lam}));
  const Shape shape = shape_of_draw(given, {lam});
  const RandomParameter rate(lam, shape);
  if (lam.array() != nullptr) refuse_capture(rate.value());
  rate.check({"rates of 0 to 1e15", 0, true, kLargestRate});
  if (lam.array() == nullptr && lam.scalar().to_double() <= kLargestTabulatedRate)
    return by_inversion(*this, poisson_table(lam.scalar().to_double()), shape);
  refuse_capture(rate.value());
  return poisson_by_rejection(*this, rate, element_count(shape))
      .reshape(shape)
      .astype(Dtype::kInt64);
}

Array RandomState::binomial(const Shape& shape, int64_t n, double p) {
  const EntryScope call("binomial");
  CATENA_CHECK(ValueError, n >= 0, "expected at least 0 trials, got ", n);
  CATENA_CHECK(ValueError, p >= 0 && p <= 1, "expected a probability of [0, 1], got ", p);
  const double trials = static_cast<double>(n);
  CATENA_CHECK(ValueError, trials * p * (1 - p) <= 1e10 && n < int64_t{1} << 53,
               "expected n below 2^53 and n p (1 - p) of at most 1e10, got n = ", n, ", p = ", p,
               "; at that size take a rounded normal distribution");
  if (p == 0 || p == 1) {
    uniform(shape);  // later numbers do not depend on p
    return full(shape, p == 0 ? 0 : n, Dtype::kInt64);
  }
  const double odds = p / (1 - p);
  const auto mode = std::min(n, static_cast<int64_t>((trials + 1) * p));
  const Table table = tabulate(
      mode, [&](int64_t k) { return double(n - k) / double(k + 1) * odds; },
      [&](int64_t k) { return k > 0 ? double(k) / double(n - k + 1) / odds : 0.0; });
  return by_inversion(*this, table, shape);
}

Array RandomState::geometric(const DrawShape& given, const Operand& p) {
  const EntryScope call("geometric");
  const DeviceScope scope(device_of({p}));
  const Shape shape = shape_of_draw(given, {p});
  const RandomParameter chance(p, shape);
  chance.check({"probabilities of [1e-17, 1]", 1e-17, true, 1});
  const Array u = inside_unit(*this, {element_count(shape)});
  const Array trials = ceil(log(u) / log1p(-chance.value()));
  return maximum(trials, 1.0).reshape(shape).astype(Dtype::kInt64);
}

Array RandomState::negative_binomial(const DrawShape& given, const Operand& n, const Operand& p) {
  const EntryScope call("negative_binomial");
  const DeviceScope scope(device_of({n, p}));
  const Shape shape = shape_of_draw(given, {n, p});
  const RandomParameter successes(n, shape), chance(p, shape);
  refuse_capture(chance.value());
  successes.check({"numbers of successes above 0", 0, false, 1e15});
  chance.check({"probabilities of (0, 1]", 0, false, 1});
  const int64_t count = element_count(shape);
  const Array rate =
      draw_gamma(*this, successes, count).number() * ((1 - chance.value()) / chance.value());
  const RandomParameter rates(rate);
  rates.check(
      {"n (1 - p) / p so small that the rates drawn stay below 1e15", 0, true, kLargestRate});
  return poisson_by_rejection(*this, rates, count).reshape(shape).astype(Dtype::kInt64);
}

Array RandomState::multinomial(const Shape& shape, int64_t n, const Array& p) {
  const EntryScope call("multinomial");
  const DeviceScope scope(device_of({p}));
  CATENA_CHECK(ShapeError, p.ndim() == 1 && p.size() > 0,
               "expected a 1-d array of at least one probability, got shape ", p.shape());
  CATENA_CHECK(ValueError, n >= 0, "expected at least 0 trials, got ", n);
  refuse_capture(p);
  const int64_t rows = element_count(shape), kinds = p.size();
  if (rows == 0 || n == 0) choice(kinds, Shape{0}, true, p);  // checks p in any case
  const Array counts = zeros({rows, kinds}, Dtype::kInt64);
  constexpr int64_t kAtOnce = int64_t{1} << 22;  // bounds the memory of draws
  const int64_t trials = std::min(n, kAtOnce), together = std::max<int64_t>(1, kAtOnce / (n + 1));
  for (int64_t row = 0; row < rows; row += together) {
    const int64_t here = std::min(together, rows - row);
    const Array part = counts(Slice(row, row + here));
    const Array start = arange(here).reshape({here, 1}) * kinds;
    for (int64_t done = 0; done < n; done += trials) {
      const Array drawn = choice(kinds, {here, std::min(trials, n - done)}, true, p) + start;
      part.assign(part + bincount(drawn.ravel(), {}, here * kinds).reshape({here, kinds}));
    }
  }
  Shape wide = shape;
  wide.push_back(kinds);
  return counts.reshape(wide);
}

}  // namespace catena
