// Rotary positions of queries and keys.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Frequencies of Llama 3 for more positions than it was trained with at first (Dubey et al. 2024).
// Wavelengths above original / low are `factor` times as long, those below original / high stay,
// those between are in between.
struct Llama3Scaling {
  double factor = 8, low = 1, high = 4;
  int64_t original = 8192;  // positions
};
// Those of YaRN (Peng et al. 2024): pairs that turn less than `slow` times within the original
// positions turn `factor` times as slowly, those that turn more than `fast` times stay, those
// between are in between. Cosines and sines are multiplied by attention_factor, 0.1 ln(factor) + 1
// unless given, and 1 for factors up to 1.
struct YarnScaling {
  double factor = 4;
  int64_t original = 4096;  // positions
  double fast = 32, slow = 1;
  std::optional<double> attention_factor = {};
};

// Options of rotary_embedding.
struct RotaryOptions {
  double base = 10000;  // of frequencies base^(-2j / rotated)

  // The first numbers of a head, an even number; all unless given. Others stay as they are.
  std::optional<int64_t> rotated = {};

  // Which numbers are a pair: j and j + rotated / 2, as in Llama's files at Hugging Face, or 2j and
  // 2j + 1, as in those of its authors and in GPT-J.
  bool interleaved = false;

  // Integers of int32 or int64, (positions) or (batch, positions), or 1 instead of an extent; on
  // the device of x. 0, 1, ... unless given.
  std::optional<Array> positions = {};

  int64_t start = 0;  // added to all positions: the number of keys in a cache

  // At most one of these.
  std::optional<Llama3Scaling> llama3 = {};
  std::optional<YarnScaling> yarn = {};
};

// x of (batch, heads, positions, depth) with pairs of numbers turned by angles that grow with the
// position, so that products of queries and keys depend on the distance of their positions alone
// (J. Su et al., RoFormer, 2021). A pair (a, b) becomes (a cos - b sin, b cos + a sin) of the angle
// position * frequency. x: floats, with any strides; the result has its dtype and memory order.
// Angles are computed in float64, the turn in float32, of float64 in float64. 16-bit floats are
// rounded once. One kernel each way, which keeps no tables, and gradients of any order. Up to 512
// numbers are turned by one kernel on GPUs, more by several.
//
// InvalidType for other x; ValueError for a `rotated` that is odd or not of [2, depth], numbers of
// options that make no sense, and both scalings; ShapeError and DtypeError for other positions.
Variable rotary_embedding(const VariableOperand& x, const RotaryOptions& options = {});

// The frequencies of the pairs, radians a position, with the scaling of the options. Those of
// `rotated` numbers, the depth where the options do not say. ValueErrors as above.
std::vector<double> rotary_frequencies(int64_t depth, const RotaryOptions& options = {});

}  // namespace catena::functions
