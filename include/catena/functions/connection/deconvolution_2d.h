// Two-dimensional transposed convolution, as a function and as a layer (M. Zeiler, D. Krishnan, G.
// Taylor and R. Fergus, Deconvolutional Networks, CVPR 2010).
#pragma once

#include <cstdint>
#include <optional>

#include "catena/autograd/function_set.h"
#include "catena/autograd/variable.h"
#include "catena/functions/extent_2d.h"
#include "catena/functions/initializers.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// How the window moves over the result; the same for both axes unless two numbers are given.
struct DeconvolutionOptions {
  Extent2D stride = 1;
  Extent2D pad = 0;       // rows and columns of the result that are left out on each side
  Extent2D dilation = 1;  // distance of the elements that a window reaches
  int64_t groups = 1;     // channels in equal groups that do not see each other
  // Height and width of the result. Several sizes have a convolution of the same size as x: without
  // outsize the smallest of them, stride * (size - 1) + dilation * (k - 1) + 1 - 2 * pad.
  std::optional<Extent2D> outsize = {};
};

// The transpose of convolution_2d as a linear map of images: what is the gradient of its x there is
// the result here. Each element of x adds W, times itself, to y at its window:
// y[n, o, i * stride - pad + a * dilation, ...] += W[c, o, a, b] * x[n, c, i, j]; then b[o] is
// added. x: (n, channels, height, width); W: (channels, out / groups, kh, kw), the filters of the
// convolution whose transpose this is; b: (out). All of one floating dtype.
//
// Both memory layouts are first-class: where x has its channels last, so has the result. It runs by
// the kernels of convolutions, under their settings. Differentiable any number of times.
// InvalidType for operands that do not fit, ValueError for options that make no sense, ShapeError
// for a size of the result that no convolution turns into that of x.
Variable deconvolution_2d(const VariableOperand& x, const VariableOperand& W,
                          const DeconvolutionOptions& options = {});
Variable deconvolution_2d(const VariableOperand& x, const VariableOperand& W,
                          const VariableOperand& b, const DeconvolutionOptions& options = {});

// Initial values and dtype of a Deconvolution2D; the others as in DeconvolutionOptions.
struct Deconvolution2DOptions {
  Extent2D stride = 1;
  Extent2D pad = 0;
  Extent2D dilation = 1;
  int64_t groups = 1;
  std::optional<Extent2D> outsize = {};
  double wscale = 1;                // W ~ normal(0, wscale * sqrt(1 / (in / groups * kh * kw)))
  double bias = 0;                  // initial value of b
  bool nobias = false;              // with initial_bias a ValueError
  InitialValue initialW = {};       // (in, out / groups, kh, kw)
  InitialValue initial_bias = {};   // (out)
  std::optional<Dtype> dtype = {};  // float32, or that of initialW
};

// Transposed convolutional layer on the current device. ShapeError for initial arrays of other
// shapes, ValueError for sizes and options that make no sense, DtypeError for integer dtypes.
class Deconvolution2D : public Parameterized {
 public:
  Deconvolution2D(int64_t in_channels, int64_t out_channels, Extent2D ksize,
                  const Deconvolution2DOptions& options = {});

  // Applies the layer; errors are those of deconvolution_2d().
  Variable operator()(const VariableOperand& x) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;

  OwnedParameter W;  // (in, out / groups, kh, kw)
  OwnedParameter b;  // (out); undefined with nobias

 private:
  DeconvolutionOptions options_;
};

}  // namespace catena::functions
