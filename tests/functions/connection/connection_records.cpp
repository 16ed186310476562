// Records of products with weights.
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "functions/function_record.h"

namespace catena {
namespace {

// x W^T + b, x flattened behind its first axis.
Plain linear_of(const Plains& in) {
  const Plain &x = in[0], &W = in[1];
  const int64_t size = W.shape[1];
  return plain({x.shape[0], W.shape[0]}, [&](const Shape& i) {
    double total = in.size() > 2 ? in[2](i[1]) : 0;
    for (int64_t k = 0; k < size; ++k) total += x.values[size_t(i[0] * size + k)] * W(i[1], k);
    return total;
  });
}

FunctionRecord linear_record(bool bias) {
  FunctionRecord r;
  r.function = "linear";
  r.variant = bias ? "bias" : "no bias";
  for (const Shape& x : {Shape{4, 3}, Shape{4, 1, 3}, Shape{0, 3}}) {
    r.shapes.push_back({x, {2, 3}});
    if (bias) r.shapes.back().push_back({2});
  }
  r.call = [=](const Variables& v) {
    return Variables{bias ? F::linear(v[0], v[1], v[2]) : F::linear(v[0], v[1])};
  };
  r.reference = [](const Plains& in) { return Plains{linear_of(in)}; };
  r.forward_launches = 1;
  r.backward_launches = bias ? 3 : 2;
  return r;
}

FunctionRecord linear_errors() {
  FunctionRecord r = linear_record(true);
  r.variant = "errors";
  const auto call = [](Shape x, Shape W, Shape b) {
    return [=](const Draw& draw) { F::linear(draw(x), draw(W), draw(b)); };
  };
  const auto takes = [](const char* x) {
    return message("\nInputs: x float64 ", x,
                   ", W float64 (2, 3), b float64 (2,)\nThe layer takes (n, 3), n samples of 3 "
                   "numbers each; the input has shape ",
                   x);
  };
  r.errors = {
      type_error("Linear", call({4, 5}, {2, 3}, {2}),
                 "Expect: prod(x.shape[1:]) == W.shape[1]\nActual: 5 != 3" + takes("(4, 5)") + "."),
      type_error("Linear", call({3}, {2, 3}, {2}),
                 "Expect: x.ndim >= 2\nActual: 1 < 2" + takes("(3,)") +
                     ": one sample is x.reshape({1, -1})."),
      type_error("Linear", call({4, 3}, {2, 3, 1}, {2}),
                 "Expect: W.ndim == 2\nActual: 3 != 2\nInputs: x float64 (4, 3), W float64 (2, 3, "
                 "1), b float64 (2,)\nThe weights W are expected as (out, in), a matrix."),
      type_error("Linear", call({4, 3}, {2, 3}, {3}),
                 "Expect: b.shape[0] == W.shape[0]\nActual: 3 != 2\nInputs: x float64 (4, 3), W "
                 "float64 (2, 3), b float64 (3,)\nThe bias has one number for each of the 2 "
                 "outputs of W, shape (2,); b has shape (3,)."),
      type_error(
          "Linear",
          [](const Draw& draw) {
            F::linear(draw({4, 3}, 0, 1, 0, Dtype::kFloat32), draw({2, 3}));
          },
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
  r.reference = [](const Plains& in) {
    Plain y = linear_of(in);
    for (double& v : y.values) v = std::max(v, 0.0);
    return Plains{y};
  };
  r.backward_launches = 4;  // and the mask
  return r;
}

// Cross-correlation of images, with zeros around them.
Plain convolution_of(const Plains& in, const F::ConvolutionOptions& o) {
  const Plain &x = in[0], &W = in[1];
  const auto positions = [](int64_t size, int64_t kernel, int64_t stride, int64_t pad,
                            int64_t dilation) {
    return (size + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1;
  };
  const int64_t height = x.shape[2], width = x.shape[3], per_group = W.shape[1];
  const int64_t filters = W.shape[0] / o.groups;
  const Shape shape{x.shape[0], W.shape[0],
                    positions(height, W.shape[2], o.stride.height, o.pad.height, o.dilation.height),
                    positions(width, W.shape[3], o.stride.width, o.pad.width, o.dilation.width)};
  return plain(shape, [&](const Shape& at) {
    double total = in.size() > 2 ? in[2](at[1]) : 0;
    plain(Shape{per_group, W.shape[2], W.shape[3]}, [&](const Shape& k) {
      const int64_t row = at[2] * o.stride.height - o.pad.height + k[1] * o.dilation.height;
      const int64_t column = at[3] * o.stride.width - o.pad.width + k[2] * o.dilation.width;
      if (row >= 0 && row < height && column >= 0 && column < width)
        total +=
            W(at[1], k[0], k[1], k[2]) * x(at[0], at[1] / filters * per_group + k[0], row, column);
      return 0.0;
    });
    return total;
  });
}

FunctionRecord convolution_record(const char* variant, Shapes shapes,
                                  F::ConvolutionOptions options) {
  FunctionRecord r;
  r.function = "convolution_2d";
  r.variant = variant;
  r.shapes = {shapes};
  r.forward_launches = 1;
  r.backward_launches = int(shapes.size());  // a gradient each
  shapes[0][0] = 0;
  r.shapes.push_back(shapes);
  r.call = [=](const Variables& v) {
    return Variables{v.size() == 3 ? F::convolution_2d(v[0], v[1], v[2], options)
                                   : F::convolution_2d(v[0], v[1], options)};
  };
  r.reference = [=](const Plains& in) { return Plains{convolution_of(in, options)}; };
  return r;
}

FunctionRecord convolution_errors() {
  FunctionRecord r = convolution_record("errors", {{2, 3, 4, 3}, {4, 3, 3, 2}, {4}}, {});
  const auto call = [](Shape x, Shape W, F::ConvolutionOptions options = {}) {
    return [=](const Draw& draw) { F::convolution_2d(draw(x), draw(W), options); };
  };
  const auto takes = [](const char* x, int channels, const char* W = "(4, 3, 3, 2)") {
    return message("\nInputs: x float64 ", x, ", W float64 ", W, "\nThe layer takes (n, ", channels,
                   ", height, width), n images of ", channels, " channels; the input has shape ",
                   x);
  };
  r.errors = {
      type_error("Convolution2D", call({2, 4, 5, 6}, {4, 3, 3, 2}),
                 "Expect: x.shape[1] == W.shape[1]\nActual: 4 != 3" + takes("(2, 4, 5, 6)", 3) +
                     ", for which the layer is Convolution2D(4, 4, ...)."),
      type_error("Convolution2D", call({2, 4, 5, 7}, {4, 3, 3, 2}, {.groups = 2}),
                 "Expect: x.shape[1] == W.shape[1] * groups\nActual: 4 != 6" +
                     takes("(2, 4, 5, 7)", 6) +
                     ", for which the layer is Convolution2D(4, 4, ...)."),
      type_error("Convolution2D", call({2, 5, 6, 3}, {4, 3, 3, 2}),
                 "Expect: x.shape[1] == W.shape[1]\nActual: 5 != 3" + takes("(2, 5, 6, 3)", 3) +
                     ": images with their channels last are x.transpose({0, 3, 1, 2})."),
      type_error("Convolution2D", call({3, 5, 6}, {4, 3, 3, 2}),
                 "Expect: x.ndim == 4\nActual: 3 != 4" + takes("(3, 5, 6)", 3) +
                     ": one image is x.expand_dims(0)."),
      type_error("Convolution2D", call({2, 90}, {4, 3, 3, 2}),
                 "Expect: x.ndim == 4\nActual: 2 != 4" + takes("(2, 90)", 3) +
                     ": rows become images by x.reshape({-1, 3, height, width})."),
      type_error("Convolution2D", call({2, 784}, {4, 1, 3, 3}),
                 "Expect: x.ndim == 4\nActual: 2 != 4" + takes("(2, 784)", 1, "(4, 1, 3, 3)") +
                     ": rows become images by x.reshape({-1, 1, height, width}), those of "
                     "load_mnist() by load_mnist().images()."),
      type_error("Convolution2D", call({2, 3, 5, 6}, {4, 3, 3}),
                 "Expect: W.ndim == 4\nActual: 3 != 4\nInputs: x float64 (2, 3, 5, 6), W float64 "
                 "(4, 3, 3)\nThe filters W are expected as (out, in / groups, height, width)."),
      type_error("Convolution2D", call({2, 6, 5, 6}, {3, 3, 3, 2}, {.groups = 2}),
                 "Expect: W.shape[0] % groups == 0\nActual: 1 != 0\nInputs: x float64 (2, 6, 5, "
                 "6), W float64 (3, 3, 3, 2)\nW has 3 filters, which cannot be divided into 2 "
                 "groups: use a multiple of 2 filters, or other groups."),
      type_error(
          "Convolution2D",
          [](const Draw& draw) {
            F::convolution_2d(draw({2, 3, 5, 6}), draw({4, 3, 3, 2}), draw({3}));
          },
          "Expect: b.shape[0] == W.shape[0]\nActual: 3 != 4\nInputs: x float64 (2, 3, 5, 6), W "
          "float64 (4, 3, 3, 2), b float64 (3,)\nThe bias has one number for each of the 4 outputs "
          "of W, shape (4,); b has shape (3,)."),
      error<ShapeError>(call({2, 3, 2, 2}, {4, 3, 3, 2}),
                        "Convolution2D: a window of (3, 2) with dilation (1, 1) does not fit into "
                        "an image of (2, 2) with pad (0, 0); use a larger image, more padding or a "
                        "smaller window"),
      error<ValueError>(call({2, 3, 5, 6}, {4, 3, 3, 2}, {.stride = 0}),
                        "Convolution2D: expected a stride of at least 1, got (0, 0)"),
  };
  return r;
}

FunctionRecord channels_last_record() {
  FunctionRecord r;
  r.function = "channels_last";
  r.shapes = {{{2, 3, 4, 5}}, {{2, 1, 4, 1}}, {{0, 3, 2, 2}}};
  r.call = unary([](const Variable& v) { return F::channels_last(v); });
  r.reference = [](const Plains& in) { return in; };
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
  return {channels_last_record(),
          linear_record(true),
          linear_record(false),
          linear_errors(),
          linear_relu_record(),
          convolution_record("bias", {{2, 3, 4, 3}, {4, 3, 3, 2}, {4}}, {}),
          convolution_errors(),
          convolution_record("one product", {{2, 3, 3, 4}, {4, 3, 1, 1}, {4}}, {}),
          convolution_record("stride and pad", {{2, 2, 5, 4}, {3, 2, 3, 3}},
                             {.stride = {2, 1}, .pad = {1, 2}}),
          convolution_record("groups and dilation", {{1, 4, 5, 4}, {2, 2, 2, 2}, {2}},
                             {.dilation = {2, 1}, .groups = 2})};
}

}  // namespace catena
