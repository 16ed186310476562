// The statistics of a batch from those of its parts.
#include "backends/cuda/normalization/moments.cuh"

namespace catena::gpu {
namespace {

constexpr int kMergeThreads = 128;

// One thread a channel; there are few parts. In double, which holds a mean and its rest.
template <class C>
__global__ void __launch_bounds__(kMergeThreads) merge_moments(MergeMomentsArgs args) {
  wait_for_previous_kernel();
  const int64_t channel = int64_t(blockIdx.x) * kMergeThreads + threadIdx.x;
  const int64_t channels = args.channels;
  if (channel >= channels) return;
  Moments<double> all{};
  for (int64_t part = 0; part < args.parts; ++part) {
    const C* of = static_cast<const C*>(args.moments) + part * (3 * channels + 2);
    const double count = double(of[3 * channels]) * kMomentsUnit + double(of[3 * channels + 1]);
    all.merge({count,
               {double(of[channel]), double(of[2 * channels + channel]),
                double(of[channels + channel])}});
  }
  if (all.n < 2) all.v[0] = all.v[1] = nan("");
  const double whole = all.v[0] + all.v[2];
  const C mean = C(whole);
  static_cast<C*>(args.mean)[channel] = mean;
  static_cast<C*>(args.mean_rest)[channel] = C((all.v[0] - double(mean)) + all.v[2]);
  static_cast<C*>(args.inverse_deviation)[channel] = C(1 / sqrt(all.v[1] / all.n + args.eps));
  if (channel == 0) *static_cast<C*>(args.count) = C(all.n);
  if (args.running_mean == nullptr) return;
  const double decay = args.updates ? 1 - 1 / double(*args.updates) : args.decay;
  const auto move = [&](void* average, double value) {
    C& target = static_cast<C*>(average)[channel];
    target = C(decay * double(target) + (1 - decay) * value);
  };
  move(args.running_mean, whole);
  move(args.running_variance, all.v[1] / (all.n - 1));
}

}  // namespace

void launch_merge_moments(Float type, const MergeMomentsArgs& args, const Launch& launch) {
  const unsigned blocks = unsigned((args.channels + kMergeThreads - 1) / kMergeThreads);
  CATENA_FLOAT_SWITCH(
      type, launch_kernel<merge_moments<Compute<T>>>(blocks, kMergeThreads, launch, args);)
}

}  // namespace catena::gpu
