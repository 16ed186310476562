// What layers share: the start values of weights W, a bias b and the scales of normalizations.
#pragma once

#include <optional>

#include "catena/functions/initializers.h"

namespace catena::functions {

// The inputs of a sample to a layer that takes (n, ...): the product of all extents but the first.
int64_t flat_extent(const Shape& shape);

// The start value of W: the array `given`, without a copy where the dtypes agree, or what the
// initializer gives on the current device, else normal numbers of that deviation. Of `dtype`, else
// of the array's, else float32. Errors name `layer`; `axes` names the shape: "(out, in)".
Array initial_weight(const char* layer, const Shape& shape, const char* axes,
                     const InitialValue& given, const std::optional<Dtype>& dtype,
                     double deviation);
// That of b, one number an output: `given`, or all `value`; of W's dtype and device.
Array initial_bias(const char* layer, const Array& W, const InitialValue& given, double value);
// Of a scale or shift of a normalization, named `option`, of `dtype` on the current device:
// `given`, always copied, or all `value`.
Array initial_scale(const char* layer, const char* option, const Shape& size, Dtype dtype,
                    const InitialValue& given, double value);

}  // namespace catena::functions
