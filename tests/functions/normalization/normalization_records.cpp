// Records of normalizations.
#include "catena/functions/normalization.h"
#include "functions/function_record.h"

namespace catena {
namespace {

constexpr double kEps = 0.1;

const InputRange kX{-2, 3}, kGamma{0.5, 2}, kBeta{-1, 1}, kVar{0.5, 2};
InputRange wide(InputRange range) {
  range.at_least_float32 = true;
  return range;
}

FunctionRecord batch_record() {
  FunctionRecord r;
  r.function = "batch_normalization";
  r.ranges = {kX, kGamma, kBeta};
  for (const auto& [x, channels] : {std::pair<Shape, Shape>{{4, 3, 2, 3}, {3}},
                                    {{7, 3}, {3}},
                                    {{3, 2, 2, 3}, {2, 2}},
                                    {{2, 2, 3, 2, 2}, {2}},
                                    {{3, 1, 4}, {1}},
                                    {{1, 3, 4, 2}, {3}}})
    r.shapes.push_back({x, channels, channels});
  r.call = [](const Variables& v) {
    return Variables{F::batch_normalization(v[0], v[1], v[2], {.eps = kEps})};
  };
  r.forward_launches = r.backward_launches = 1;
  const std::string label = "BatchNormalization";
  r.errors = {
      type_error(
          label, {{2, 4, 5}, {3}, {3}},
          "Expect: x.shape[1] == channels[0]\nActual: 4 != 3\nInputs: x float64 (2, 4, 5), gamma "
          "float64 (3,), beta float64 (3,)\nThe layer takes (n, 3, ...), n samples of 3 channels; "
          "the input has shape (2, 4, 5), for which the layer is BatchNormalization(4)."),
      type_error(label, {{3}, {3}, {3}},
                 "Expect: x.ndim >= 2\nActual: 1 < 2\nInputs: x float64 (3,), gamma float64 (3,), "
                 "beta float64 (3,)\nThe layer takes (n, 3, ...), n samples of 3 channels; the "
                 "input has shape (3,)."),
      type_error(label, {{{2, 3}, Dtype::kInt32}, {3}, {3}},
                 "Expect: x.dtype.kind == f\nActual: i != f\nInputs: x int32 (2, 3), gamma float64 "
                 "(3,), beta float64 (3,)\nThe input is int32, the "
                 "layer float64: convert the input with .astype(dtype::float64)."),
      type_error(label, {{2, 4}, {4}, {3}},
                 "Expect: beta.shape[0] == channels[0]\nActual: 3 != 4\nInputs: x float64 (2, 4), "
                 "gamma float64 (4,), beta float64 (3,)\nFor x of float64 with 4 channels, gamma, "
                 "beta, mean and var are expected as float64 (4,)."),
      type_error(
          label,
          [](const Draw& draw) {
            F::batch_normalization(draw({4, 3, 2}), draw({3}), draw({3}),
                                   {.residual = Variable(draw({4, 3, 5}))});
          },
          "Expect: residual.shape[2] == x.shape[2]\nActual: 5 != 2\nInputs: x float64 (4, 3, 2), "
          "gamma float64 (3,), beta float64 (3,), residual float64 (4, 3, 5)\nThe residual is "
          "added to the normalized x: it has the shape and dtype of x, float64 (4, 3, 2)."),
      error<ValueError>(
          {{1, 3}, {3}, {3}},
          "BatchNormalization: x of shape (1, 3) has one value a channel, which has no variance; "
          "use at least two samples, or given statistics (fixed_batch_normalization, a layer in "
          "test state). If the last batch of an epoch has one sample, drop the last batch "
          "(drop_last)."),
  };
  return r;
}

// Parameters of 16-bit batches may be float32.
FunctionRecord wide_parameters_record() {
  FunctionRecord r = batch_record();
  r.variant = "float32 parameters";
  r.ranges = {kX, wide(kGamma), wide(kBeta)};
  r.errors = {};
  return r;
}

FunctionRecord fused_record(bool relu) {
  FunctionRecord r = batch_record();
  r.variant = relu ? "residual and relu" : "residual";
  r.ranges.push_back(kX);
  for (Shapes& shapes : r.shapes) shapes.push_back(shapes[0]);
  r.call = [=](const Variables& v) {
    return Variables{
        F::batch_normalization(v[0], v[1], v[2], {.eps = kEps, .relu = relu, .residual = v[3]})};
  };
  if (!relu) r.forward_launches = r.backward_launches = {};
  r.errors = {};
  return r;
}

FunctionRecord fixed_record() {
  FunctionRecord r = batch_record();
  r.function = "fixed_batch_normalization";
  r.ranges = {kX, kGamma, kBeta, kBeta, kVar};
  r.shapes.push_back({{0, 3, 2}, {3}, {3}});
  for (Shapes& shapes : r.shapes) {
    shapes.push_back(shapes[1]);
    shapes.push_back(shapes[1]);
  }
  r.call = [](const Variables& v) {
    return Variables{F::fixed_batch_normalization(v[0], v[1], v[2], v[3], v[4], {.eps = kEps})};
  };
  r.backward_launches = {};  // those of mean and var are composed
  r.errors = {error<ValueError>(
      [](const Draw& draw) {
        F::fixed_batch_normalization(draw({2, 3}), draw({3}), draw({3}), draw({3}), draw({3}),
                                     {.eps = -1});
      },
      "FixedBatchNormalization: expected an eps of at least 0, got -1")};
  return r;
}

FunctionRecord fused_fixed_record(bool relu) {
  FunctionRecord r = fixed_record();
  r.variant = relu ? "residual and relu" : "residual";
  r.ranges.push_back(kX);
  for (Shapes& shapes : r.shapes) shapes.push_back(shapes[0]);
  r.call = [=](const Variables& v) {
    return Variables{F::fixed_batch_normalization(v[0], v[1], v[2], v[3], v[4],
                                                  {.eps = kEps, .relu = relu, .residual = v[5]})};
  };
  r.forward_launches = {};
  r.errors = {};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(normalization) {
  return {batch_record(), wide_parameters_record(),  fused_record(false),     fused_record(true),
          fixed_record(), fused_fixed_record(false), fused_fixed_record(true)};
}

}  // namespace catena
