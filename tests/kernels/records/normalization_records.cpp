// Records of the slots with which ranks normalize together: the statistics of a part of a batch,
// and of all parts.
#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/kernels/normalization.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

constexpr int64_t kOuter = 5, kChannels = 3, kInner = 7;
constexpr double kEps = 1e-3;

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
}  // namespace

CATENA_SLOT_RECORDS(normalization) {
  return {{"batch_moments", moments}, {"merge_moments", merged}};
}

}  // namespace catena
