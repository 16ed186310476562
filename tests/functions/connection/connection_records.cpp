// Records of products with weights.
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord linear_record(bool bias) {
  FunctionRecord r;
  r.function = "linear";
  r.variant = bias ? "bias" : "no bias";
  for (const Shape& x : {Shape{4, 3}, Shape{4, 1, 3}, Shape{2, 5, 3}, Shape{2, 3, 4, 3}, Shape{3},
                         Shape{0, 3}, Shape{2, 0, 3}}) {
    r.shapes.push_back({x, {2, 3}});
    if (bias) r.shapes.back().push_back({2});
  }
  r.call = [=](const Variables& v) {
    return Variables{v.size() == 3 ? F::linear(v[0], v[1], v[2]) : F::linear(v[0], v[1])};
  };
  r.forward_launches = 1;
  r.backward_launches = bias ? 3 : 2;
  return r;
}

FunctionRecord linear_errors() {
  FunctionRecord r = linear_record(true);
  r.variant = "errors";
  const auto takes = [](const char* x) {
    return message("\nInputs: x float64 ", x,
                   ", W float64 (2, 3), b float64 (2,)\nThe layer takes (..., 3), 3 numbers along "
                   "the last axis; the input has shape ",
                   x, ".");
  };
  r.errors = {
      type_error("Linear", {{4, 5}, {2, 3}, {2}},
                 "Expect: x.shape[1] == W.shape[1]\nActual: 5 != 3" + takes("(4, 5)")),
      type_error("Linear", {{4, 3, 1}, {2, 3}, {2}},
                 "Expect: x.shape[2] == W.shape[1]\nActual: 1 != 3" + takes("(4, 3, 1)") +
                     " Behind its first axis it has 3 numbers: a layer flattens them with "
                     "LinearOptions{.flatten = true}, by hand it is x.reshape({4, 3})."),
      type_error("Linear", {{4, 1, 6}, {2, 3}, {2}},
                 "Expect: x.shape[2] == W.shape[1]\nActual: 6 != 3" + takes("(4, 1, 6)")),
      type_error("Linear", {{}, {2, 3}, {2}}, "Expect: x.ndim >= 1\nActual: 0 < 1" + takes("()")),
      type_error("Linear", {{4, 3}, {2, 3, 1}, {2}},
                 "Expect: W.ndim == 2\nActual: 3 != 2\nInputs: x float64 (4, 3), W float64 (2, 3, "
                 "1), b float64 (2,)\nThe weights W are expected as (out, in), a matrix."),
      type_error("Linear", {{4, 3}, {2, 3}, {3}},
                 "Expect: b.shape[0] == W.shape[0]\nActual: 3 != 2\nInputs: x float64 (4, 3), W "
                 "float64 (2, 3), b float64 (3,)\nThe bias has one number for each of the 2 "
                 "outputs of W, shape (2,); b has shape (3,)."),
      type_error(
          "Linear", {{{4, 3}, Dtype::kFloat32}, {2, 3}},
          "Expect: x.dtype == float64\nActual: float32 != float64\nInputs: x float32 (4, 3), W "
          "float64 (2, 3)\nThe input is float32, "
          "the layer float64: convert the input with .astype(dtype::float64), or make arrays of "
          "float64 by config().default_dtype = dtype::float64."),
  };
  return r;
}

FunctionRecord linear_relu_record() {
  FunctionRecord r = linear_record(true);
  r.function = "linear_relu";
  r.variant = "";
  r.call = [](const Variables& v) { return Variables{F::linear_relu(v[0], v[1], v[2])}; };
  r.backward_launches = 3;  // the mask and the sum are one
  return r;
}

FunctionRecord channels_last_record() {
  FunctionRecord r;
  r.function = "channels_last";
  r.shapes = {{{2, 3, 4, 5}}, {{2, 1, 4, 1}}, {{0, 3, 2, 2}}};
  r.call = unary([](const Variable& v) { return F::channels_last(v); });
  r.forward_launches = 1;
  r.backward_launches = 0;
  r.errors = {type_error(
      "ChannelsLast",
      [](const Draw& draw) {
        F::channels_last(Variable(draw({2, 3, 4})));
      },
      "Expect: images.ndim == 4\nActual: 3 != 4\nInputs: images float64 (2, 3, 4)\nExpected are "
      "images (n, channels, height, width).")};
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(connection) {
  return {channels_last_record(), linear_record(true), linear_record(false), linear_errors(),
          linear_relu_record()};
}

}  // namespace catena
