#include "catena/functions/connection/deconvolution_2d.h"

#include "catena/array/math.h"
#include "catena/autograd/kept_results.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"
#include "functions/connection/convolution_products.h"

namespace catena::functions {
namespace {

constexpr const char* kDeconvolution2D = "Deconvolution2D";

void check_options(const DeconvolutionOptions& o) {
  check_moves(kDeconvolution2D, o);
  if (o.outsize) check_least(kDeconvolution2D, "outsize", *o.outsize, 1);
}

std::string deconvolution_image_advice(const Array& x, const Array& W) {
  if (x.dtype() != W.dtype()) return layer_dtype_advice(x, W);
  const int64_t channels = W.shape()[0];
  return message(
      "The layer takes (n, ", channels, ", height, width), n images of ", channels,
      " channels; the input has shape ", x.shape(),
      x.ndim() == 3 && x.shape()[0] == channels ? ": one image is x.expand_dims(0)." : ".");
}

std::string deconvolution_filter_advice(const Array& W, int64_t groups) {
  if (W.ndim() != 4) return "The filters W are expected as (in, out / groups, height, width).";
  return message("W takes ", W.shape()[0], " channels, which cannot be divided into ", groups,
                 " groups: use a multiple of ", groups, " channels, or other groups.");
}

void check_deconvolution(const FunctionCall& call, int64_t groups) {
  const Array &x = call[0].data(), &W = call[1].data();
  const Array* b = call.optional(2) ? &call[2].data() : nullptr;
  const TypeOf in(x, "x"), w(W, "W"), bias(b, "b");
  const Checks all(call.named(), in, w, bias);
  all.require_float(w);
  const auto filters = all.advised([&] { return deconvolution_filter_advice(W, groups); });
  filters.require(w.ndim() == 4);
  all.advised([&] { return deconvolution_image_advice(x, W); })
      .require(in.dtype() == W.dtype(), in.ndim() == 4, in.shape(1) == w.shape(0));
  filters.require(shown(w.shape(0) % groups, "W.shape[0] % groups") == 0);
  if (b == nullptr) return;
  const auto outputs =
      shown(w.shape(1) * groups, groups == 1 ? "W.shape[1]" : "W.shape[1] * groups");
  all.advised([&] {
       return message("The bias has one number for each of the ", W.shape()[1] * groups,
                      " channels of the result; b has shape ", b->shape(), ".");
     })
      .require(bias.dtype() == w.dtype(), bias.ndim() == 1, bias.shape(0) == outputs);
}

// The smallest size along an axis of which a convolution has `size` positions; below 1 where there
// is none, and for sizes beyond any image.
int64_t smallest_size(const Window& w, int axis, int64_t size) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const int64_t range = w.range(axis);
  if (range < 1 || range > kMost || w.pad[axis] > kMost || (size > 1 && w.stride[axis] > kMost) ||
      (size > 1 && size - 1 > kMost / w.stride[axis]))
    return 0;
  return (size > 1 ? w.stride[axis] * (size - 1) : 0) + range - 2 * w.pad[axis];
}

// The size of the result along an axis; ShapeError unless a convolution makes that of x of it.
int64_t result_size(const FunctionCall& call, const Window& w, int axis, int64_t size,
                    const std::optional<Extent2D>& outsize) {
  const char* name = axis == 0 ? "height" : "width";
  const int64_t smallest = size < 1 ? 0 : smallest_size(w, axis, size);
  if (!outsize) {
    CATENA_CHECK(ShapeError, smallest >= 1, call.label(), ": the ", name, " ", size,
                 " of x, with a window of ", w.kernel[axis], ", stride ", w.stride[axis], ", pad ",
                 w.pad[axis], " and dilation ", w.dilation[axis], ", gives no ", name,
                 " of at least 1; use less padding or a larger x");
    return smallest;
  }
  const int64_t asked = axis == 0 ? outsize->height : outsize->width;
  CATENA_CHECK(ShapeError,
               size >= 1 && (w.positions(axis, asked) == size ||
                             w.positions(axis, asked, /*cover_all=*/true) == size),
               call.label(), ": a ", name, " of ", asked,
               " was asked for, but a convolution makes ", w.positions(axis, asked),
               " of it, and x has ", size, "; without outsize the result has ", smallest);
  return asked;
}

// That of the convolution whose transpose this is: its y is our x.
ConvolutionPlan deconvolution_plan(const FunctionCall& call, const DeconvolutionOptions& o) {
  const Array &x = call[0].data(), &W = call[1].data();
  const Shape &w = W.shape(), &from = x.shape();
  CATENA_CHECK(ShapeError, w[2] > 0 && w[3] > 0, call.label(), ": a window of (", w[2], ", ", w[3],
               ") has no elements");
  const Window window = window_of(w, o);
  const Shape result{from[0], w[1] * o.groups, result_size(call, window, 0, from[2], o.outsize),
                     result_size(call, window, 1, from[3], o.outsize)};
  ImageWindow over(window, result, false);
  over.positions[0] = from[2], over.positions[1] = from[3];
  const BatchLayout layout = BatchLayout::of(x, 1);
  const bool filters_last = layout.last && BatchLayout::of(W, 1).last;
  return {
      {over.without_idle_distances(), result, from, layout}, int(o.groups), w, {1, filters_last}};
}

// Of x, W and, if there is one, b.
Variable apply_deconvolution(FunctionCall& call, const DeconvolutionOptions& options) {
  check_options(options);
  check_deconvolution(call, options.groups);
  call.require_one_device();
  const ConvolutionPlan plan = deconvolution_plan(call, options);
  const Variable &x = call[0], &W = call[1], *b = call.optional(2);
  const Array y = make_once(call, Keep::kProducts, [&] {
    const Array product = plan.layout.uninitialized(plan.x_shape, x.data());
    write_grad_x(plan, x.data(), W.data(), product, false);
    if (b != nullptr && product.size() > 0) add(product, b->data().reshape({1, -1, 1, 1}), product);
    call.note_work([&] { return x.size() * W.shape()[1] * W.shape()[2] * W.shape()[3]; });
    return product;
  });
  return record_convolution<true>(call, plan, y);
}

}  // namespace

Variable deconvolution_2d(const VariableOperand& x, const VariableOperand& W,
                          const DeconvolutionOptions& options) {
  FunctionCall call(kDeconvolution2D, Autocast::kLow, x, W);
  return apply_deconvolution(call, options);
}

Variable deconvolution_2d(const VariableOperand& x, const VariableOperand& W,
                          const VariableOperand& b, const DeconvolutionOptions& options) {
  FunctionCall call(kDeconvolution2D, Autocast::kLow, x, W, b);
  return apply_deconvolution(call, options);
}

Deconvolution2D::Deconvolution2D(int64_t in_channels, int64_t out_channels, Extent2D ksize,
                                 const Deconvolution2DOptions& options)
    : W(initial_filters(kDeconvolution2D, in_channels, out_channels, ksize, options, true)),
      options_{options.stride, options.pad, options.dilation, options.groups, options.outsize} {
  check_options(options_);
  b = initial_bias(kDeconvolution2D, W.data(), out_channels, options.nobias, options.initial_bias,
                   options.bias);
}

Variable Deconvolution2D::operator()(const VariableOperand& x) const {
  FunctionCall call(kDeconvolution2D, Autocast::kLow, x, weights_of(kDeconvolution2D, W),
                    bias_of(b));
  return apply_deconvolution(call, options_);
}

void Deconvolution2D::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  visitor(prefix + "W", W);
  if (b.defined()) visitor(prefix + "b", b);
}

}  // namespace catena::functions
