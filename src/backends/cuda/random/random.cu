// Random arrays and dropout. The block from which an element is drawn does not depend on the
// launch.
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/common/philox_source.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;
constexpr double kTwoPi = 6.283185307179586476925286766559;

// The uniform numbers of a block: two of 53 bits or four of 24.
template <class C>
struct Uniforms;
template <>
struct Uniforms<double> {
  static constexpr int kCount = 2;
  __device__ static double get(const philox::Block& b, int k) {
    return philox::unit53(philox::bits64(b, k));
  }
};
template <>
struct Uniforms<float> {
  static constexpr int kCount = 4;
  __device__ static float get(const philox::Block& b, int k) { return philox::unit24(b.word[k]); }
};

struct Pair32 {
  float x, y;
};
struct Pair64 {
  double x, y;
};
__device__ inline Pair32 box_muller(float u1, float u2) {
  const float r = sqrtf(-2.0f * logf(u1));
  float sine, cosine;
  sincospif(2.0f * u2, &sine, &cosine);
  return {r * cosine, r * sine};
}
__device__ inline Pair64 box_muller(double u1, double u2) {
  const double r = sqrt(-2.0 * log(u1));
  double sine, cosine;
  sincos(kTwoPi * u2, &sine, &cosine);  // like the CPU, which rounds the angle
  return {r * cosine, r * sine};
}

// The elements of one block, stored at once if the output's alignment allows it.
template <class T, int count>
struct alignas(sizeof(T) * count) Group {
  T value[count];
};

template <class T, int count>
__device__ void store(void* output, int64_t size, int64_t block, const Group<T, count>& group) {
  T* out = static_cast<T*>(output) + block * count;
  const int64_t left = size - block * count;
  if (left >= count && reinterpret_cast<uintptr_t>(output) % sizeof(group) == 0) {
    *reinterpret_cast<Group<T, count>*>(out) = group;
    return;
  }
#pragma unroll
  for (int k = 0; k < count; ++k) {
    if (k < left) out[k] = group.value[k];
  }
}

// Stores `count` elements for each block; make(block) returns a Group.
template <class T, int count, class F>
__device__ void for_groups(const RandomArgs& args, F make) {
  for_blocks(args.source, (args.count + count - 1) / count, [&](int64_t i, const philox::Block& b) {
    const Group<T, count> group = make(b);
    store(args.output, args.count, i, group);
  });
}

__global__ void bits_kernel(RandomArgs args) {
  wait_for_previous_kernel();
  for_groups<uint64_t, 2>(args, [&](const philox::Block& b) {
    return Group<uint64_t, 2>{{philox::bits64(b, 0), philox::bits64(b, 1)}};
  });
}

template <class T>
__global__ void uniform_kernel(RandomArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  constexpr int count = Uniforms<C>::kCount;
  const C low = C(args.low), range = C(args.high) - low;
  for_groups<T, count>(args, [&](const philox::Block& b) {
    Group<T, count> group;
#pragma unroll
    for (int k = 0; k < count; ++k)
      group.value[k] = Narrow<T>::from(low + range * Uniforms<C>::get(b, k));
    return group;
  });
}

template <class T>
__global__ void normal_kernel(RandomArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  constexpr int count = Uniforms<C>::kCount;
  const C mean = C(args.low), deviation = C(args.high);
  for_groups<T, count>(args, [&](const philox::Block& b) {
    Group<T, count> group;
#pragma unroll
    for (int k = 0; k < count; k += 2) {
      const auto z = box_muller(C(1) - Uniforms<C>::get(b, k), Uniforms<C>::get(b, k + 1));
      group.value[k] = Narrow<T>::from(mean + deviation * z.x);
      group.value[k + 1] = Narrow<T>::from(mean + deviation * z.y);
    }
    return group;
  });
}

__global__ void bernoulli_kernel(RandomArgs args) {
  wait_for_previous_kernel();
  for_groups<bool, 2>(args, [&](const philox::Block& b) {
    return Group<bool, 2>{
        {Uniforms<double>::get(b, 0) < args.high, Uniforms<double>::get(b, 1) < args.high}};
  });
}

template <class T>
__global__ void integers_kernel(RandomArgs args) {
  wait_for_previous_kernel();
  for_groups<T, 2>(args, [&](const philox::Block& b) {
    Group<T, 2> group;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const uint64_t offset = philox::scaled(philox::bits64(b, k), args.range);
      group.value[k] = T(uint64_t(args.integer_low) + offset);
    }
    return group;
  });
}

template <class T>
__global__ void dropout_kernel(DropoutArgs args) {
  wait_for_previous_kernel();
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
  const unsigned blocks = loop_blocks((args.count + 1) / 2, kThreads, launch);
  launch_kernel<bits_kernel>(blocks, kThreads, launch, args);
}

void launch_uniform(Float type, const RandomArgs& args, const Launch& launch) {
  const unsigned blocks = loop_blocks((args.count + 1) / 2, kThreads, launch);
  CATENA_FLOAT_SWITCH(type, (launch_kernel<uniform_kernel<T>>(blocks, kThreads, launch, args)))
}

void launch_normal(Float type, const RandomArgs& args, const Launch& launch) {
  const unsigned blocks = loop_blocks((args.count + 1) / 2, kThreads, launch);
  CATENA_FLOAT_SWITCH(type, (launch_kernel<normal_kernel<T>>(blocks, kThreads, launch, args)))
}

void launch_bernoulli(const RandomArgs& args, const Launch& launch) {
  const unsigned blocks = loop_blocks((args.count + 1) / 2, kThreads, launch);
  launch_kernel<bernoulli_kernel>(blocks, kThreads, launch, args);
}

void launch_integers(int bytes, const RandomArgs& args, const Launch& launch) {
  const unsigned blocks = loop_blocks((args.count + 1) / 2, kThreads, launch);
  switch (bytes) {
    case 1:
      launch_kernel<integers_kernel<uint8_t>>(blocks, kThreads, launch, args);
      break;
    case 2:
      launch_kernel<integers_kernel<uint16_t>>(blocks, kThreads, launch, args);
      break;
    case 4:
      launch_kernel<integers_kernel<uint32_t>>(blocks, kThreads, launch, args);
      break;
    default:
      launch_kernel<integers_kernel<uint64_t>>(blocks, kThreads, launch, args);
      break;
  }
}

void launch_dropout(Float type, const DropoutArgs& args, const Launch& launch) {
  const unsigned blocks = loop_blocks(args.count, kThreads, launch);
  CATENA_FLOAT_SWITCH(type, (launch_kernel<dropout_kernel<T>>(blocks, kThreads, launch, args)))
}

}  // namespace catena::gpu
