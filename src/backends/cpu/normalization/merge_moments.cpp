// The statistics of a batch from those of its parts.
#include <cmath>
#include <limits>

#include "backends/common/family.h"
#include "backends/cpu/normalization/moments.h"
#include "catena/array/array.h"
#include "catena/kernels/normalization.h"

namespace catena::host {
namespace {

// Of one channel over all parts.
template <class C>
Moments merged(const C* moments, int64_t parts, int64_t channels, int64_t channel) {
  Moments all;
  for (int64_t part = 0; part < parts; ++part) {
    const C* of = moments + part * moments_size(channels);
    const double count =
        double(of[3 * channels]) * double(kMomentsCountUnit) + double(of[3 * channels + 1]);
    if (count > 0)
      all.merge({count, double(of[channel]), double(of[channels + channel]),
                 double(of[2 * channels + channel])});
  }
  if (all.n < 2) all.mean = all.squares = std::numeric_limits<double>::quiet_NaN();
  return all;
}

template <class C>
void merge(const MergeMomentsCall& call) {
  const int64_t parts = call.moments->shape()[0], channels = call.mean->size();
  const C* moments = call.moments->data<C>();
  const double decay = call.updates ? 1 - 1 / double(*call.updates->data<int64_t>()) : call.decay;
  const auto move = [decay](const Array* average, int64_t c, double value) {
    if (average == nullptr) return;
    C& target = average->data<C>()[c];
    target = C(decay * double(target) + (1 - decay) * value);
  };
  for (int64_t c = 0; c < channels; ++c) {
    const Moments m = merged(moments, parts, channels, c);
    const C mean = C(m.mean + m.rest);
    call.mean->data<C>()[c] = mean;
    call.mean_rest->data<C>()[c] = C((m.mean - double(mean)) + m.rest);
    call.inverse_deviation->data<C>()[c] = C(1 / std::sqrt(m.squares / m.n + call.eps));
    move(call.running_mean, c, m.mean + m.rest);
    move(call.running_variance, c, m.squares / (m.n - 1));
    if (c == 0) *call.count->data<C>() = C(m.n);
  }
}

void merge_moments(const MergeMomentsCall& call) {
  if (call.mean->dtype() == Dtype::kFloat64)
    merge<double>(call);
  else
    merge<float>(call);
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, merge_moments) {
  kernels::merge_moments.provide<&host::merge_moments>(DeviceType::kCpu, "cpu");
}
