// The host's stand-in for src/device/prelude.cuh: runs kernel texts with one fiber a CUDA thread,
// blocks one after the other. It is found first on the include path of these tests. Included inside
// a namespace of its own by files that define what a text expects; everything here has internal
// linkage or lives in that namespace.
#pragma once

#define CATENA_FN inline
#define CATENA_KERNEL static void
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static

struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct longlong2 {
  long long x, y;
};
struct Dim3 {
  unsigned x = 0, y = 0, z = 0;
};

static Dim3 threadIdx, blockIdx, gridDim;
static fibers::Meeting* meeting_of_block = nullptr;
static unsigned exchange_words[1024];

static void __syncthreads() {
  const Dim3 self = threadIdx;
  meeting_of_block->wait();
  threadIdx = self;
}
static unsigned __shfl_down_sync(unsigned, unsigned value, int distance) {
  exchange_words[threadIdx.x] = value;
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  const unsigned result =
      lane + unsigned(distance) < 32 ? exchange_words[threadIdx.x + unsigned(distance)] : value;
  __syncthreads();
  return result;
}

// Runs `kernel` for every thread of every block. Those of a kernel that does not let them `meet`
// run one after the other.
template <class Kernel>
static void run_grid(Dim3 grid, unsigned threads, bool meet, const Kernel& kernel) {
  gridDim = grid;
  const auto run_thread = [&](unsigned t) {
    threadIdx = {t, 0, 0};
    kernel();
  };
  fibers::Meeting meeting(threads);
  meeting_of_block = &meeting;
  for (unsigned y = 0; y < grid.y; ++y)
    for (unsigned x = 0; x < grid.x; ++x) {
      blockIdx = {x, y, 0};
      if (meet) {
        fibers::run(threads, run_thread);
      } else {
        for (unsigned t = 0; t < threads; ++t) run_thread(t);
      }
    }
}

// What prelude.cuh gives on the GPU, for the plain types.
namespace catena {
namespace m {
template <class T>
CATENA_FN T divide(T a, T b) {
  return a / b;
}
}  // namespace m
namespace jit {
CATENA_FN void wait_for_previous_kernel() {}  // one kernel runs at a time
template <class T>
struct Compute {
  typedef T type;
};
template <class A, class B>
struct IsSame {
  static constexpr bool value = std::is_same_v<A, B>;
};
template <class T>
struct IsNarrow {
  static constexpr bool value = false;
};
template <class T>
CATENA_FN T widen(T x) {
  return x;
}
template <class To, class From>
CATENA_FN To convert(From x) {
  return To(x);
}
template <class T>
CATENA_FN T from_bits(unsigned long long bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
}  // namespace jit
}  // namespace catena
