// Two-dimensional convolution, as a function and as a layer.
#pragma once

#include <cstdint>
#include <optional>

#include "catena/autograd/function_set.h"
#include "catena/autograd/variable.h"
#include "catena/functions/extent_2d.h"
#include "catena/functions/initializers.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// How the window moves; the same for both axes unless two numbers are given.
struct ConvolutionOptions {
  Extent2D stride = 1;
  Extent2D pad = 0;       // rows and columns of zeros on each side
  Extent2D dilation = 1;  // distance of the elements that a window sees
  int64_t groups = 1;     // channels in equal groups that do not see each other
  // Further positions, with zeros behind the padded edge, where stride leaves a rest of the input.
  bool cover_all = false;
};

// Cross-correlation: y[n, o, y, x] = b[o] + the sum over c, i, j of W[o, c, i, j] *
// x[n, c, y * stride - pad + i * dilation, ...]. x: (n, channels, height, width); W: (out,
// channels / groups, kh, kw); b: (out). All of one floating dtype. The result is (n, out, oh, ow)
// with oh = (height + 2 * pad - dilation * (kh - 1) - 1) / stride + 1, rounded down (with cover_all
// up).
//
// Both memory layouts are first-class: where x has its channels last (see channels_last), so has
// the result. config().matmul_precision and config().deterministic hold for convolutions too.
// Differentiable any number of times. InvalidType for operands that do not fit, ShapeError where no
// window fits into the image.
Variable convolution_2d(const VariableOperand& x, const VariableOperand& W,
                        const ConvolutionOptions& options = {});
Variable convolution_2d(const VariableOperand& x, const VariableOperand& W,
                        const VariableOperand& b, const ConvolutionOptions& options = {});

// The same elements (n, channels, height, width) with the channels side by side in memory. Faster
// for 16-bit and tf32 convolutions on GPUs, and for all convolutions with oneDNN. A copy, unless
// the channels are last already.
Array channels_last(const Array& images);
// The same for a network: the functions behind it keep the layout, as do gradients on the way back.
// The gradient passes as it is. InvalidType unless the images have four axes.
Variable channels_last(const Variable& images);
// Lays out the filters of a model (its parameters of four axes) in the same way, so that
// convolutions of such images copy neither filters nor their gradients. Shapes, values and files
// stay the same. For all ranks of a job or none; an optimizer moves its arenas before its next
// step, so call it before training, and not between the recordings of a captured step.
void channels_last(Parameterized& model);

// Initial values and dtype of a Convolution2D; stride, pad, dilation, groups and cover_all as in
// ConvolutionOptions.
struct Convolution2DOptions {
  Extent2D stride = 1;
  Extent2D pad = 0;
  Extent2D dilation = 1;
  int64_t groups = 1;
  bool cover_all = false;
  double wscale = 1;                // W ~ normal(0, wscale * sqrt(1 / (in / groups * kh * kw)))
  double bias = 0;                  // initial value of b
  bool nobias = false;              // with initial_bias a ValueError
  InitialValue initialW = {};       // (out, in / groups, kh, kw)
  InitialValue initial_bias = {};   // (out)
  std::optional<Dtype> dtype = {};  // float32, or that of an array initialW
};

// Convolutional layer on the current device. ShapeError for initial arrays of other shapes,
// ValueError for sizes and options that make no sense, DtypeError for integer dtypes.
class Convolution2D : public Parameterized {
 public:
  Convolution2D(int64_t in_channels, int64_t out_channels, Extent2D ksize,
                const Convolution2DOptions& options = {});

  // Applies the layer; errors are those of convolution_2d().
  Variable operator()(const VariableOperand& x) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;

  OwnedParameter W;  // (out, in / groups, kh, kw)
  OwnedParameter b;  // (out); undefined with nobias

 private:
  ConvolutionOptions options_;
};

}  // namespace catena::functions
