// Copies to shared memory that run beside the thread that asks for them.
#pragma once

#include <stdint.h>

namespace catena::gpu {
namespace {

// Asynchronous where the hardware can; the thread sees the bytes after wait_for_copies().
template <class P>
__device__ void copy_ahead(P* to, const P* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (sizeof(P) >= 4) {
    const unsigned place = unsigned(__cvta_generic_to_shared(to));
    if constexpr (sizeof(P) == 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(from) : "memory");
    else
      asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(place), "l"(from),
                   "n"(sizeof(P))
                   : "memory");
    return;
  }
#endif
  *to = *from;
}

// The same for 16 bytes, or zeros where there are none to read.
template <class T>
__device__ void copy_ahead_or_zero(T* to, const T* from, bool is_there) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const unsigned target = unsigned(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(from),
               "r"(is_there ? 16 : 0)
               : "memory");
#else
  *reinterpret_cast<uint4*>(to) =
      is_there ? *reinterpret_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
#endif
}

// Ends a group of copies: what the thread has asked for since the last one.
__device__ inline void end_group_of_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Until at most kGroups of the thread's groups are still under way.
template <int kGroups>
__device__ void wait_for_all_but() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
#endif
}

__device__ inline void wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace
}  // namespace catena::gpu
