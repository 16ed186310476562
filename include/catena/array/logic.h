// Comparisons of whole arrays.
#pragma once

#include "catena/array/array.h"

namespace catena {

// bool: |x - y| <= atol + rtol * |y|, broadcast; infinities equal themselves, NaN equals NaN only
// with equal_nan. Integers are compared as float64. Without tolerances: rtol 1e-5, atol 1e-8.
Array isclose(const Operand& x, const Operand& y, std::optional<double> rtol = {},
              std::optional<double> atol = {}, bool equal_nan = false);

// The following answer on the host: one synchronisation.
bool allclose(const Operand& x, const Operand& y, std::optional<double> rtol = {},
              std::optional<double> atol = {}, bool equal_nan = false);
// Same shape and equal elements.
bool array_equal(const Array& x, const Array& y, bool equal_nan = false);
// Shapes that broadcast together and equal elements.
bool array_equiv(const Array& x, const Array& y);

}  // namespace catena
