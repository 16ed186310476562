// Mean and squared deviations of numbers, and how those of parts are joined.
#pragma once

#include "backends/cuda/normalization/walk.cuh"

namespace catena::gpu {
namespace {

// The sum of two numbers, rounded, and what the rounding lost (D. Knuth's sum of two numbers).
template <class C>
struct Sum {
  C rounded, rest;
  __device__ Sum(C a, C b) : rounded(a + b) {
    const C added = rounded - a;
    rest = (a - (rounded - added)) + (b - added);
  }
};

// Of n numbers: mean (v[0], with the rest in v[2]) and sum of squared deviations (v[1]), merged by
// the formula of Chan et al. The mean of two numbers keeps the digits of deviations far below it.
template <class C>
struct Moments {
  static constexpr int kNumbers = 3;
  C n, v[kNumbers];
  __device__ void merge(const Moments& other) {
    if (other.n == C(0)) return;
    if (n == C(0)) {
      *this = other;
      return;
    }
    const C total = n + other.n, share = other.n / total;
    const C delta = (other.v[0] - v[0]) + (other.v[2] - v[2]);
    const Sum<C> mean(v[0], fused(delta, share, v[2]));
    v[0] = mean.rounded;
    v[1] += other.v[1] + delta * (delta * (n * share));
    v[2] = mean.rest;
    n = total;
  }
  __device__ void store(const NormalizationArgs& args, int64_t channel) const {
    if (args.moments != nullptr) return store_moments(args, channel);
    const C m = C(args.outer * args.inner);
    static_cast<C*>(args.mean)[channel] = v[0];
    static_cast<C*>(args.mean_rest)[channel] = v[2];
    static_cast<C*>(args.inverse_deviation)[channel] = C(1) / root(v[1] / m + C(args.eps));
    if (args.running_mean == nullptr) return;
    const double decay = args.updates ? 1 - 1 / double(*args.updates) : args.decay;
    const auto move = [&](void* average, double value) {
      C& target = static_cast<C*>(average)[channel];
      target = C(decay * double(target) + (1 - decay) * value);
    };
    move(args.running_mean, double(v[0]) + double(v[2]));
    move(args.running_variance, double(v[1] / (m - C(1))));
  }
  // In the order of BatchMomentsCall.
  __device__ void store_moments(const NormalizationArgs& args, int64_t channel) const {
    C* to = static_cast<C*>(args.moments);
    to[channel] = v[0];
    to[args.channels + channel] = v[2];
    to[2 * args.channels + channel] = v[1];
    if (channel != 0) return;
    const int64_t count = args.outer * args.inner;
    to[3 * args.channels] = C(count / kMomentsUnit);
    to[3 * args.channels + 1] = C(count % kMomentsUnit);
  }
};

// Sums over a thread's numbers, relative to the first number, `shift`. That is one of the numbers,
// so their squares cannot cancel by more than the count of the numbers.
template <class C>
struct ShiftedSums {
  C shift = C(0), d = C(0), dd = C(0);
  __device__ void add(C x) {
    const C t = x - shift;
    d += t;
    dd = fused(t, t, dd);
  }
  __device__ Moments<C> moments(int n) const {  // of n numbers
    if (n == 0) return {};
    const C step = d / C(n), squares = dd - d * step;
    const Sum<C> mean(shift, step);
    return {C(n), {mean.rounded, squares < C(0) ? C(0) : squares, mean.rest}};
  }
};

}  // namespace
}  // namespace catena::gpu
