// Threads of the CPU kernels: OpenMP where the build has it, else plain loops.
#pragma once

#include <algorithm>
#include <cstdint>

#include "catena/core/config.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace catena::host {

// Number of threads worth using for `work` units of about a nanosecond each; 1 inside a parallel
// region. Below the threshold nothing but one comparison is paid.
inline constexpr int64_t kParallelWork = 65536;
inline int threads_for(int64_t work) {
#ifdef _OPENMP
  if (work < kParallelWork || omp_in_parallel()) return 1;
  return static_cast<int>(std::min<int64_t>(cpu_threads(), work / (kParallelWork / 4)));
#else
  (void)work;
  return 1;
#endif
}

// Calls f(i) for i of [0, n), spread over `threads`. f must not throw.
template <class F>
void parallel_for(int64_t n, int threads, const F& f) {
#ifdef _OPENMP
  if (threads > 1 && n > 1) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t i = 0; i < n; ++i) f(i);
    return;
  }
#endif
  (void)threads;
  for (int64_t i = 0; i < n; ++i) f(i);
}

// Calls f(begin, end) for at most `threads` ranges that together are [0, n); their inner bounds are
// multiples of `unit`.
template <class F>
void parallel_ranges(int64_t n, int64_t unit, int threads, const F& f) {
  if (threads <= 1) {
    f(int64_t{0}, n);
    return;
  }
  const int64_t units = (n + unit - 1) / unit;
  const int64_t parts = std::min<int64_t>(threads, units);
  parallel_for(parts, threads, [&](int64_t part) {
    const int64_t begin = units * part / parts * unit;
    const int64_t end = std::min(n, units * (part + 1) / parts * unit);
    if (begin < end) f(begin, end);
  });
}

}  // namespace catena::host
