// The building blocks of GoogLeNet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "catena/autograd/function_set.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Start values and dtype of an Inception. The convolutions have different shapes: an array is a
// ValueError.
struct InceptionOptions {
  InitialValue conv_init = {};  // of the weights; those of Convolution2D unless given
  InitialValue bias_init = {};  // of the biases; 0 unless given
  Dtype dtype = Dtype::kFloat32;
};

// The block of C. Szegedy et al., Going Deeper with Convolutions, CVPR 2015: four paths over the
// same images, joined along the channels, then relu:
//   conv1, of 1 x 1                                 out1 channels
//   relu of proj3, of 1 x 1, then conv3, of 3 x 3   out3
//   relu of proj5, of 1 x 1, then conv5, of 5 x 5   out5
//   max pooling of 3 x 3, then projp, of 1 x 1      proj_pool
// Height and width stay. ValueError for channels below 1; errors of a call are those of its
// convolutions.
class Inception : public FunctionSet {
 public:
  Inception(int64_t in_channels, int64_t out1, int64_t proj3, int64_t out3, int64_t proj5,
            int64_t out5, int64_t proj_pool, const InceptionOptions& options = {});
  Variable operator()(const VariableOperand& x) const;

  // The layers, all with a bias.
  Convolution2D conv1, proj3, conv3, proj5, conv5, projp;
  CATENA_FUNCTIONS(conv1, proj3, conv3, proj5, conv5, projp)
};

// Start values and dtype of an InceptionBN, as in InceptionOptions.
struct InceptionBNOptions {
  InitialValue conv_init = {};      // of the weights; those of Convolution2D unless given
  InitialValue initial_gamma = {};  // of the normalizations, instead of ones
  InitialValue initial_beta = {};   // of the normalizations, instead of zeros
  Dtype dtype = Dtype::kFloat32;    // of all
};

// The block of S. Ioffe and C. Szegedy, Batch Normalization: Accelerating Deep Network Training by
// Reducing Internal Covariate Shift, ICML 2015. Each convolution has no bias and is followed by
// batch normalization and relu:
//   conv1, of 1 x 1                                    out1 channels; none for 0
//   proj3, of 1 x 1, then conv3, of 3 x 3              out3
//   proj33, of 1 x 1, then conv33a and conv33b, 3 x 3  out33
//   pooling of 3 x 3, "max" or "avg", then poolp       proj_pool; without one, those of x
// `stride` is that of the last convolution of each path and of the pooling; out1 wants stride 1 and
// proj_pool. With stride 2 the paths agree for odd heights and widths only: max pooling rounds up.
//
// ValueError for channels below 1, another pooltype, and out1 without what it wants.
class InceptionBN : public FunctionSet {
 public:
  InceptionBN(int64_t in_channels, int64_t out1, int64_t proj3, int64_t out3, int64_t proj33,
              int64_t out33, const std::string& pooltype, std::optional<int64_t> proj_pool = {},
              int64_t stride = 1, const InceptionBNOptions& options = {});
  // Without `train` each normalization goes by its own state.
  Variable operator()(const VariableOperand& x, std::optional<YesNo> train = {}) const;

  // The layers; those of a path or a projection that the block does not have are empty.
  Convolution2D proj3, conv3, proj33, conv33a, conv33b;
  BatchNormalization proj3n, conv3n, proj33n, conv33an, conv33bn;
  std::optional<Convolution2D> conv1, poolp;
  std::optional<BatchNormalization> conv1n, poolpn;
  CATENA_FUNCTIONS(proj3, proj3n, conv3, conv3n, proj33, proj33n, conv33a, conv33an, conv33b,
                   conv33bn, conv1, conv1n, poolp, poolpn)

 private:
  Variable pooled(const Variable& x) const;
  int64_t stride_;
  bool takes_average_;
};

}  // namespace catena::functions
