// Convolution along one, two or three axes, as a function and as layers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "catena/autograd/function_set.h"
#include "catena/autograd/variable.h"
#include "catena/functions/initializers.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// A number for each axis that a window moves along; one number means all of them.
struct ExtentND {
  std::vector<int64_t> numbers;
  ExtentND(int64_t all) : numbers{all} {}
  ExtentND(std::initializer_list<int64_t> each) : numbers(each) {}
  explicit ExtentND(std::vector<int64_t> each) : numbers(std::move(each)) {}
};

// How the window moves; the fields mean what they mean in ConvolutionOptions.
struct ConvolutionOptionsND {
  ExtentND stride = 1;
  ExtentND pad = 0;
  ExtentND dilation = 1;
  int64_t groups = 1;
  bool cover_all = false;
};

// convolution_2d for x of (n, channels, d1, ...) with one, two or three axes behind the channels,
// and W of (out, channels / groups, k1, ...); b: (out). (n, channels, length) with W (out,
// channels, k) is the convolution of sequences.
//
// It is a composition: one axis is a convolution_2d of images of one row, without a copy. Of three
// axes, what the window sees along the first one becomes channels, k1 copies of x at stride 1, and
// one convolution_2d follows. Results are in C order but for two axes. Differentiable any number of
// times. InvalidType for operands that do not fit, ValueError for options that make no sense,
// ShapeError where no window fits.
Variable convolution_nd(const VariableOperand& x, const VariableOperand& W,
                        const ConvolutionOptionsND& options = {});
Variable convolution_nd(const VariableOperand& x, const VariableOperand& W,
                        const VariableOperand& b, const ConvolutionOptionsND& options = {});

// Initial values and dtype of a ConvolutionND; the others as in ConvolutionOptionsND.
struct ConvolutionNDOptions {
  ExtentND stride = 1;
  ExtentND pad = 0;
  ExtentND dilation = 1;
  int64_t groups = 1;
  bool cover_all = false;
  double wscale = 1;                // W ~ normal(0, wscale * sqrt(1 / (in / groups * k1 * ...)))
  double bias = 0;                  // initial value of b
  bool nobias = false;              // with initial_bias a ValueError
  InitialValue initialW = {};       // (out, in / groups, k1, ...)
  InitialValue initial_bias = {};   // (out)
  std::optional<Dtype> dtype = {};  // float32, or that of initialW
};

// Convolutional layer for `ndim` axes, 1 to 3, on the current device. ShapeError for initial arrays
// of other shapes, ValueError for sizes and options that make no sense, DtypeError for integer
// dtypes.
class ConvolutionND : public Parameterized {
 public:
  ConvolutionND(int ndim, int64_t in_channels, int64_t out_channels, const ExtentND& ksize,
                const ConvolutionNDOptions& options = {});

  // Applies the layer; errors are those of convolution_nd().
  Variable operator()(const VariableOperand& x) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;

  OwnedParameter W;  // (out, in / groups, k1, ...)
  OwnedParameter b;  // (out); undefined with nobias

 private:
  ConvolutionOptionsND options_;
};

// The same for sequences (n, channels, length).
class Convolution1D : public ConvolutionND {
 public:
  Convolution1D(int64_t in_channels, int64_t out_channels, int64_t ksize,
                const ConvolutionNDOptions& options = {})
      : ConvolutionND(1, in_channels, out_channels, ksize, options) {}
};

// The same for volumes (n, channels, depth, height, width).
class Convolution3D : public ConvolutionND {
 public:
  Convolution3D(int64_t in_channels, int64_t out_channels, const ExtentND& ksize,
                const ConvolutionNDOptions& options = {})
      : ConvolutionND(3, in_channels, out_channels, ksize, options) {}
};

}  // namespace catena::functions
