#include "catena/functions/connection/convolution_2d.h"

#include <cmath>

#include "catena/array/reduction.h"
#include "catena/autograd/linear_map.h"
#include "catena/functions/array.h"
#include "catena/kernels/convolution.h"
#include "catena/kernels/reduce.h"
#include "functions/common/advice.h"
#include "functions/common/layout.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"

namespace catena::functions {
namespace {

constexpr const char* kName = "Convolution2D";

// What a convolution of given operands is, decided once for its forward and backward passes.
struct Plan {
  Window window;
  int groups;
  Shape x_shape, W_shape, y_shape;
  BatchLayout layout;   // of x, y and their gradients
  BatchLayout filters;  // of W and its gradient: channels last only where the images have them so
};

void check_options(const ConvolutionOptions& o) {
  const auto check = [&](const char* name, const Extent2D& e, int64_t least) {
    CATENA_CHECK(ValueError, e.height >= least && e.width >= least, kName, ": expected a ", name,
                 " of at least ", least, ", got (", e.height, ", ", e.width, ")");
  };
  check("stride", o.stride, 1);
  check("pad", o.pad, 0);
  check("dilation", o.dilation, 1);
  CATENA_CHECK(ValueError, o.groups >= 1, kName, ": expected at least 1 group, got ", o.groups);
}

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

std::string image_advice(const Array& x, const Array& W, int64_t groups) {
  if (x.dtype() != W.dtype()) return layer_dtype_advice(x, W);
  const int64_t channels = W.shape()[1] * groups;
  return message("The layer takes (n, ", channels, ", height, width), n images of ", channels,
                 " channels; the input has shape ", x.shape(), image_hint(x, W, channels));
}

std::string filter_advice(const Array& W, int64_t groups) {
  if (W.ndim() != 4) return "The filters W are expected as (out, in / groups, height, width).";
  return message("W has ", W.shape()[0], " filters, which cannot be divided into ", groups,
                 " groups: use a multiple of ", groups, " filters, or other groups.");
}

void check_types(const FunctionCall& call, int64_t groups) {
  const Array &x = call[0].data(), &W = call[1].data();
  const Array* b = call.optional(2) ? &call[2].data() : nullptr;
  const TypeOf in(x, "x"), w(W, "W"), bias(b, "b");
  const Checks all(call.named(), in, w, bias);
  all.require_float(w);
  const auto filters = all.advised([&] { return filter_advice(W, groups); });
  filters.require(w.ndim() == 4);
  all.advised([&] { return image_advice(x, W, groups); })
      .require(in.dtype() == W.dtype(), in.ndim() == 4,
               in.shape(1) ==
                   shown(w.shape(1) * groups, groups == 1 ? "W.shape[1]" : "W.shape[1] * groups"));
  filters.require(shown(w.shape(0) % groups, "W.shape[0] % groups") == 0);
  if (b == nullptr) return;
  all.advised([&] { return bias_advice(*b, W); })
      .require(bias.dtype() == w.dtype(), bias.ndim() == 1, bias.shape(0) == w.shape(0));
}

Window window_of(const Shape& filters, const ConvolutionOptions& o) {
  return {{filters[2], filters[3]},
          {o.stride.height, o.stride.width},
          {o.pad.height, o.pad.width},
          {o.dilation.height, o.dilation.width}};
}

// The same window with numbers that kernels can add up: of one position the stride does not matter,
// nor the dilation of one element.
Window without_idle_distances(Window w, const int64_t (&positions)[2]) {
  for (int k = 0; k < w.axes; ++k) {
    if (w.kernel[k] == 1) w.dilation[k] = 1;
    if (positions[k] == 1) w.stride[k] = 1;
  }
  return w;
}

Plan plan_of(const FunctionCall& call, const ConvolutionOptions& o) {
  const Array &x = call[0].data(), &W = call[1].data();
  const Shape &w = W.shape(), &image = x.shape();
  const Window window = window_of(w, o);
  const int64_t oh = window.positions(0, image[2], o.cover_all),
                ow = window.positions(1, image[3], o.cover_all);
  CATENA_CHECK(ShapeError, w[2] > 0 && w[3] > 0 && oh > 0 && ow > 0, call.label(),
               ": a window of (", w[2], ", ", w[3], ") with dilation (", o.dilation.height, ", ",
               o.dilation.width, ") does not fit into an image of (", image[2], ", ", image[3],
               ") with pad (", o.pad.height, ", ", o.pad.width,
               "); use a larger image, more padding or a smaller window");
  const BatchLayout layout = BatchLayout::of(x, 1);
  const bool filters_last = layout.last && BatchLayout::of(W, 1).last;
  return {without_idle_distances(window, {oh, ow}),
          int(o.groups),
          image,
          w,
          {image[0], w[0], oh, ow},
          layout,
          {1, filters_last}};
}

// The three products of a convolution on arrays ------------------------------------------------

Array forward(const Plan& p, const Array& x, const Array& W, const Array* b) {
  const Array y = p.layout.uninitialized(p.y_shape, x);
  if (y.size() == 0) return y;
  if (p.W_shape[1] == 0) {
    y.fill(0);
    return b ? y + b->reshape({1, b->size(), 1, 1}) : y;
  }
  const Array in = p.layout.laid_out(x), weight = p.filters.laid_out(W);
  const Array bias = b ? b->contiguous() : Array();
  kernels::convolution(x.device(), {&in, &weight, b ? &bias : nullptr, &y, p.window, p.groups});
  return y;
}

void write_grad_x(const Plan& p, const Array& gy, const Array& W, const Array& gx,
                  bool accumulate) {
  if (gx.size() == 0) return;
  if (gy.size() == 0) {
    if (!accumulate) gx.fill(0);
    return;
  }
  const Array g = p.layout.laid_out(gy), weight = p.filters.laid_out(W);
  kernels::convolution_grad_x(gy.device(), {&g, &weight, &gx, p.window, p.groups, accumulate});
}

void write_grad_w(const Plan& p, const Array& x, const Array& gy, const Array& gW,
                  bool accumulate) {
  if (gW.size() == 0) return;
  if (gy.size() == 0) {
    if (!accumulate) gW.fill(0);
    return;
  }
  const Array in = p.layout.laid_out(x), g = p.layout.laid_out(gy);
  kernels::convolution_grad_w(gy.device(), {&in, &g, &gW, p.window, p.groups, accumulate});
}

// The same on variables: each is the gradient of the others, so that all can be differentiated any
// number of times ---------------------------------------------------------------------------------

Variable convolve(const Plan& plan, FunctionCall& call);
Variable convolve(const Plan& plan, const Variable& x, const Variable& W) {
  FunctionCall call(kName, Autocast::kNone, x, W);
  return convolve(plan, call);
}
Variable grad_x_of(const Plan& plan, const Variable& gy, const Variable& W);
Variable grad_w_of(const Plan& plan, const Variable& x, const Variable& gy);

class ConvolutionNode final : public FunctionNode {
 public:
  ConvolutionNode(const Plan& plan, bool bias) : plan_(plan), bias_(bias) {}
  std::string label() const override { return "Convolution2D"; }

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (context.create_graph()) return backward_recorded(context, gy);
    const Array g = plan_.layout.laid_out(gy.data());
    if (context.needs(0)) give_x(context, g);
    if (context.needs(1)) give_w(context, g);
    if (bias_ && context.needs(2)) give_b(context, g);
  }

 private:
  void backward_recorded(BackwardContext& context, const Variable& gy) const {
    if (context.needs(0)) context.set_grad(0, grad_x_of(plan_, gy, context.input(1)));
    if (context.needs(1)) context.set_grad(1, grad_w_of(plan_, context.input(0), gy));
    if (bias_ && context.needs(2)) context.set_grad(2, sum(gy, {0, 2, 3}));
  }
  void give_x(BackwardContext& context, const Array& g) const {
    const auto to = context.destination(0);
    if (to && to.array->dtype() == g.dtype() && plan_.layout.fits(*to.array)) {
      write_grad_x(plan_, g, context.input(1).data(), *to.array, to.accumulate);
      return context.written(0);
    }
    const Array gx = plan_.layout.uninitialized(plan_.x_shape, g);
    write_grad_x(plan_, g, context.input(1).data(), gx, false);
    context.set_grad(0, Variable::constant(gx));
  }
  void give_w(BackwardContext& context, const Array& g) const {
    const auto to = context.destination(1);
    if (to && to.array->dtype() == g.dtype() && plan_.filters.fits(*to.array)) {
      write_grad_w(plan_, context.input(0).data(), g, *to.array, to.accumulate);
      return context.written(1);
    }
    const Array gW = plan_.filters.uninitialized(plan_.W_shape, g);
    write_grad_w(plan_, context.input(0).data(), g, gW, false);
    context.set_grad(1, Variable::constant(gW));
  }
  void give_b(BackwardContext& context, const Array& g) const {
    const auto to = context.destination(2);
    if (!to || to.array->dtype() != g.dtype() || !to.array->is_contiguous() || g.size() == 0)
      return context.set_grad(2, Variable::constant(catena::sum(g, {0, 2, 3})));
    const Array target = to.array->reshape({1, g.shape()[1], 1, 1});
    constexpr uint32_t kAxes = 1u << 0 | 1u << 2 | 1u << 3;
    kernels::reduce(g.device(), {ReduceOp::kSum, &g, &target, kAxes, 1.0, to.accumulate});
    context.written(2);
  }

  Plan plan_;
  bool bias_;
};

// gx = the gradient of x, of gy and W.
class ConvolutionGradXNode final : public FunctionNode {
 public:
  explicit ConvolutionGradXNode(const Plan& plan) : plan_(plan) {}
  std::string label() const override { return "Convolution2DGradX"; }

  void backward(BackwardContext& context) override {
    const Variable g = context.grad_output();
    if (!g.defined()) return;
    if (context.needs(0)) context.set_grad(0, convolve(plan_, g, context.input(1)));
    if (context.needs(1)) context.set_grad(1, grad_w_of(plan_, g, context.input(0)));
  }

 private:
  Plan plan_;
};

// gW = the gradient of W, of x and gy.
class ConvolutionGradWNode final : public FunctionNode {
 public:
  explicit ConvolutionGradWNode(const Plan& plan) : plan_(plan) {}
  std::string label() const override { return "Convolution2DGradW"; }

  void backward(BackwardContext& context) override {
    const Variable g = context.grad_output();
    if (!g.defined()) return;
    if (context.needs(0)) context.set_grad(0, grad_x_of(plan_, context.input(1), g));
    if (context.needs(1)) context.set_grad(1, convolve(plan_, context.input(0), g));
  }

 private:
  Plan plan_;
};

// Records a product of two variables that its gradients need both of.
template <class Node>
Variable record_product(FunctionCall& call, const Plan& plan, const Array& result) {
  return call.record(result, [&] {
    auto node = make_node<Node>(plan);
    if (call[1].requires_grad()) node->save_input(0, call[0]);
    if (call[0].requires_grad()) node->save_input(1, call[1]);
    return node;
  });
}

Variable grad_x_of(const Plan& plan, const Variable& gy, const Variable& W) {
  FunctionCall call("Convolution2DGradX", Autocast::kNone, gy, W);
  const Array gx = plan.layout.uninitialized(plan.x_shape, gy.data());
  write_grad_x(plan, gy.data(), W.data(), gx, false);
  return record_product<ConvolutionGradXNode>(call, plan, gx);
}

Variable grad_w_of(const Plan& plan, const Variable& x, const Variable& gy) {
  FunctionCall call("Convolution2DGradW", Autocast::kNone, x, gy);
  const Array gW = plan.filters.uninitialized(plan.W_shape, x.data());
  write_grad_w(plan, x.data(), gy.data(), gW, false);
  return record_product<ConvolutionGradWNode>(call, plan, gW);
}

Variable convolve(const Plan& plan, FunctionCall& call) {
  const Variable &x = call[0], &W = call[1], *b = call.optional(2);
  const Array y = forward(plan, x.data(), W.data(), b ? &b->data() : nullptr);
  return call.record(y, [&] {
    auto node = make_node<ConvolutionNode>(plan, b != nullptr);
    if (W.requires_grad()) node->save_input(0, x);
    if (x.requires_grad()) node->save_input(1, W);
    return node;
  });
}

// Of x, W and, if there is one, b.
Variable apply(FunctionCall& call, const ConvolutionOptions& options) {
  check_options(options);
  check_types(call, options.groups);
  call.require_one_device();
  return convolve(plan_of(call, options), call);
}

// The layer -----------------------------------------------------------------------------------

Array initial_filters(int64_t in, int64_t out, const Extent2D& ksize,
                      const Convolution2DOptions& o) {
  CATENA_CHECK(ValueError, in > 0 && out > 0 && ksize.height > 0 && ksize.width > 0,
               "Convolution2D: expected channels and window of at least 1, got ", in,
               " channels in, ", out, " out and a window of (", ksize.height, ", ", ksize.width,
               ")");
  CATENA_CHECK(ValueError, o.groups >= 1 && in % o.groups == 0 && out % o.groups == 0,
               "Convolution2D: ", in, " channels in and ", out, " out cannot be divided into ",
               o.groups, " groups");
  const double fan_in = double(in / o.groups * ksize.height * ksize.width);
  return initial_weight("Convolution2D", {out, in / o.groups, ksize.height, ksize.width},
                        "(out, in / groups, kh, kw)", o.initialW, o.dtype,
                        o.wscale * std::sqrt(1 / fan_in));
}

struct ChannelsLast {
  static constexpr const char* kName = "ChannelsLast";
  Array forward(const Array& x) const { return channels_last(x); }
  Array adjoint(const Array& gy) const { return gy; }
};

}  // namespace

Variable convolution_2d(const VariableOperand& x, const VariableOperand& W,
                        const ConvolutionOptions& options) {
  FunctionCall call(kName, Autocast::kLow, x, W);
  return apply(call, options);
}

Variable convolution_2d(const VariableOperand& x, const VariableOperand& W,
                        const VariableOperand& b, const ConvolutionOptions& options) {
  FunctionCall call(kName, Autocast::kLow, x, W, b);
  return apply(call, options);
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
    : W(initial_filters(in_channels, out_channels, ksize, options)),
      options_{options.stride, options.pad, options.dilation, options.groups, options.cover_all} {
  check_options(options_);
  CATENA_CHECK(
      ValueError, !options.nobias || !options.initial_bias,
      "Convolution2D: nobias and initial_bias contradict each other; leave out one of them");
  if (!options.nobias)
    b = OwnedParameter(initial_bias("Convolution2D", W.data(), options.initial_bias, options.bias));
}

Variable Convolution2D::operator()(const VariableOperand& x) const {
  CATENA_CHECK(ValueError, W.defined(),
               "Convolution2D: this layer has no weights; it was moved from");
  FunctionCall call(kName, Autocast::kLow, x, W.variable(), b.defined() ? &b.variable() : nullptr);
  return apply(call, options_);
}

void Convolution2D::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  visitor(prefix + "W", W);
  if (b.defined()) visitor(prefix + "b", b);
}

}  // namespace catena::functions
