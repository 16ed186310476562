// Random numbers, permutations and dropout.
#pragma once

#include <cstdint>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// The numbers one call may consume: blocks of four 32-bit words numbered from `offset` under
// `seed`. In a captured graph `base` is a device array of two uint64, a seed and a position:
// kernels take that seed instead of `seed` and add the position to `offset`. Both are set before a
// launch, so that replays go on in the stream of numbers.
struct RandomBits {
  uint64_t seed = 0;
  uint64_t offset = 0;
  const Array* base = nullptr;
};

// The distributions that have a kernel.
enum class RandomKind : uint8_t {
  kBits64,     // uint64
  kUniform,    // low + (high - low) * u, u of [0,1): 24 bits for <= 32-bit floats, 53 for float64
  kNormal,     // mean = low, deviation = high
  kIntegers,   // of [ilow, ilow + range)
  kBernoulli,  // bool, true when u53 < high
};

// Numbers come from the Philox blocks offset, offset + 1, ..., whatever the launch shape. A block
// gives two elements of 64 bits, half h of block b being element 2b + h: its words 2h (low) and
// 2h + 1 (high); u53 = bits >> 11 scaled by 2^-53. Floats of at most 32 bits take one word each,
// word w of block b being element 4b + w; u24 = word >> 8 scaled by 2^-24.
// kUniform uses u53 for float64 and u24 otherwise; kBernoulli u53; kIntegers the high 64 bits of
// bits * range (range 0 means 2^64). kNormal is Box-Muller on pairs of elements, u1 = 1 - u of the
// first and u2 = u of the second: r cos(2 pi u2) and r sin(2 pi u2) with r = sqrt(-2 log u1), in
// double for float64, in float otherwise.
struct RandomCall {
  RandomKind kind;
  RandomBits bits;
  double low = 0, high = 1;
  int64_t ilow = 0;
  uint64_t range = 0;
  const Array* output;  // contiguous, not empty
};

// output int64 (n): 0..n-1 sorted by (64 random bits of element i, i).
struct PermutationCall {
  const RandomBits& bits;
  const Array& output;
};

// y = keep(i) ? x * scale : 0 with keep when u24(block offset + i / 4, word i % 4) >= float(ratio);
// x, y contiguous floats of any dtype. The gradient is the same call on gy.
struct DropoutCall {
  const Array& x;
  double ratio;
  double scale;
  const RandomBits& bits;
  const Array& y;
};

namespace kernels {

// The slots of the calls above.
extern Slot<RandomCall> random;
extern Slot<PermutationCall> permutation;
extern Slot<DropoutCall> dropout;

}  // namespace kernels

}  // namespace catena
