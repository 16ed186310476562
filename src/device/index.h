// Index arithmetic of kernels: division by run-time constants, and decomposition of linear indices.
// Plain C++ that g++, nvcc and NVRTC all compile, so that tests run it on the host. The includer
// defines CATENA_FN (function qualifiers).
#pragma once

#ifdef __CUDACC_RTC__
namespace catena {
typedef int int32_t;
typedef long long int64_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
}  // namespace catena
#else
#include <cstdint>
namespace catena {
using std::int32_t;
using std::int64_t;
using std::uint32_t;
using std::uint64_t;
}  // namespace catena
#endif

namespace catena {
namespace jit {

// n / divisor for n < 2^31 by one multiplication (Granlund & Montgomery 1994).
struct Divider {
  uint32_t divisor;
  uint32_t magic;
  uint32_t shift;
};

CATENA_FN Divider make_divider(uint32_t divisor) {
  uint32_t shift = 0;
  while ((uint64_t(1) << shift) < divisor) ++shift;
  const uint64_t magic = ((uint64_t(1) << 32) * ((uint64_t(1) << shift) - divisor)) / divisor + 1;
  const Divider result = {divisor, uint32_t(magic), shift};
  return result;
}

CATENA_FN uint32_t divide(uint32_t n, const Divider& d) {
  const uint32_t high = uint32_t((uint64_t(n) * d.magic) >> 32);
  return (high + n) >> d.shift;
}

// Returns the quotient of n and stores the remainder.
CATENA_FN uint32_t divide(uint32_t n, const Divider& d, uint32_t& remainder) {
  const uint32_t quotient = divide(n, d);
  remainder = n - quotient * d.divisor;
  return quotient;
}

// The block of a flat loop over `size` elements in tiles. Block 0 takes the `head` elements before
// the first aligned one, if there are any. Returns the number of elements, from `begin` on.
CATENA_FN int32_t flat_tile(int64_t block, int64_t size, int64_t head, int32_t tile,
                            int64_t& begin) {
  int64_t limit = size;
  begin = block * tile;
  if (head > 0) {
    if (block == 0)
      limit = head;
    else
      begin += head - tile;
  }
  const int64_t left = limit - begin;
  return left < tile ? int32_t(left) : tile;
}

// The position of element `element` (0 .. kVector * kUnroll - 1) of a thread inside a flat tile.
// With vectors, adjacent threads take adjacent vectors; without, adjacent elements.
CATENA_FN int32_t flat_position(bool vectors, int32_t thread, int32_t threads, int32_t element,
                                int32_t vector) {
  if (!vectors) return element * threads + thread;
  return (element / vector * threads + thread) * vector + element % vector;
}

}  // namespace jit
}  // namespace catena
