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

// The elements of a group, read at once if the alignment allows it; zeros behind the end.
template <class T, int count>
__device__ Group<T, count> load(const void* input, int64_t size, int64_t block) {
  using Whole = Group<T, count>;
  const T* in = static_cast<const T*>(input) + block * count;
  const int64_t left = size - block * count;
  if (left >= count && reinterpret_cast<uintptr_t>(input) % sizeof(Whole) == 0)
    return *reinterpret_cast<const Whole*>(in);
  Whole group{};
#pragma unroll
  for (int k = 0; k < count; ++k) {
    if (k < left) group.value[k] = in[k];
  }
  return group;
}

// Elements that a thread of dropout reads at once: those of one block or of two.
template <class T>
constexpr int kDropoutGroup = sizeof(T) == 2 ? 8 : 4;

template <class T>
__global__ void dropout_kernel(DropoutArgs args) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  constexpr int kElements = kDropoutGroup<T>, kBlocks = kElements / 4;
  const float ratio = float(args.ratio);
  const C scale = C(args.scale);
  const Blocks blocks(args.source);
  const int64_t groups = (args.count + kElements - 1) / kElements;
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < groups; i += stride) {
    // Read first: the numbers are drawn while the elements are on their way.
    Group<T, kElements> group = load<T, kElements>(args.x, args.count, i);
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      const philox::Block block = blocks[i * kBlocks + b];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        T& v = group.value[4 * b + k];
        v = Narrow<T>::from(philox::unit24(block.word[k]) >= ratio ? widen(v) * scale : C(0));
      }
    }
    store(args.y, args.count, i, group);
  }
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
    case 1: launch_kernel<integers_kernel<uint8_t>>(blocks, kThreads, launch, args); break;
    case 2: launch_kernel<integers_kernel<uint16_t>>(blocks, kThreads, launch, args); break;
    case 4: launch_kernel<integers_kernel<uint32_t>>(blocks, kThreads, launch, args); break;
    default: launch_kernel<integers_kernel<uint64_t>>(blocks, kThreads, launch, args); break;
  }
}

void launch_dropout(Float type, const DropoutArgs& args, const Launch& launch) {
  CATENA_FLOAT_SWITCH(type, {
    const int64_t groups = (args.count + kDropoutGroup<T> - 1) / kDropoutGroup<T>;
    const unsigned blocks = loop_blocks(groups, kThreads, launch);
    launch_kernel<dropout_kernel<T>>(blocks, kThreads, launch, args);
  })
}

}  // namespace catena::gpu
