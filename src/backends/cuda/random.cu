// Random arrays and dropout. Element i depends on block i alone, not on the launch.
#include "backends/cuda/float_access.cuh"
#include "backends/cuda/philox_source.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr double kTwoPi = 6.283185307179586476925286766559;

template <class C>
__device__ C unit(const philox::Block& b, int half);
template <>
__device__ inline float unit<float>(const philox::Block& b, int half) {
  return philox::unit24(b.word[2 * half]);
}
template <>
__device__ inline double unit<double>(const philox::Block& b, int half) {
  return philox::unit53(philox::bits64(b, half));
}

__device__ inline float box_muller(float u1, float u2) {
  return sqrtf(-2.0f * logf(u1)) * cosf(float(kTwoPi) * u2);
}
__device__ inline double box_muller(double u1, double u2) {
  return sqrt(-2.0 * log(u1)) * cos(kTwoPi * u2);
}

__global__ void bits_kernel(RandomArgs args) {
  auto* out = static_cast<uint64_t*>(args.output);
  for_blocks(args.source, (args.count + 1) / 2, [&](int64_t i, const philox::Block& b) {
    out[2 * i] = philox::bits64(b, 0);
    if (2 * i + 1 < args.count) out[2 * i + 1] = philox::bits64(b, 1);
  });
}

template <class T>
__global__ void uniform_kernel(RandomArgs args) {
  using C = Compute<T>;
  const C low = C(args.low), range = C(args.high) - low;
  for_blocks(args.source, args.count, [&](int64_t i, const philox::Block& b) {
    static_cast<T*>(args.output)[i] = Narrow<T>::from(low + range * unit<C>(b, 0));
  });
}

template <class T>
__global__ void normal_kernel(RandomArgs args) {
  using C = Compute<T>;
  const C mean = C(args.low), deviation = C(args.high);
  for_blocks(args.source, args.count, [&](int64_t i, const philox::Block& b) {
    const C z = box_muller(C(1) - unit<C>(b, 0), unit<C>(b, 1));
    static_cast<T*>(args.output)[i] = Narrow<T>::from(mean + deviation * z);
  });
}

__global__ void bernoulli_kernel(RandomArgs args) {
  for_blocks(args.source, args.count, [&](int64_t i, const philox::Block& b) {
    static_cast<bool*>(args.output)[i] = unit<double>(b, 0) < args.high;
  });
}

template <class T>
__global__ void integers_kernel(RandomArgs args) {
  for_blocks(args.source, args.count, [&](int64_t i, const philox::Block& b) {
    const uint64_t offset = philox::scaled(philox::bits64(b, 0), args.range);
    static_cast<T*>(args.output)[i] = T(uint64_t(args.integer_low) + offset);
  });
}

template <class T>
__global__ void dropout_kernel(DropoutArgs args) {
  using C = Compute<T>;
  const float ratio = float(args.ratio);
  const C scale = C(args.scale);
  for_blocks(args.source, args.count, [&](int64_t i, const philox::Block& b) {
    const bool keep = philox::unit24(b.word[0]) >= ratio;
    static_cast<T*>(args.y)[i] =
        Narrow<T>::from(keep ? widen(static_cast<const T*>(args.x)[i]) * scale : C(0));
  });
}

}  // namespace

void launch_random_bits(const RandomArgs& args, const Launch& launch) {
  const unsigned blocks = random_blocks((args.count + 1) / 2, kThreads, launch);
  bits_kernel<<<blocks, kThreads, 0, launch.stream>>>(args);
}

void launch_uniform(Float type, const RandomArgs& args, const Launch& launch) {
  const unsigned blocks = random_blocks(args.count, kThreads, launch);
  CATENA_FLOAT_SWITCH(type, (uniform_kernel<T><<<blocks, kThreads, 0, launch.stream>>>(args)))
}

void launch_normal(Float type, const RandomArgs& args, const Launch& launch) {
  const unsigned blocks = random_blocks(args.count, kThreads, launch);
  CATENA_FLOAT_SWITCH(type, (normal_kernel<T><<<blocks, kThreads, 0, launch.stream>>>(args)))
}

void launch_bernoulli(const RandomArgs& args, const Launch& launch) {
  bernoulli_kernel<<<random_blocks(args.count, kThreads, launch), kThreads, 0, launch.stream>>>(
      args);
}

void launch_integers(int bytes, const RandomArgs& args, const Launch& launch) {
  const unsigned blocks = random_blocks(args.count, kThreads, launch);
  switch (bytes) {
    case 1:
      integers_kernel<uint8_t><<<blocks, kThreads, 0, launch.stream>>>(args);
      break;
    case 2:
      integers_kernel<uint16_t><<<blocks, kThreads, 0, launch.stream>>>(args);
      break;
    case 4:
      integers_kernel<uint32_t><<<blocks, kThreads, 0, launch.stream>>>(args);
      break;
    default:
      integers_kernel<uint64_t><<<blocks, kThreads, 0, launch.stream>>>(args);
      break;
  }
}

void launch_dropout(Float type, const DropoutArgs& args, const Launch& launch) {
  const unsigned blocks = random_blocks(args.count, kThreads, launch);
  CATENA_FLOAT_SWITCH(type, (dropout_kernel<T><<<blocks, kThreads, 0, launch.stream>>>(args)))
}

}  // namespace catena::gpu
