// Records of add_layer_normalization and add_rms_normalization.

#include "catena/functions/array/cast.h"
#include "catena/functions/normalization/layer_normalization.h"
#include "functions/function_record.h"

namespace catena {
namespace {

namespace F = functions;

FunctionRecord layer_record() {
  FunctionRecord r;
  r.function = "add_layer_normalization";
  r.ranges = {{-2, 2}, {-2, 2}, {0.5, 1.5, {}, true}, {-1, 1, {}, true}};
  r.shapes = {{{3, 37}, {3, 37}, {37}, {37}},
              {{2, 3, 4}, {2, 3, 4}, {3, 4}, {3, 4}},
              {{0, 3}, {0, 3}, {3}, {3}},
              {{3, 40}, {3, 40}, {40}, {40}},
              {{5}, {5}, {5}, {5}}};
  r.call = [](const Variables& v) {
    const auto result = F::add_layer_normalization(v[0], v[1], v[2], v[3], 1e-2);
    return Variables{result.y, result.sum};
  };
  r.forward_launches = r.backward_launches = 1;
  r.error = 5e-5;
  const std::string name = "AddLayerNormalization";
  r.errors = {
      type_error(
          name, WrongInputs{{2, 3}, {2, 4}, {3}, {3}},
          "Expect: residual.shape[1] == x.shape[1]\nActual: 4 != 3\nInputs: x float64 (2, "
          "3), residual float64 (2, 4)\nExpected is a residual of the shape of x, of floats."),
      type_error(name, WrongInputs{{2, 3}, {3}, {3}, {3}},
                 "Expect: residual.ndim == x.ndim\nActual: 1 != 2\nInputs: x float64 (2, 3), "
                 "residual float64 (3,)\nExpected is a residual of the shape of x, of floats."),
  };
  return r;
}

FunctionRecord rms_record() {
  FunctionRecord r = layer_record();
  r.function = "add_rms_normalization";
  r.ranges.pop_back();
  for (Shapes& shapes : r.shapes) shapes.pop_back();
  r.call = [](const Variables& v) {
    const auto result = F::add_rms_normalization(v[0], v[1], v[2], 1e-2);
    return Variables{result.y, result.sum};
  };
  r.errors = {};
  return r;
}

// The residual in another dtype: both results have the wider one.
FunctionRecord mixed_record() {
  FunctionRecord r = layer_record();
  r.variant = "residual in float32";
  r.call = [](const Variables& v) {
    const auto result = F::add_layer_normalization(
        v[0], F::cast(v[1], v[0].dtype() == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32),
        v[2], v[3], 1e-2);
    const Dtype own = v[0].dtype();
    return Variables{F::cast(result.y, own), F::cast(result.sum, own)};
  };
  r.forward_launches = r.backward_launches = {};
  r.errors = {};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(add_normalization) {
  return {layer_record(), rms_record(), mixed_record()};
}

}  // namespace catena
