// The three products of a convolution, x * W, and its gradients of x and of W: on arrays, and on
// variables, where each is the gradient of the others. A transposed convolution is the second of
// them.
#pragma once

#include <cmath>

#include "catena/array/array.h"
#include "catena/autograd/function_call.h"
#include "functions/common/image_window.h"
#include "functions/common/weighted_layer.h"

namespace catena::functions {

// What a convolution of given operands is, decided once for its forward and backward passes.
struct ConvolutionPlan : ImagePlan {
  int groups;
  Shape W_shape;
  BatchLayout filters;  // of W and its gradient: channels last only where the images have them so
};

// ValueErrors, in the name of `function`, for options of a convolution or its transpose that make
// no sense.
template <class Options>
void check_moves(const char* function, const Options& o) {
  check_least(function, "stride", o.stride, 1);
  check_least(function, "pad", o.pad, 0);
  check_least(function, "dilation", o.dilation, 1);
  CATENA_CHECK(ValueError, o.groups >= 1, function, ": expected at least 1 group, got ", o.groups);
}
// Their window over images, for filters of that shape.
template <class Options>
Window window_of(const Shape& filters, const Options& o) {
  return {{filters[2], filters[3]},
          {o.stride.height, o.stride.width},
          {o.pad.height, o.pad.width},
          {o.dilation.height, o.dilation.width}};
}

// Start values of W, for a layer from `in` to `out` channels; W of a transpose begins with `in`.
template <class Options>
Array initial_filters(const char* layer, int64_t in, int64_t out, const Extent2D& ksize,
                      const Options& o, bool transposed) {
  CATENA_CHECK(ValueError, in > 0 && out > 0 && ksize.height > 0 && ksize.width > 0, layer,
               ": expected channels and window of at least 1, got ", in, " channels in, ", out,
               " out and a window of ", text_of(ksize));
  CATENA_CHECK(ValueError, o.groups >= 1 && in % o.groups == 0 && out % o.groups == 0, layer, ": ",
               in, " channels in and ", out, " out cannot be divided into ", o.groups, " groups");
  const double fan_in = double(in / o.groups * ksize.height * ksize.width);
  const int64_t first = transposed ? in : out, second = (transposed ? out : in) / o.groups;
  return initial_weight(layer, {first, second, ksize.height, ksize.width},
                        transposed ? "(in, out / groups, kh, kw)" : "(out, in / groups, kh, kw)",
                        o.initialW, o.dtype, o.wscale * std::sqrt(1 / fan_in));
}

// On arrays, whose layout is made to fit. The results have the plan's layouts.
Array convolved(const ConvolutionPlan& plan, const Array& x, const Array& W, const Array* b);
void write_grad_x(const ConvolutionPlan& plan, const Array& gy, const Array& W, const Array& gx,
                  bool accumulate);
void write_grad_w(const ConvolutionPlan& plan, const Array& x, const Array& gy, const Array& gW,
                  bool accumulate);

// Ends a call of x, W and, if there is one, b, whose result y is that of the plan's convolution or
// of its transpose.
template <bool kTransposed>
Variable record_convolution(FunctionCall& call, const ConvolutionPlan& plan, const Array& y);
// On variables; the first ends a call of x, W and, if there is one, b.
Variable convolve(const ConvolutionPlan& plan, FunctionCall& call);
Variable convolve(const ConvolutionPlan& plan, const Variable& x, const Variable& W);
Variable grad_x_of(const ConvolutionPlan& plan, const Variable& gy, const Variable& W);
Variable grad_w_of(const ConvolutionPlan& plan, const Variable& x, const Variable& gy);

}  // namespace catena::functions
