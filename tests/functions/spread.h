// Samples of the operands of element-wise functions: of both signs where the range has both, never
// at a kink.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "catena/array/creation.h"

namespace catena {

// One number from each of n equal parts of [low, high), in random order. Arrays of different
// operands have numbers in different thirds of the parts, none in the middle or at an end of one:
// no two operands are equal anywhere, and none is 0 where the range is symmetric.
inline Array spread_array(const Shape& shape, double low, double high, Dtype dtype, Device device,
                          int operand) {
  constexpr double kBegin[] = {0.08, 0.58, 0.82}, kWidth = 0.14;
  std::mt19937_64 random(uint64_t(operand) + 1);
  std::uniform_real_distribution<double> draw(kBegin[operand % 3], kBegin[operand % 3] + kWidth);
  std::vector<double> values(size_t(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = low + (high - low) * (double(i) + draw(random)) / double(values.size());
  std::shuffle(values.begin(), values.end(), random);
  return array(values, shape).astype(dtype).to(device);
}

}  // namespace catena
