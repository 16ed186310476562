// What layers with weights W and a bias b share: their start values.
#pragma once

#include <optional>

#include "catena/array/array.h"

namespace catena::functions {

// The start value of W: `given`, without a copy where the dtypes agree, else normal numbers of that
// deviation on the current device. Of `dtype`, else of given's, else float32. Errors name `layer`;
// `axes` names the shape: "(out, in)".
Array initial_weight(const char* layer, const Shape& shape, const char* axes,
                     const std::optional<Array>& given, const std::optional<Dtype>& dtype,
                     double deviation);
// That of b, one number an output: `given`, or all `value`; of W's dtype and device.
Array initial_bias(const char* layer, const Array& W, const std::optional<Array>& given,
                   double value);

}  // namespace catena::functions
