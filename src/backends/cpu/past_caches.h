// Sizes from which memory is the limit, and stores that go past the caches: for results that would
// not stay there, of which memory then need not be read first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace catena::host {

// Bytes that do not stay in the caches of a core: loops and tiles for memory are taken from here.
inline constexpr int64_t kPastCoreCaches = int64_t{4} << 20;
// Bytes of a result that no cache holds.
inline constexpr int64_t kPastCaches = int64_t{32} << 20;

// Copies from a buffer. Whole lines only are written past the caches: a line is written in one of
// the two ways, and parts of lines stay for what is written next to them.
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

// After the last store of a thread, so that others see them in order.
inline void finish_past_caches() {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

// Elements [begin, end) of a result of `item` bytes each: compute(buffer, first, n) puts n of them
// into a buffer from which they are written.
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
