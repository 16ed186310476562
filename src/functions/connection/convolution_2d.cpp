#include "catena/functions/connection/convolution_2d.h"

#include "catena/autograd/linear_map.h"
#include "catena/functions/array.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"
#include "functions/connection/convolution_products.h"

namespace catena::functions {
namespace {

constexpr const char* kConvolution2D = "Convolution2D";

// How an input x of another shape becomes (n, channels, height, width), or which layer takes it.
std::string image_hint(const Array& x, const Array& W, int64_t channels) {
  const Shape& s = x.shape();
  if (s.ndim() == 2)
    return message(": rows become images by x.reshape({-1, ", channels, ", height, width})",
                   channels == 1 ? ", those of load_mnist() by load_mnist().images()." : ".");
  if (s.ndim() == 3 && s[0] == channels) return ": one image is x.expand_dims(0).";
  if (s.ndim() == 3 && channels == 1) return ": images of one channel are x.expand_dims(1).";
  if (s.ndim() != 4) return ".";
  if (s[3] == channels) return ": images with their channels last are x.transpose({0, 3, 1, 2}).";
  return message(", for which the layer is Convolution2D(", s[1], ", ", W.shape()[0], ", ...).");
}

std::string convolution_image_advice(const Array& x, const Array& W, int64_t groups) {
  if (x.dtype() != W.dtype()) return layer_dtype_advice(x, W);
  const int64_t channels = W.shape()[1] * groups;
  return message("The layer takes (n, ", channels, ", height, width), n images of ", channels,
                 " channels; the input has shape ", x.shape(), image_hint(x, W, channels));
}

std::string convolution_filter_advice(const Array& W, int64_t groups) {
  if (W.ndim() != 4) return "The filters W are expected as (out, in / groups, height, width).";
  return message("W has ", W.shape()[0], " filters, which cannot be divided into ", groups,
                 " groups: use a multiple of ", groups, " filters, or other groups.");
}

void check_convolution(const FunctionCall& call, int64_t groups) {
  const Array &x = call[0].data(), &W = call[1].data();
  const Array* b = call.optional(2) ? &call[2].data() : nullptr;
  const TypeOf in(x, "x"), w(W, "W"), bias(b, "b");
  const Checks all(call.named(), in, w, bias);
  all.require_float(w);
  const auto filters = all.advised([&] { return convolution_filter_advice(W, groups); });
  filters.require(w.ndim() == 4);
  all.advised([&] { return convolution_image_advice(x, W, groups); })
      .require(in.dtype() == W.dtype(), in.ndim() == 4,
               in.shape(1) ==
                   shown(w.shape(1) * groups, groups == 1 ? "W.shape[1]" : "W.shape[1] * groups"));
  filters.require(shown(w.shape(0) % groups, "W.shape[0] % groups") == 0);
  if (b == nullptr) return;
  all.advised([&] { return bias_advice(*b, W); })
      .require(bias.dtype() == w.dtype(), bias.ndim() == 1, bias.shape(0) == w.shape(0));
}

ConvolutionPlan convolution_plan(const FunctionCall& call, const ConvolutionOptions& o) {
  const Array &x = call[0].data(), &W = call[1].data();
  const Shape &w = W.shape(), &image = x.shape();
  const ImageWindow over(window_of(w, o), image, o.cover_all);
  over.require_position(call, image, true);
  const BatchLayout layout = BatchLayout::of(x, 1);
  const bool filters_last = layout.last && BatchLayout::of(W, 1).last;
  return {{over.without_idle_distances(),
           image,
           {image[0], w[0], over.positions[0], over.positions[1]},
           layout},
          int(o.groups),
          w,
          {1, filters_last}};
}

// Of x, W and, if there is one, b.
Variable apply_convolution(FunctionCall& call, const ConvolutionOptions& options) {
  check_moves(kConvolution2D, options);
  check_convolution(call, options.groups);
  call.require_one_device();
  return convolve(convolution_plan(call, options), call);
}

// The layer -----------------------------------------------------------------------------------

struct ChannelsLast {
  static constexpr const char* kName = "ChannelsLast";
  Array forward(const Array& x) const { return channels_last(x); }
  Array adjoint(const Array& gy) const { return gy; }
};

}  // namespace

Variable convolution_2d(const VariableOperand& x, const VariableOperand& W,
                        const ConvolutionOptions& options) {
  FunctionCall call(kConvolution2D, Autocast::kLow, x, W);
  return apply_convolution(call, options);
}

Variable convolution_2d(const VariableOperand& x, const VariableOperand& W,
                        const VariableOperand& b, const ConvolutionOptions& options) {
  FunctionCall call(kConvolution2D, Autocast::kLow, x, W, b);
  return apply_convolution(call, options);
}

Variable channels_last(const Variable& images) {
  FunctionCall call(ChannelsLast::kName, Autocast::kNone, images);
  const TypeOf in(images.data(), "images");
  Checks(call.named(), in)
      .advised("Expected are images (n, channels, height, width).")
      .require(in.ndim() == 4);
  return linear_map(call, ChannelsLast());
}

void channels_last(Parameterized& model) {
  const BatchLayout last{1, true};
  for (const Parameter& p : model.parameters()) {
    if (p.data().ndim() != 4 || last.fits(p.data())) continue;
    const bool has_gradient = !p.state()->is_stale();
    const Array gradient = has_gradient ? last.laid_out(p.grad()) : Array();
    p.rebind(last.laid_out(p.data()), gradient);
  }
}

Array channels_last(const Array& images) {
  CATENA_CHECK(ShapeError, images.ndim() == 4,
               "channels_last: expected (n, channels, height, width), got shape ", images.shape());
  return BatchLayout{1, true}.laid_out(images);
}

Convolution2D::Convolution2D(int64_t in_channels, int64_t out_channels, Extent2D ksize,
                             const Convolution2DOptions& options)
    : W(initial_filters(kConvolution2D, in_channels, out_channels, ksize, options, false)),
      options_{options.stride, options.pad, options.dilation, options.groups, options.cover_all} {
  check_moves(kConvolution2D, options_);
  b = initial_bias(kConvolution2D, W.data(), out_channels, options.nobias, options.initial_bias,
                   options.bias);
}

Variable Convolution2D::operator()(const VariableOperand& x) const {
  FunctionCall call(kConvolution2D, Autocast::kLow, x, weights_of(kConvolution2D, W), bias_of(b));
  return apply_convolution(call, options_);
}

void Convolution2D::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  visitor(prefix + "W", W);
  if (b.defined()) visitor(prefix + "b", b);
}

}  // namespace catena::functions
