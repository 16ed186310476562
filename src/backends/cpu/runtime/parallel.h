// Spreads loops of the CPU kernels over threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/runtime/thread_team.h"
#include "catena/core/config.h"

namespace catena::host {

// The number of threads that pays for `work` units of about a nanosecond each; 1 inside a parallel
// region. Small work costs one comparison.
inline constexpr int64_t kParallelWork = 65536;
inline int threads_for(int64_t work) {
  if (work < kParallelWork || in_parallel()) return 1;
  return static_cast<int>(std::min<int64_t>(cpu_threads(), work / (kParallelWork / 4)));
}

// Calls f(i) for i of [0, n) on `threads` threads. f must not throw.
template <class F>
void parallel_for(int64_t n, int threads, const F& f) {
  const int pieces = int(std::min<int64_t>({n, threads, kMaxPieces}));
  if (pieces <= 1) {
    for (int64_t i = 0; i < n; ++i) f(i);
    return;
  }
  struct Job {
    const F& f;
    int64_t n;
    int pieces;
  } job{f, n, pieces};
  const auto piece = [](void* context, int at) {
    const Job& own = *static_cast<const Job*>(context);
    const int64_t end = own.n * (at + 1) / own.pieces;
    for (int64_t i = own.n * at / own.pieces; i < end; ++i) own.f(i);
  };
  run_pieces(pieces, piece, &job);
}

// Calls f(begin, end) for at most `threads` ranges that together are [0, n). Their inner bounds are
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
