// The three products of a convolution, x * W, and its gradients of x and of W: on arrays, and on
// variables, where each is the gradient of the others. A transposed convolution is the second of
// them.
#pragma once

#include "catena/array/array.h"
#include "catena/autograd/function_call.h"
#include "functions/common/image_window.h"

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

// On arrays, whose layout is made to fit. The results have the plan's layouts.
Array convolved(const ConvolutionPlan& plan, const Array& x, const Array& W, const Array* b);
void write_grad_x(const ConvolutionPlan& plan, const Array& gy, const Array& W, const Array& gx,
                  bool accumulate);
void write_grad_w(const ConvolutionPlan& plan, const Array& x, const Array& gy, const Array& gW,
                  bool accumulate);

// First-order gradients of input 1, W, and of input 2, the bias, to their destinations if there are
// any; g is the gradient of the images that have the bias.
void give_grad_w(BackwardContext& context, const ConvolutionPlan& plan, const Array& x,
                 const Array& gy);
void give_grad_b(BackwardContext& context, const Array& g);

// On variables; the first ends a call of x, W and, if there is one, b.
Variable convolve(const ConvolutionPlan& plan, FunctionCall& call);
Variable convolve(const ConvolutionPlan& plan, const Variable& x, const Variable& W);
Variable grad_x_of(const ConvolutionPlan& plan, const Variable& gy, const Variable& W);
Variable grad_w_of(const ConvolutionPlan& plan, const Variable& x, const Variable& gy);

}  // namespace catena::functions
