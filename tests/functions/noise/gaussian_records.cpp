// Records of gaussian. Their call sets the seed, so that it is a function, and computes in float64,
// where the noise agrees on all devices.
#include "catena/functions/array/cast.h"
#include "catena/functions/noise/gaussian.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord gaussian_record() {
  FunctionRecord r;
  r.function = "gaussian";
  r.ranges = {{-2, 2}, {-2, 2}};
  r.shapes = {{{5, 4}, {5, 4}}, {{2, 3, 2}, {2, 3, 2}}, {{0, 3}, {0, 3}}, {{}, {}}};
  r.call = binary([](const Variable& mean, const Variable& ln_var) {
    random::seed(5);
    const Dtype wide = Dtype::kFloat64;
    return F::cast(F::gaussian(F::cast(mean, wide), F::cast(ln_var, wide)), mean.dtype());
  });
  r.forward_launches = 3;   // the noise, its deviation, the mean
  r.backward_launches = 2;  // the noise, the gradient of ln_var
  r.errors = {
      type_error(
          "Gaussian", {{2, 3}, {3, 2}},
          "Expect: mean.shape[0] == ln_var.shape[0]\nActual: 2 != 3\nInputs: mean float64 (2, 3), "
          "ln_var float64 (3, 2)\nExpected are two of one floating dtype and shape."),
      type_error(
          "Gaussian",
          [](const Draw& draw) {
            F::gaussian(draw.labels({1, 2}, {2}), draw.labels({1, 2}, {2}));
          },
          "Expect: mean.dtype.kind == f\nActual: i != f\nInputs: mean int32 (2,), ln_var int32 "
          "(2,)\nExpected are two of one floating dtype and shape."),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(gaussian) { return {gaussian_record()}; }

}  // namespace catena
