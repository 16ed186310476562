#include "functions/common/weighted_layer.h"

#include "catena/array/creation.h"
#include "catena/array/random.h"

namespace catena::functions {

Array initial_weight(const char* layer, const Shape& shape, const char* axes,
                     const std::optional<Array>& given, const std::optional<Dtype>& dtype,
                     double deviation) {
  const Dtype type = dtype.value_or(given ? given->dtype() : Dtype::kFloat32);
  CATENA_CHECK(DtypeError, is_float(type), layer, ": expected a floating dtype, got ", type);
  if (!given) return random::normal(shape, 0, deviation, type);
  CATENA_CHECK(ShapeError, given->shape() == shape, layer, ": initialW has shape ", given->shape(),
               ", expected ", axes, " = ", shape);
  return given->astype(type, false);
}

Array initial_bias(const char* layer, const Array& W, const std::optional<Array>& given,
                   double value) {
  const Shape shape{W.shape()[0]};
  if (!given) return full(shape, value, {W.dtype(), W.device()});
  CATENA_CHECK(ShapeError, given->shape() == shape, layer, ": initial_bias has shape ",
               given->shape(), ", expected (out) = ", shape);
  return given->astype(W.dtype(), false).to(W.device());
}

}  // namespace catena::functions
