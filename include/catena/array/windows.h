// Window functions for signals, as NumPy: 1-d, of n points, computed in float64; without a
// dtype they become default_float(). n of 1 gives {1}, n < 1 none.
#pragma once

#include <cstdint>

#include "catena/array/creation.h"

namespace catena {

// Triangle with zeros at the ends.
Array bartlett(int64_t n, const ArrayOptions& options = {});
// Raised cosines with the weights 0.5 0.5, 0.54 0.46, and 0.42 0.5 0.08 of two of them.
Array hanning(int64_t n, const ArrayOptions& options = {});
Array hamming(int64_t n, const ArrayOptions& options = {});
Array blackman(int64_t n, const ArrayOptions& options = {});

}  // namespace catena
