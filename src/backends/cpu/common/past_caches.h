// Non-temporal stores for results that the caches would not hold, which saves reading the old lines
// from memory; and the sizes from which memory is the limit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace catena::host {

// From this size on an operand does not stay in a core's caches, and loops and tiles for memory are
// used.
inline constexpr int64_t kPastCoreCaches = int64_t{4} << 20;
// From this size on no cache holds a result.
inline constexpr int64_t kPastCaches = int64_t{32} << 20;

// Copies from a buffer, with non-temporal stores for whole cache lines. Partial lines are stored
// normally, because one line must not be written both ways.
inline void store_past_caches(char* to, const char* from, int64_t bytes) {
#ifdef __SSE2__
  constexpr int64_t kLine = 64;
  const int64_t head = int64_t(-reinterpret_cast<uintptr_t>(to) % kLine);
  if (bytes >= head + kLine) {
    const int64_t end = bytes - (bytes - head) % kLine;
    std::memcpy(to, from, size_t(head));
    for (int64_t k = head; k < end; k += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + k),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)));
    }
    std::memcpy(to + end, from + end, size_t(bytes - end));
    return;
  }
#endif
  std::memcpy(to, from, size_t(bytes));
}

// To be called after a thread's last store, so that other threads see the stores in order.
inline void finish_past_caches() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

// Writes elements [begin, end) of a result, `item` bytes each. compute(buffer, first, n) computes n
// of them into a buffer.
template <class F>
void compute_past_caches(char* result, int64_t item, int64_t begin, int64_t end, const F& compute) {
  constexpr int64_t kBytes = 4096;
  alignas(64) char buffer[kBytes];
  for (int64_t at = begin; at < end; at += kBytes / item) {
    const int64_t n = std::min(kBytes / item, end - at);
    compute(buffer, at, n);
    store_past_caches(result + at * item, buffer, n * item);
  }
  finish_past_caches();
}

}  // namespace catena::host
