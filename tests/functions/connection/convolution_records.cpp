// Records of convolutions of one, two and three axes and of transposed ones.
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/convolution_nd.h"
#include "catena/functions/connection/deconvolution_2d.h"
#include "functions/function_record.h"

namespace catena {
namespace {

FunctionRecord nd_record(const char* variant, Shapes shapes, std::vector<int64_t> stride,
                         std::vector<int64_t> pad, std::vector<int64_t> dilation, int64_t groups) {
  FunctionRecord r;
  r.function = "convolution_nd";
  r.variant = variant;
  r.shapes = {shapes};
  shapes[0][0] = 0;
  r.shapes.push_back(shapes);
  r.call = [=](const Variables& v) {
    const F::ConvolutionOptionsND o{.stride = F::ExtentND(stride),
                                    .pad = F::ExtentND(pad),
                                    .dilation = F::ExtentND(dilation),
                                    .groups = groups};
    return Variables{v.size() == 3 ? F::convolution_nd(v[0], v[1], v[2], o)
                                   : F::convolution_nd(v[0], v[1], o)};
  };
  return r;
}

FunctionRecord nd_errors() {
  FunctionRecord r = nd_record("errors", {{2, 3, 5}, {4, 3, 2}}, {1}, {0}, {1}, 1);
  const auto call = [](Shape x, Shape W, F::ConvolutionOptionsND o = {}) {
    return [=](const Draw& draw) { F::convolution_nd(draw(x), draw(W), o); };
  };
  r.errors = {
      type_error("ConvolutionND", {{2, 4, 5}, {4, 3, 2}},
                 "Expect: x.shape[1] == W.shape[1]\nActual: 4 != 3\nInputs: x float64 (2, 4, 5), W "
                 "float64 (4, 3, 2)\nW of 1 axes takes (n, 3, ...) with as many behind the "
                 "channels; the input has shape (2, 4, 5)."),
      type_error("ConvolutionND", {{2, 3, 5, 5}, {4, 3, 2}},
                 "Expect: x.ndim == W.ndim\nActual: 4 != 3\nInputs: x float64 (2, 3, 5, 5), W "
                 "float64 (4, 3, 2)\nW of 1 axes takes (n, 3, ...) with as many behind the "
                 "channels; the input has shape (2, 3, 5, 5)."),
      type_error("ConvolutionND", {{2, 3}, {4, 3}},
                 "Expect: W.ndim >= 3\nActual: 2 < 3\nInputs: x float64 (2, 3), W float64 (4, 3)\n"
                 "The filters W are expected as (out, in / groups, k1, ...) for one, two or three "
                 "axes."),
      error<ValueError>(call({2, 3, 5}, {4, 3, 2}, {.stride = {1, 2}}),
                        "ConvolutionND: stride has 2 numbers for 1 axes; give one for all, or one "
                        "for each"),
      error<ValueError>(call({2, 3, 5}, {4, 3, 2}, {.pad = -1}),
                        "ConvolutionND: expected a pad of at least 0, got -1"),
      error<ShapeError>({{2, 3, 2, 5, 5}, {4, 3, 4, 2, 2}},
                        "ConvolutionND: a window of 4 with dilation 1 does not fit into the 2 "
                        "elements of axis 2 of x with pad 0; use a larger x, more padding or a "
                        "smaller window"),
      error<ShapeError>(call({2, 3, 5}, {4, 3, 3}, {.dilation = 4}),
                        "ConvolutionND: a window of 3 with dilation 4 does not fit into the 5 "
                        "elements of axis 2 of x with pad 0; use a larger x, more padding or a "
                        "smaller window"),
      type_error("ConvolutionND", {{2, 3, 5}, {4, 3, 2}, {3}},
                 "Expect: b.shape[0] == W.shape[0]\nActual: 3 != 4\nInputs: x float64 (2, 3, 5), W "
                 "float64 (4, 3, 2), b float64 (3,)\nThe bias has one number for each of the 4 "
                 "outputs of W, shape (4,); b has shape (3,)."),
  };
  return r;
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
  return r;
}

// A window of another kind; how many kernels compute it is not said.
FunctionRecord window_record(const char* variant, Shapes shapes, F::ConvolutionOptions options) {
  FunctionRecord r = convolution_record(variant, std::move(shapes), options);
  r.forward_launches = r.backward_launches = {};
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
      type_error("Convolution2D", {{2, 4, 5, 6}, {4, 3, 3, 2}},
                 "Expect: x.shape[1] == W.shape[1]\nActual: 4 != 3" + takes("(2, 4, 5, 6)", 3) +
                     ", for which the layer is Convolution2D(4, 4, ...)."),
      type_error("Convolution2D", call({2, 4, 5, 7}, {4, 3, 3, 2}, {.groups = 2}),
                 "Expect: x.shape[1] == W.shape[1] * groups\nActual: 4 != 6" +
                     takes("(2, 4, 5, 7)", 6) +
                     ", for which the layer is Convolution2D(4, 4, ...)."),
      type_error("Convolution2D", {{2, 5, 6, 3}, {4, 3, 3, 2}},
                 "Expect: x.shape[1] == W.shape[1]\nActual: 5 != 3" + takes("(2, 5, 6, 3)", 3) +
                     ": images with their channels last are x.transpose({0, 3, 1, 2})."),
      type_error("Convolution2D", {{3, 5, 6}, {4, 3, 3, 2}},
                 "Expect: x.ndim == 4\nActual: 3 != 4" + takes("(3, 5, 6)", 3) +
                     ": one image is x.expand_dims(0)."),
      type_error("Convolution2D", {{2, 90}, {4, 3, 3, 2}},
                 "Expect: x.ndim == 4\nActual: 2 != 4" + takes("(2, 90)", 3) +
                     ": rows become images by x.reshape({-1, 3, height, width})."),
      type_error("Convolution2D", {{2, 784}, {4, 1, 3, 3}},
                 "Expect: x.ndim == 4\nActual: 2 != 4" + takes("(2, 784)", 1, "(4, 1, 3, 3)") +
                     ": rows become images by x.reshape({-1, 1, height, width}), those of "
                     "load_mnist() by load_mnist().images()."),
      type_error("Convolution2D", {{2, 3, 5, 6}, {4, 3, 3}},
                 "Expect: W.ndim == 4\nActual: 3 != 4\nInputs: x float64 (2, 3, 5, 6), W float64 "
                 "(4, 3, 3)\nThe filters W are expected as (out, in / groups, height, width)."),
      type_error("Convolution2D", call({2, 6, 5, 6}, {3, 3, 3, 2}, {.groups = 2}),
                 "Expect: W.shape[0] % groups == 0\nActual: 1 != 0\nInputs: x float64 (2, 6, 5, "
                 "6), W float64 (3, 3, 3, 2)\nW has 3 filters, which cannot be divided into 2 "
                 "groups: use a multiple of 2 filters, or other groups."),
      type_error(
          "Convolution2D", {{2, 3, 5, 6}, {4, 3, 3, 2}, {3}},
          "Expect: b.shape[0] == W.shape[0]\nActual: 3 != 4\nInputs: x float64 (2, 3, 5, 6), W "
          "float64 (4, 3, 3, 2), b float64 (3,)\nThe bias has one number for each of the 4 outputs "
          "of W, shape (4,); b has shape (3,)."),
      error<ShapeError>({{2, 3, 2, 2}, {4, 3, 3, 2}},
                        "Convolution2D: a window of (3, 2) with dilation (1, 1) does not fit into "
                        "an image of (2, 2) with pad (0, 0); use a larger image, more padding or a "
                        "smaller window"),
      error<ValueError>(call({2, 3, 5, 6}, {4, 3, 3, 2}, {.stride = 0}),
                        "Convolution2D: expected a stride of at least 1, got (0, 0)"),
  };
  return r;
}

FunctionRecord deconvolution_record(const char* variant, Shapes shapes,
                                    F::DeconvolutionOptions options) {
  FunctionRecord r;
  r.function = "deconvolution_2d";
  r.variant = variant;
  r.shapes = {shapes};
  r.forward_launches = int(shapes.size()) - 1;  // and the bias
  r.backward_launches = int(shapes.size());     // a gradient each
  shapes[0][0] = 0;
  r.shapes.push_back(shapes);
  r.call = [=](const Variables& v) {
    return Variables{v.size() == 3 ? F::deconvolution_2d(v[0], v[1], v[2], options)
                                   : F::deconvolution_2d(v[0], v[1], options)};
  };
  return r;
}

FunctionRecord deconvolution_errors() {
  FunctionRecord r = deconvolution_record("errors", {{2, 3, 4, 3}, {3, 4, 3, 2}}, {});
  const auto call = [](Shape x, Shape W, F::DeconvolutionOptions options = {}) {
    return [=](const Draw& draw) { F::deconvolution_2d(draw(x), draw(W), options); };
  };
  r.errors = {
      type_error("Deconvolution2D", {{2, 4, 5, 6}, {3, 4, 3, 2}},
                 "Expect: x.shape[1] == W.shape[0]\nActual: 4 != 3\nInputs: x float64 (2, 4, 5, "
                 "6), W float64 (3, 4, 3, 2)\nThe layer takes (n, 3, height, width), n images of 3 "
                 "channels; the input has shape (2, 4, 5, 6)."),
      type_error("Deconvolution2D", {{3, 5, 6}, {3, 4, 3, 2}},
                 "Expect: x.ndim == 4\nActual: 3 != 4\nInputs: x float64 (3, 5, 6), W float64 (3, "
                 "4, 3, 2)\nThe layer takes (n, 3, height, width), n images of 3 channels; the "
                 "input has shape (3, 5, 6): one image is x.expand_dims(0)."),
      type_error("Deconvolution2D", {{2, 3, 5, 6}, {3, 4, 3}},
                 "Expect: W.ndim == 4\nActual: 3 != 4\nInputs: x float64 (2, 3, 5, 6), W float64 "
                 "(3, 4, 3)\nThe filters W are expected as (in, out / groups, height, width)."),
      type_error("Deconvolution2D", call({2, 3, 5, 6}, {3, 4, 3, 2}, {.groups = 2}),
                 "Expect: W.shape[0] % groups == 0\nActual: 1 != 0\nInputs: x float64 (2, 3, 5, "
                 "6), W float64 (3, 4, 3, 2)\nW takes 3 channels, which cannot be divided into 2 "
                 "groups: use a multiple of 2 channels, or other groups."),
      type_error(
          "Deconvolution2D",
          [](const Draw& draw) {
            F::deconvolution_2d(draw({2, 4, 5, 6}), draw({4, 3, 3, 2}), draw({3}), {.groups = 2});
          },
          "Expect: b.shape[0] == W.shape[1] * groups\nActual: 3 != 6\nInputs: x float64 (2, 4, 5, "
          "6), W float64 (4, 3, 3, 2), b float64 (3,)\nThe bias has one number for each of the 6 "
          "channels of the result; b has shape (3,)."),
      error<ShapeError>(call({2, 3, 2, 4}, {3, 4, 3, 2}, {.pad = 2}),
                        "Deconvolution2D: the height 2 of x, with a window of 3, stride 1, pad 2 "
                        "and dilation 1, gives no height of at least 1; use less padding or a "
                        "larger x"),
      error<ShapeError>(call({2, 3, 4, 4}, {3, 4, 3, 2}, {.outsize = F::Extent2D(7, 5)}),
                        "Deconvolution2D: a height of 7 was asked for, but a convolution makes 5 "
                        "of it, and x has 4; without outsize the result has 6"),
      error<ValueError>(call({2, 3, 5, 6}, {3, 4, 3, 2}, {.stride = 0}),
                        "Deconvolution2D: expected a stride of at least 1, got (0, 0)"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(convolution) {
  return {
      nd_record("sequences", {{2, 3, 7}, {4, 3, 3}, {4}}, {2}, {1}, {1}, 1),
      nd_record("sequences in groups", {{2, 4, 6}, {6, 2, 2}}, {1}, {2}, {3}, 2),
      nd_record("images", {{2, 2, 5, 4}, {3, 2, 3, 3}, {3}}, {2, 1}, {1, 2}, {1, 1}, 1),
      nd_record("volumes", {{2, 2, 4, 3, 4}, {3, 2, 2, 3, 2}, {3}}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1},
                1),
      nd_record("volumes in groups", {{1, 4, 6, 3, 4}, {4, 2, 2, 2, 2}}, {2, 1, 3}, {2, 1, 0},
                {3, 1, 1}, 2),
      nd_errors(),
      convolution_record("bias", {{2, 3, 4, 3}, {4, 3, 3, 2}, {4}}, {}),
      convolution_errors(),
      convolution_record("one product", {{2, 3, 3, 4}, {4, 3, 1, 1}, {4}}, {}),
      convolution_record("stride and pad", {{2, 2, 5, 4}, {3, 2, 3, 3}},
                         {.stride = {2, 1}, .pad = {1, 2}}),
      window_record("one product, stride", {{2, 3, 4, 5}, {4, 3, 1, 1}, {4}}, {.stride = 2}),
      window_record("depthwise", {{2, 3, 4, 4}, {3, 1, 3, 3}, {3}}, {.pad = 1, .groups = 3}),
      window_record("rest left out", {{1, 1, 6, 8}, {1, 1, 3, 3}}, {.stride = 2}),
      window_record("rest covered", {{1, 1, 6, 8}, {1, 1, 3, 3}}, {.stride = 2, .cover_all = true}),
      window_record("window of the image", {{3, 2, 3, 3}, {5, 2, 3, 3}, {5}}, {}),
      window_record("window in the padding", {{1, 1, 2, 2}, {1, 1, 3, 3}}, {.stride = 4, .pad = 4}),
      convolution_record("groups and dilation", {{1, 4, 5, 4}, {2, 2, 2, 2}, {2}},
                         {.dilation = {2, 1}, .groups = 2}),
      deconvolution_record("", {{2, 3, 4, 3}, {3, 4, 3, 2}}, {}),
      deconvolution_record("bias", {{2, 3, 3, 4}, {3, 2, 2, 2}, {2}}, {.stride = 2}),
      deconvolution_record("one product", {{2, 3, 3, 4}, {3, 4, 1, 1}}, {}),
      deconvolution_record("stride, pad and size", {{2, 2, 3, 4}, {2, 3, 3, 3}},
                           {.stride = {2, 1}, .pad = {1, 2}, .outsize = F::Extent2D(6, 2)}),
      deconvolution_record("groups and dilation", {{1, 4, 3, 4}, {4, 3, 2, 2}, {6}},
                           {.dilation = {2, 1}, .groups = 2}),
      deconvolution_errors()};
}

}  // namespace catena
