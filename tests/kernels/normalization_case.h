// Batch normalizations of many kinds and plain loops in double to compare their providers with.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/kernels/normalization.h"

namespace catena::testing {

struct NormalizationCase {
  Dtype dtype = Dtype::kFloat32;
  ChannelLayout layout{4, 3, 5};
  bool gamma = true, beta = true, residual = false, relu = false;
  bool running = false, count_updates = false;  // count_updates only with running
  bool gx = true, g_residual = false, g_gamma = true, g_beta = true, accumulate = false;
  double offset = 0;      // of the batch's mean
  double spread = 2;      // of the batch around it
  bool aligned = true;    // batch arrays begin where packs of 16 bytes may
  bool in_place = false;  // y is x

  Dtype channel_dtype() const {
    return dtype == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
  }
  int64_t size() const { return layout.count() * layout.channels; }
  // The channel of element i.
  size_t channel(size_t i) const { return i / size_t(layout.inner) % size_t(layout.channels); }
  std::string text() const {
    std::ostringstream s;
    s << name(dtype) << " (" << layout.outer << ' ' << layout.channels << ' ' << layout.inner
      << ')';
    const std::pair<bool, const char*> flags[] = {{gamma, "gamma"},
                                                  {beta, "beta"},
                                                  {residual, "residual"},
                                                  {relu, "relu"},
                                                  {running, "running"},
                                                  {count_updates, "count_updates"},
                                                  {gx, "gx"},
                                                  {g_residual, "g_residual"},
                                                  {g_gamma, "g_gamma"},
                                                  {g_beta, "g_beta"},
                                                  {accumulate, "accumulate"},
                                                  {!aligned, "not aligned"},
                                                  {in_place, "in place"}};
    for (const auto& [on, what] : flags)
      if (on) s << ' ' << what;
    if (offset != 0) s << " offset " << offset << " spread " << spread;
    return s.str();
  }
};

inline NormalizationCase random_normalization(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  NormalizationCase c;
  const bool last = pick(0, 1) != 0;
  // Whole packs of 16 bytes now and then, and enough for several blocks.
  c.layout.channels = pick(0, 1) ? 8 * pick(1, 9) : pick(1, 70);
  c.layout.inner = last ? 1 : pick(0, 1) ? 8 * pick(1, 12) : pick(2, 70);
  c.layout.outer = pick(2, last ? (pick(0, 5) ? 60 : 1500) : 40);
  const auto coin = [&] { return pick(0, 1) != 0; };
  c.gamma = coin(), c.beta = coin(), c.residual = coin(), c.relu = coin();
  c.running = coin(), c.count_updates = c.running && coin();
  c.gx = pick(0, 4) != 0, c.g_residual = c.gx && coin();
  c.g_gamma = coin(), c.g_beta = coin(), c.accumulate = coin();
  c.aligned = pick(0, 3) != 0, c.in_place = pick(0, 3) == 0;
  return c;
}

// An array and its values as they are after rounding to its dtype.
struct Numbers {
  Array array;
  std::vector<double> values;
};

inline std::vector<double> numbers_of(const Array& a) {
  return a.get().astype(Dtype::kFloat64).to_vector<double>();
}

// The same numbers, dense, at an address where packs of 16 bytes begin, or at another.
inline Array placed(const Array& batch, bool aligned) {
  const int64_t skipped = aligned ? 0 : 1;
  const Array memory = zeros({batch.size() + skipped}, {batch.dtype(), batch.device()});
  const Array place = memory(Slice(skipped, memory.size()));
  place.assign(batch.reshape({batch.size()}));
  return place.reshape(batch.shape());
}

inline Numbers random_numbers(std::mt19937& random, const Shape& shape, Dtype dtype, Device device,
                              double low, double high) {
  std::vector<double> values(size_t(element_count(shape)));
  std::uniform_real_distribution<double> draw(low, high);
  for (double& v : values) v = draw(random);
  const Array plain = array(values, shape).astype(dtype);
  return {plain.to(device), numbers_of(plain)};
}

// Everything that the three slots read or write, with random values: results too.
struct NormalizationData {
  NormalizationData(const NormalizationCase& c, Device device, uint32_t seed) {
    std::mt19937 random(seed);
    const Shape batch{c.layout.outer, c.layout.channels, c.layout.inner}, one{c.layout.channels};
    const auto of_batch = [&](double low, double high) {
      Numbers made = random_numbers(random, batch, c.dtype, device, low, high);
      if (!c.aligned) made.array = placed(made.array, false);
      return made;
    };
    const auto of_channel = [&](double low, double high) {
      return random_numbers(random, one, c.channel_dtype(), device, low, high);
    };
    x = of_batch(c.offset - c.spread, c.offset + c.spread);
    residual = of_batch(-1, 1), gy = of_batch(-1, 1), y = of_batch(-1, 1);
    gx = of_batch(-1, 1), g_residual = of_batch(-1, 1);
    gamma = of_channel(0.5, 2), beta = of_channel(-1, 1);
    mean = of_channel(-1, 1), mean_rest = of_channel(-1e-8, 1e-8), variance = of_channel(0.5, 2),
    inverse = of_channel(0.5, 2);
    running_mean = of_channel(-1, 1), running_variance = of_channel(0.5, 2);
    g_gamma = of_channel(-1, 1), g_beta = of_channel(-1, 1);
    updates = array(std::vector<int64_t>{4}, Shape{}).to(device);
  }
  Numbers x, residual, gy, y, gx, g_residual;
  Numbers gamma, beta, mean, mean_rest, variance, inverse, running_mean, running_variance, g_gamma,
      g_beta;
  Array updates;
};

constexpr double kCaseEps = 1e-3, kCaseDecay = 0.75;

// Results by their definitions.
struct Statistics {
  std::vector<double> mean, variance;
};
inline Statistics expected_statistics(const NormalizationCase& c, const NormalizationData& d) {
  const size_t channels = size_t(c.layout.channels);
  const double m = double(c.layout.count());
  Statistics s{std::vector<double>(channels), std::vector<double>(channels)};
  const std::vector<double>& x = d.x.values;
  for (size_t i = 0; i < x.size(); ++i) s.mean[c.channel(i)] += x[i] / m;
  for (size_t i = 0; i < x.size(); ++i)
    s.variance[c.channel(i)] += std::pow(x[i] - s.mean[c.channel(i)], 2) / m;
  return s;
}

inline std::vector<double> expected_y(const NormalizationCase& c, const NormalizationData& d,
                                      const Statistics& s) {
  std::vector<double> y(d.x.values.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t k = c.channel(i);
    y[i] = (d.x.values[i] - s.mean[k]) / std::sqrt(s.variance[k] + kCaseEps);
    y[i] = y[i] * (c.gamma ? d.gamma.values[k] : 1) + (c.beta ? d.beta.values[k] : 0);
    if (c.residual) y[i] += d.residual.values[i];
    if (c.relu && y[i] < 0) y[i] = 0;
  }
  return y;
}

struct Gradients {
  std::vector<double> gx, g_residual, g_gamma, g_beta;
};
inline Gradients expected_gradients(const NormalizationCase& c, const NormalizationData& d,
                                    bool fixed) {
  const size_t size = d.x.values.size(), channels = size_t(c.layout.channels);
  const double m = double(c.layout.count());
  Gradients e{std::vector<double>(size), std::vector<double>(size), std::vector<double>(channels),
              std::vector<double>(channels)};
  const auto xhat = [&](size_t i) {
    const size_t k = c.channel(i);
    const double rest = fixed ? 0 : d.mean_rest.values[k];
    return (d.x.values[i] - d.mean.values[k] - rest) * d.inverse.values[k];
  };
  for (size_t i = 0; i < size; ++i) {
    e.g_residual[i] = c.relu && d.y.values[i] <= 0 ? 0 : d.gy.values[i];
    e.g_beta[c.channel(i)] += e.g_residual[i];
    e.g_gamma[c.channel(i)] += e.g_residual[i] * xhat(i);
  }
  for (size_t i = 0; i < size; ++i) {
    const size_t k = c.channel(i);
    const double mean = fixed ? 0 : (e.g_beta[k] + xhat(i) * e.g_gamma[k]) / m;
    e.gx[i] = (c.gamma ? d.gamma.values[k] : 1) * d.inverse.values[k] * (e.g_residual[i] - mean);
  }
  for (size_t k = 0; c.accumulate && k < channels; ++k) {
    e.g_gamma[k] += d.g_gamma.values[k];
    e.g_beta[k] += d.g_beta.values[k];
  }
  return e;
}

// What the result of a call differs in, or "".
inline std::string mismatch(const char* what, const Array& result,
                            const std::vector<double>& expected, double tolerance) {
  const std::vector<double> got = numbers_of(result);
  for (size_t i = 0; i < got.size(); ++i) {
    const double limit = tolerance * (1 + std::abs(expected[i]));
    if (std::abs(got[i] - expected[i]) <= limit) continue;
    std::ostringstream s;
    s << what << '[' << i << "] is " << got[i] << ", expected " << expected[i] << " within "
      << limit;
    return s.str();
  }
  return "";
}

// Roundings of a batch array's elements, and of the numbers of channels.
inline double batch_tolerance(const NormalizationCase& c) {
  switch (c.dtype) {
    case Dtype::kFloat64: return 1e-11;
    case Dtype::kFloat32: return 2e-5;
    case Dtype::kFloat16: return 0x1p-10 + 2e-5;
    default: return 0x1p-7 + 2e-5;
  }
}
inline double channel_tolerance(const NormalizationCase& c) {
  return c.dtype == Dtype::kFloat64 ? 1e-11 : 2e-5;
}

}  // namespace catena::testing
