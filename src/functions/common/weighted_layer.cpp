#include "functions/common/weighted_layer.h"

#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/core/entry_scope.h"

namespace catena::functions {

namespace {

// The array or what the initializer gives. ShapeError for another shape.
Array value_of(const LayerOption& option, const InitialValue& given, const Shape& shape,
               const ArrayOptions& options) {
  const Array value = given.array() ? *given.array() : given.initializer()(shape, options);
  CATENA_CHECK(ValueError, value.defined(), option.layer, ": ", option.name,
               given.array() ? " is an undefined array" : " has given an undefined array");
  CATENA_CHECK(ShapeError, value.shape() == shape, option.layer, ": ", option.name, " has shape ",
               value.shape(), ", expected ", option.axes, " = ", shape);
  return value.astype(*options.dtype, false);
}

// ShapeError, in the name of the layer, for weights that 64 bits cannot count.
void check_size_of(const char* layer, const Shape& shape) {
  const EntryScope named(layer);
  element_count(shape);
}

constexpr int64_t kGates = 4, kForget = 2;

Array block_of(const Array& gates, int64_t out, int64_t k) {
  return gates.at({Slice(k * out, (k + 1) * out)});
}

// An array of all rows, or an initializer's values for each block, of the shape `block`.
Array given_gates(const LayerOption& option, const InitialValue& given, const Shape& block,
                  Dtype dtype) {
  Shape all = block;
  all[0] *= kGates;
  if (given.array()) {
    const std::string axes = message("(4 * ", option.axes + 1);
    return given_start({option.layer, option.name, axes.c_str()}, given, all, dtype);
  }
  const Array gates = Array::uninitialized(all, dtype, current_device());
  for (int64_t k = 0; k < kGates; ++k)
    block_of(gates, block[0], k).assign(given_start(option, given, block, dtype));
  return gates;
}

}  // namespace

Array initial_weight(const char* layer, const Shape& shape, const char* axes,
                     const InitialValue& given, const std::optional<Dtype>& dtype,
                     double deviation) {
  const Dtype type = start_dtype(layer, dtype, given);
  check_size_of(layer, shape);
  CATENA_CHECK(ValueError, given || (std::isfinite(deviation) && deviation >= 0), layer,
               ": expected a finite wscale of at least 0; the deviation of W would be ", deviation);
  if (!given) return random::normal(shape, 0, deviation, type);
  return value_of({layer, "initialW", axes}, given, shape, {type, current_device()});
}

OwnedParameter initial_bias(const char* layer, const Array& W, int64_t outputs, bool nobias,
                            const InitialValue& given, double value) {
  CATENA_CHECK(ValueError, !nobias || !given, layer,
               ": nobias and initial_bias contradict each other; leave out one of them");
  if (nobias) return {};
  const Shape shape{outputs};
  const ArrayOptions like_W(W.dtype(), W.device());
  if (!given) return OwnedParameter(full(shape, value, like_W));
  return OwnedParameter(
      value_of({layer, "initial_bias", "(out)"}, given, shape, like_W).to(W.device()));
}

const Variable& weights_of(const char* layer, const OwnedParameter& W) {
  CATENA_CHECK(ValueError, W.defined(), layer, ": this layer has no weights; it was moved from");
  return W.variable();
}

Array initial_scale(const char* layer, const char* option, const Shape& size, Dtype dtype,
                    const InitialValue& given, double value) {
  CATENA_CHECK(DtypeError, is_float(dtype), layer, ": expected a floating dtype, got ", dtype);
  if (!given) return full(size, value, dtype);
  return given_start({layer, option, "size"}, given, size, dtype);
}

Array given_start(const LayerOption& option, const InitialValue& given, const Shape& shape,
                  Dtype dtype) {
  const Device device = current_device();
  const Array start = value_of(option, given, shape, {dtype, device});
  return start.device() == device ? start.copy() : start.to(device);
}

Dtype start_dtype(const char* layer, const std::optional<Dtype>& dtype, const InitialValue& given) {
  const bool of_array = given.array() && given.array()->defined();
  const Dtype type = dtype.value_or(of_array ? given.array()->dtype() : Dtype::kFloat32);
  CATENA_CHECK(DtypeError, is_float(type), layer, ": expected a floating dtype, got ", type);
  return type;
}

Array initial_gate_weight(const LayerOption& option, int64_t out, int64_t in,
                          const InitialValue& given, Dtype dtype, double deviation) {
  if (!given) return random::normal({kGates * out, in}, 0, deviation, dtype);
  return given_gates(option, given, {out, in}, dtype);
}

Array initial_gate_bias(const char* layer, int64_t out, const InitialValue& given,
                        const InitialValue& forget, Dtype dtype) {
  const Array b = given ? given_gates({layer, "bias_init", "(out)"}, given, {out}, dtype)
                        : zeros({kGates * out}, dtype);
  if (forget)
    block_of(b, out, kForget)
        .assign(given_start({layer, "forget_bias_init", "(out)"}, forget, {out}, dtype));
  return b;
}

}  // namespace catena::functions
