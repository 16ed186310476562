// Records of the slots with which ranks normalize together: the statistics of a part of a batch,
// and of all parts.
#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/kernels/normalization.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

constexpr int64_t kOuter = 5, kChannels = 3, kInner = 7, kNumbers = kOuter * kInner;
constexpr double kEps = 1e-3;

Plain part(uint64_t seed) { return plain_data({kOuter, kChannels, kInner}, seed); }

// Of a channel of a part: the mean of f.
template <class F>
double mean_over(const Plain& x, int64_t channel, F f) {
  double sum = 0;
  for (int64_t n = 0; n < kOuter; ++n)
    for (int64_t i = 0; i < kInner; ++i) sum += f(x((n * kChannels + channel) * kInner + i));
  return sum / kNumbers;
}
double mean_of(const Plain& x, int64_t channel) {
  return mean_over(x, channel, [](double v) { return v; });
}
double squares_of(const Plain& x, int64_t channel, double mean) {
  return kNumbers * mean_over(x, channel, [mean](double v) { return (v - mean) * (v - mean); });
}

Array moments_of_part(Device device, uint64_t seed) {
  const Array x = data(device, {kOuter, kChannels, kInner}, seed);
  const Array moments = Array::uninitialized({moments_size(kChannels)}, Dtype::kFloat32, device);
  kernels::batch_moments(device, {{kOuter, kChannels, kInner}, &x, &moments});
  return moments;
}

// The mean with its rest, the squared deviations and the count.
Results moments(Device device) {
  const Array m = moments_of_part(device, 1);
  return {m(Slice(0, kChannels)) + m(Slice(kChannels, 2 * kChannels)),
          m(Slice(2 * kChannels, 3 * kChannels)), m(Slice(3 * kChannels, none))};
}
Plains moments_reference() {
  const Plain x = part(1);
  return {plain({kChannels}, [&](int64_t c) { return mean_of(x, c); }),
          plain({kChannels}, [&](int64_t c) { return squares_of(x, c, mean_of(x, c)); }),
          plain({2}, [](int64_t i) { return i == 0 ? 0.0 : double(kNumbers); })};
}

// Two parts and one without numbers.
Results merged(Device device) {
  const Array all = stack({moments_of_part(device, 1),
                           zeros({moments_size(kChannels)}, {Dtype::kFloat32, device}),
                           moments_of_part(device, 2)});
  const auto channel = [&](double value) {
    return full({kChannels}, value, {Dtype::kFloat32, device});
  };
  const Array mean = channel(0), rest = channel(0), inverse = channel(0),
              count = zeros({1}, {Dtype::kFloat32, device}), running_mean = channel(2),
              running_variance = channel(3);
  kernels::merge_moments(
      device, {&all, kEps, &mean, &rest, &inverse, &count, &running_mean, &running_variance, 0.75});
  return {mean + rest, inverse, count, running_mean, running_variance};
}
Plains merged_reference() {
  const Plain a = part(1), b = part(2);
  const auto mean = [&](int64_t c) { return (mean_of(a, c) + mean_of(b, c)) / 2; };
  const auto squares = [&](int64_t c) {
    return squares_of(a, c, mean(c)) + squares_of(b, c, mean(c));
  };
  constexpr double kAll = 2 * kNumbers;
  return {plain({kChannels}, mean),
          plain({kChannels}, [&](int64_t c) { return 1 / std::sqrt(squares(c) / kAll + kEps); }),
          plain({1}, [](int64_t) { return kAll; }),
          plain({kChannels}, [&](int64_t c) { return 0.75 * 2 + 0.25 * mean(c); }),
          plain({kChannels}, [&](int64_t c) { return 0.75 * 3 + 0.25 * squares(c) / (kAll - 1); })};
}

}  // namespace

CATENA_SLOT_RECORDS(normalization) {
  return {{"batch_moments", moments, moments_reference},
          {"merge_moments", merged, merged_reference}};
}

}  // namespace catena
