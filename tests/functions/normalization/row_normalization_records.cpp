// Records of layer, root-mean-square, group and instance normalization.
#include "catena/functions/normalization/group_normalization.h"
#include "catena/functions/normalization/layer_normalization.h"
#include "functions/function_record.h"

namespace catena {
namespace {

constexpr double kEps = 0.1;
const InputRange kX{-2, 3}, kGamma{0.5, 2}, kBeta{-1, 1};

FunctionRecord layer_record() {
  FunctionRecord r;
  r.function = "layer_normalization";
  r.ranges = {kX, kGamma, kBeta};
  r.shapes = {{{4, 3, 7}, {7}, {7}},
              {{5, 2, 3}, {2, 3}, {2, 3}},
              {{6}, {6}, {6}},
              {{0, 3}, {3}, {3}},
              {{3, 35}, {35}, {35}}};
  r.call = [](const Variables& v) {
    return Variables{F::layer_normalization(v[0], v[1], v[2], kEps)};
  };
  r.forward_launches = r.backward_launches = 1;
  const std::string label = "LayerNormalization";
  r.errors = {
      type_error(label, {{2, 4}, {3}, {3}},
                 "Expect: x.shape[1] == 3\nActual: 4 != 3\nInputs: x float64 (2, 4)\nExpected is "
                 "(..., 3), whose last axis is normalized."),
      type_error(label, {{3}, {2, 3}, {2, 3}},
                 "Expect: x.ndim >= 2\nActual: 1 < 2\nInputs: x float64 (3,)\nExpected is (..., "
                 "2, 3), whose last axes are normalized."),
      type_error(label, {{2, 3}, {3}, {4}},
                 "Expect: beta.shape[0] == 3\nActual: 4 != 3\nInputs: x float64 (2, 3), gamma "
                 "float64 (3,), beta float64 (4,)\nFor x of float64 gamma and beta are expected as "
                 "float64 (3,)."),
      type_error(label, {{{2, 3}, Dtype::kInt32}, {3}, {3}},
                 "Expect: x.dtype.kind == f\nActual: i != f\nInputs: x int32 (2, 3), gamma float64 "
                 "(3,), beta float64 (3,)\nExpected is a floating dtype: convert x with "
                 ".astype(dtype::float32)."),
      error<ValueError>(
          [](const Draw& draw) {
            F::layer_normalization(draw({2, 3}), draw({3}), draw({3}), -1);
          },
          "LayerNormalization: expected an eps of at least 0, got -1")};
  return r;
}

FunctionRecord rms_record() {
  FunctionRecord r;
  r.function = "rms_normalization";
  r.ranges = {kX, kGamma};
  r.shapes = {{{4, 3, 7}, {7}}, {{5, 2, 3}, {2, 3}}, {{6}, {6}}, {{0, 3}, {3}}, {{3, 35}, {35}}};
  r.call = [](const Variables& v) { return Variables{F::rms_normalization(v[0], v[1], kEps)}; };
  r.forward_launches = r.backward_launches = 1;
  r.errors = {type_error(
      "RMSNormalization", {{2, 4}, {3}},
      "Expect: x.shape[1] == 3\nActual: 4 != 3\nInputs: x float64 (2, 4)\nExpected is (..., 3), "
      "whose last axis is normalized.")};
  return r;
}

FunctionRecord group_record() {
  FunctionRecord r;
  r.function = "group_normalization";
  r.ranges = {kX, kGamma, kBeta};
  r.shapes = {
      {{3, 4, 2, 3}, {4}, {4}}, {{5, 6}, {6}, {6}}, {{2, 8, 17}, {8}, {8}}, {{0, 4, 2}, {4}, {4}}};
  r.call = [](const Variables& v) {
    return Variables{F::group_normalization(v[0], 2, v[1], v[2], kEps)};
  };
  r.forward_launches = r.backward_launches = 1;
  const std::string label = "GroupNormalization";
  r.errors = {
      type_error(label, {{2, 3, 5}, {4}, {4}},
                 "Expect: x.shape[1] == 4\nActual: 3 != 4\nInputs: x float64 (2, 3, 5)\nExpected "
                 "is (n, 4, ...), n samples of 4 channels."),
      error<ValueError>(
          [](const Draw& draw) {
            F::group_normalization(draw({2, 4}), 3, draw({4}), draw({4}));
          },
          "GroupNormalization: 4 channels cannot be split into 3 equal groups; use a number of "
          "groups that divides the channels")};
  return r;
}

FunctionRecord instance_record() {
  FunctionRecord r = group_record();
  r.function = "instance_normalization";
  r.call = [](const Variables& v) {
    return Variables{F::instance_normalization(v[0], v[1], v[2], kEps)};
  };
  r.errors = {type_error(
      "InstanceNormalization", {{3}, {3}, {3}},
      "Expect: x.ndim >= 2\nActual: 1 < 2\nInputs: x float64 (3,)\nExpected is (n, 3, ...), n "
      "samples of 3 channels.")};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(row_normalization) {
  return {layer_record(), rms_record(), group_record(), instance_record()};
}

}  // namespace catena
