// Start values of layers: those of weights W, a bias b and the scales of normalizations.
#pragma once

#include <optional>

#include "catena/autograd/parameter.h"
#include "catena/functions/initializers.h"

namespace catena::functions {

// The start value of W: the array `given`, without a copy where the dtypes agree, or what the
// initializer gives on the current device, else normal numbers of that deviation. Of `dtype`, else
// of the array's, else float32. Errors name `layer`; `axes` names the shape: "(out, in)".
Array initial_weight(const char* layer, const Shape& shape, const char* axes,
                     const InitialValue& given, const std::optional<Dtype>& dtype,
                     double deviation);
// The bias of a layer by its options: one number an output, `given`, or all `value`; of W's dtype
// and device. Undefined with nobias; ValueError where that and `given` contradict each other.
OwnedParameter initial_bias(const char* layer, const Array& W, int64_t outputs, bool nobias,
                            const InitialValue& given, double value);
// The variables of W and of a b that the layer may lack. ValueError if the layer was moved from.
const Variable& weights_of(const char* layer, const OwnedParameter& W);
inline const Variable* bias_of(const OwnedParameter& b) {
  return b.defined() ? &b.variable() : nullptr;
}
// Of a scale or shift of a normalization, named `option`, of `dtype` on the current device:
// `given`, always copied, or all `value`.
Array initial_scale(const char* layer, const char* option, const Shape& size, Dtype dtype,
                    const InitialValue& given, double value);

// An option of a layer, and the shape that it expects, both for errors.
struct LayerOption {
  const char *layer, *name, *axes;
};
// `given`, which there must be, of this shape and dtype on the current device; an array is copied.
Array given_start(const LayerOption& option, const InitialValue& given, const Shape& shape,
                  Dtype dtype);
// `dtype`, else that of the array `given`, else float32. DtypeError unless it is floating.
Dtype start_dtype(const char* layer, const std::optional<Dtype>& dtype, const InitialValue& given);

// Start values of the gates of an LSTM, whose rows are four blocks a, i, f and o. An array is that
// of all rows; an initializer makes each block, whose axes the option names: "(out, in)". All are
// copies on the current device.
//
// Of a weight (4 * out, in): normal of this deviation unless given.
Array initial_gate_weight(const LayerOption& option, int64_t out, int64_t in,
                          const InitialValue& given, Dtype dtype, double deviation);
// Of the bias (4 * out): 0 unless given, then block f by `forget`, if that is given.
Array initial_gate_bias(const char* layer, int64_t out, const InitialValue& given,
                        const InitialValue& forget, Dtype dtype);

}  // namespace catena::functions
