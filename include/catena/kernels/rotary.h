// Rotary positions: pairs of numbers of a head as points of a plane, turned by angles that grow
// with the position (J. Su et al., RoFormer, 2021).
#pragma once

#include <cstdint>
#include <span>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// Pair j of position p is turned by p * frequencies[j] radians and multiplied by `factor`:
//   (a, b) becomes factor * (a cos - b sin, b cos + a sin),
// `inverse` by the negative angle. Pairs are (j, j + pairs) of the depth, `interleaved`
// (2j, 2j + 1); what is behind them is copied. p is positions[batch][i] + start, or i + start
// without positions. x and y (batch, heads, positions, depth): one floating dtype, any strides, not
// empty; y without overlap and not in the memory of x. 2 * pairs is at most the depth. positions:
// int32 (batch, positions) with any strides. Angles are made in float64; cosines and sines have the
// precision of the compute type, float32 or float64, in which pairs are turned.
struct RotaryCall {
  const Array* x;
  std::span<const double> frequencies;
  double factor = 1;
  bool interleaved = false;
  bool inverse = false;
  const Array* positions = nullptr;
  int64_t start = 0;
  const Array* y;
};

namespace kernels {

// The slot of the call above.
extern Slot<RotaryCall> rotary;

}  // namespace kernels

}  // namespace catena
