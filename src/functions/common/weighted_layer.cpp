#include "functions/common/weighted_layer.h"

#include "catena/array/creation.h"
#include "catena/array/random.h"

namespace catena::functions {

namespace {

// The array or what the initializer gives. ShapeError for another shape, which `axes` describes.
Array value_of(const char* layer, const char* option, const char* axes, const InitialValue& given,
               const Shape& shape, const ArrayOptions& options) {
  const Array value = given.array() ? *given.array() : given.initializer()(shape, options);
  CATENA_CHECK(ShapeError, value.shape() == shape, layer, ": ", option, " has shape ",
               value.shape(), ", expected ", axes, " = ", shape);
  return value.astype(*options.dtype, false);
}

}  // namespace

int64_t flat_extent(const Shape& shape) {
  int64_t n = 1;
  for (size_t i = 1; i < shape.size(); ++i) n *= shape[i];
  return n;
}

Array initial_weight(const char* layer, const Shape& shape, const char* axes,
                     const InitialValue& given, const std::optional<Dtype>& dtype,
                     double deviation) {
  const Dtype type = dtype.value_or(given.array() ? given.array()->dtype() : Dtype::kFloat32);
  CATENA_CHECK(DtypeError, is_float(type), layer, ": expected a floating dtype, got ", type);
  if (!given) return random::normal(shape, 0, deviation, type);
  return value_of(layer, "initialW", axes, given, shape, {type, current_device()});
}

Array initial_bias(const char* layer, const Array& W, const InitialValue& given, double value) {
  const Shape shape{W.shape()[0]};
  const ArrayOptions like_W(W.dtype(), W.device());
  if (!given) return full(shape, value, like_W);
  return value_of(layer, "initial_bias", "(out)", given, shape, like_W).to(W.device());
}

Array initial_scale(const char* layer, const char* option, const Shape& size, Dtype dtype,
                    const InitialValue& given, double value) {
  CATENA_CHECK(DtypeError, is_float(dtype), layer, ": expected a floating dtype, got ", dtype);
  if (!given) return full(size, value, dtype);
  const Device device = current_device();
  const Array start = value_of(layer, option, "size", given, size, {dtype, device});
  return start.device() == device ? start.copy() : start.to(device);
}

}  // namespace catena::functions
