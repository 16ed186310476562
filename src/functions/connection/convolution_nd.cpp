#include "catena/functions/connection/convolution_nd.h"

#include <cmath>

#include "catena/array/creation.h"
#include "catena/functions/array/concat.h"
#include "catena/functions/array/get_item.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/transpose.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/kernels/window.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"

namespace catena::functions {
namespace {

constexpr const char* kConvolutionND = "ConvolutionND";

// The numbers of all axes; ValueError for another count and for numbers below `least`.
std::vector<int64_t> of_axes(const char* name, const ExtentND& e, int axes, int64_t least) {
  std::vector<int64_t> numbers = e.numbers;
  if (numbers.size() == 1) numbers.assign(size_t(axes), numbers[0]);
  CATENA_CHECK(ValueError, int(numbers.size()) == axes, kConvolutionND, ": ", name, " has ",
               numbers.size(), " numbers for ", axes, " axes; give one for all, or one for each");
  for (const int64_t n : numbers)
    CATENA_CHECK(ValueError, n >= least, kConvolutionND, ": expected a ", name, " of at least ",
                 least, ", got ", n);
  return numbers;
}

struct Moves {
  std::vector<int64_t> stride, pad, dilation;
  int64_t groups;
  bool cover_all;
};

Moves moves_of(const ConvolutionOptionsND& o, int axes) {
  CATENA_CHECK(ValueError, o.groups >= 1, kConvolutionND, ": expected at least 1 group, got ",
               o.groups);
  return {of_axes("stride", o.stride, axes, 1), of_axes("pad", o.pad, axes, 0),
          of_axes("dilation", o.dilation, axes, 1), o.groups, o.cover_all};
}

// Of the axes `height` and `width`; -1 is an axis of one element that was added.
ConvolutionOptions image_options(const Moves& m, int height, int width) {
  const auto pick = [](const std::vector<int64_t>& e, int axis, int64_t otherwise) {
    return axis < 0 ? otherwise : e[size_t(axis)];
  };
  return {.stride = {pick(m.stride, height, 1), pick(m.stride, width, 1)},
          .pad = {pick(m.pad, height, 0), pick(m.pad, width, 0)},
          .dilation = {pick(m.dilation, height, 1), pick(m.dilation, width, 1)},
          .groups = m.groups,
          .cover_all = m.cover_all};
}

Variable convolved(const Variable& x, const Variable& W, const Variable* b,
                   const ConvolutionOptions& o) {
  return b ? convolution_2d(x, W, *b, o) : convolution_2d(x, W, o);
}

// A row is an image of height 1.
Variable of_sequences(const Variable& x, const Variable& W, const Variable* b, const Moves& m) {
  return squeeze(convolved(expand_dims(x, 2), expand_dims(W, 2), b, image_options(m, -1, 0)), 2);
}

// x with zeros before and behind axis 2, `before` and `behind` of them.
Variable padded(const Variable& x, int64_t before, int64_t behind) {
  const auto zeros_of = [&](int64_t n) {
    Shape shape = x.shape();
    shape[2] = n;
    return Variable::constant(zeros(shape, {x.dtype(), x.device()}));
  };
  Variables parts;
  if (before > 0) parts.push_back(zeros_of(before));
  parts.push_back(x);
  if (behind > 0) parts.push_back(zeros_of(behind));
  return parts.size() == 1 ? x : concat(parts, 2);
}

// (n, c, D, H, W) as images (n * depth, c * taps, H, W) for `depth` positions along D: channel c *
// taps + k of one is channel c of the plane that its position sees at k.
Variable planes_as_channels(const Variable& x, const Moves& m, int64_t taps, int64_t depth) {
  const int64_t stride = m.stride[0], dilation = m.dilation[0], size = x.shape()[2];
  const int64_t end = (depth - 1) * stride + (taps - 1) * dilation + 1 - m.pad[0];
  const Variable in = padded(x, m.pad[0], std::max<int64_t>(end - size, 0));
  Variables planes;
  for (int64_t k = 0; k < taps; ++k) {
    const int64_t first = k * dilation;
    const Variable plane =
        get_item(in, {Slice(), Slice(), Slice(first, first + (depth - 1) * stride + 1, stride)});
    planes.push_back(expand_dims(transpose(plane, {0, 2, 1, 3, 4}), 3));
  }
  const Shape& s = x.shape();
  return reshape(concat(planes, 3), {s[0] * depth, s[1] * taps, s[3], s[4]});
}

Variable of_volumes(const Variable& x, const Variable& W, const Variable* b, const Moves& m) {
  const Shape &w = W.shape(), &s = x.shape();
  const Window along{{w[2]}, {m.stride[0]}, {m.pad[0]}, {m.dilation[0]}, 1};
  const int64_t depth = along.positions(0, s[2], m.cover_all);
  const Variable images = planes_as_channels(x, m, w[2], depth);
  const Variable filters = reshape(W, {w[0], w[1] * w[2], w[3], w[4]});
  const Variable y = convolved(images, filters, b, image_options(m, 1, 2));
  const Shape& r = y.shape();
  return transpose(reshape(y, {s[0], depth, r[1], r[2], r[3]}), {0, 2, 1, 3, 4});
}

// ShapeError unless the window has a position along each axis.
void require_positions(const Shape& x, const Shape& W, const Moves& m) {
  for (size_t k = 0; k + 2 < W.size(); ++k) {
    const int64_t size = x[k + 2], taps = W[k + 2];
    const Window along{{taps}, {m.stride[k]}, {m.pad[k]}, {m.dilation[k]}, 1};
    CATENA_CHECK(ShapeError, taps > 0 && along.positions(0, size, m.cover_all) > 0, kConvolutionND,
                 ": a window of ", taps, " with dilation ", m.dilation[k],
                 " does not fit into the ", size, " elements of axis ", k + 2, " of x with pad ",
                 m.pad[k], "; use a larger x, more padding or a smaller window");
  }
}

std::string advice(const Array& x, const Array& W, int64_t groups) {
  if (W.ndim() < 3 || W.ndim() > 5)
    return "The filters W are expected as (out, in / groups, k1, ...) for one, two or three axes.";
  if (x.dtype() != W.dtype()) return layer_dtype_advice(x, W);
  return message("W of ", W.ndim() - 2, " axes takes (n, ", W.shape()[1] * groups,
                 ", ...) with as many behind the channels; the input has shape ", x.shape(), ".");
}

// What convolution_2d would find as well, of shapes that the caller has not given.
void check_filters_and_bias(const FunctionCall& call, int64_t groups) {
  const Array &x = call[0].data(), &W = call[1].data();
  const Array* const b = call.optional(2) ? &call[2].data() : nullptr;
  const TypeOf in(x, "x"), w(W, "W"), bias(b, "b");
  const Checks checks(call.named(), in, w, bias);
  checks.require(shown(w.shape(0) % groups, "W.shape[0] % groups") == 0);
  if (b == nullptr) return;
  checks.advised([&] { return bias_advice(*b, W); })
      .require(bias.dtype() == w.dtype(), bias.ndim() == 1, bias.shape(0) == w.shape(0));
}

Variable apply_convolution_nd(const Variable& given_x, const Variable& given_W,
                              const Variable* given_b, const ConvolutionOptionsND& options) {
  FunctionCall call(kConvolutionND, Autocast::kLow, given_x, given_W, given_b);
  const Variable &x = call[0], &W = call[1];
  const Variable* const b = given_b ? &call[2] : nullptr;
  const TypeOf in(x.data(), "x"), w(W.data(), "W");
  const Checks all(call.named(), in, w);
  all.require_float(w);
  const auto checks = all.advised([&] { return advice(x.data(), W.data(), options.groups); });
  checks.require(w.ndim() >= 3, w.ndim() <= 5);
  const int axes = W.ndim() - 2;
  const Moves moves = moves_of(options, axes);
  checks.require(in.dtype() == W.dtype(), in.ndim() == w.ndim(),
                 in.shape(1) == shown(w.shape(1) * options.groups,
                                      options.groups == 1 ? "W.shape[1]" : "W.shape[1] * groups"));
  check_filters_and_bias(call, options.groups);
  require_positions(x.shape(), W.shape(), moves);
  if (axes == 1) return of_sequences(x, W, b, moves);
  if (axes == 3) return of_volumes(x, W, b, moves);
  return convolved(x, W, b, image_options(moves, 0, 1));
}

Shape filter_shape(int ndim, int64_t in, int64_t out, const ExtentND& ksize, int64_t groups) {
  CATENA_CHECK(ValueError, ndim >= 1 && ndim <= 3, kConvolutionND, ": expected 1 to 3 axes, got ",
               ndim);
  CATENA_CHECK(ValueError, in > 0 && out > 0, kConvolutionND,
               ": expected channels of at least 1, got ", in, " in and ", out, " out");
  CATENA_CHECK(ValueError, groups >= 1 && in % groups == 0 && out % groups == 0, kConvolutionND,
               ": ", in, " channels in and ", out, " out cannot be divided into ", groups,
               " groups");
  Shape shape{out, in / groups};
  for (const int64_t k : of_axes("window", ksize, ndim, 1)) shape.push_back(k);
  return shape;
}

Array initial_filters_nd(const Shape& shape, const ConvolutionNDOptions& o) {
  double fan_in = 1;
  for (size_t i = 1; i < shape.size(); ++i) fan_in *= double(shape[i]);
  return initial_weight(kConvolutionND, shape, "(out, in / groups, k1, ...)", o.initialW, o.dtype,
                        o.wscale * std::sqrt(1 / fan_in));
}

}  // namespace

Variable convolution_nd(const VariableOperand& x, const VariableOperand& W,
                        const ConvolutionOptionsND& options) {
  return apply_convolution_nd(x.variable(kConvolutionND), W.variable(kConvolutionND), nullptr,
                              options);
}

Variable convolution_nd(const VariableOperand& x, const VariableOperand& W,
                        const VariableOperand& b, const ConvolutionOptionsND& options) {
  return apply_convolution_nd(x.variable(kConvolutionND), W.variable(kConvolutionND),
                              &b.variable(kConvolutionND), options);
}

ConvolutionND::ConvolutionND(int ndim, int64_t in_channels, int64_t out_channels,
                             const ExtentND& ksize, const ConvolutionNDOptions& options)
    : W(initial_filters_nd(filter_shape(ndim, in_channels, out_channels, ksize, options.groups),
                           options)),
      options_{options.stride, options.pad, options.dilation, options.groups, options.cover_all} {
  moves_of(options_, ndim);
  b = initial_bias(kConvolutionND, W.data(), out_channels, options.nobias, options.initial_bias,
                   options.bias);
}

Variable ConvolutionND::operator()(const VariableOperand& x) const {
  const Variable& weights = weights_of(kConvolutionND, W);
  return apply_convolution_nd(x.variable(kConvolutionND), weights, bias_of(b), options_);
}

void ConvolutionND::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  visitor(prefix + "W", W);
  if (b.defined()) visitor(prefix + "b", b);
}

}  // namespace catena::functions
