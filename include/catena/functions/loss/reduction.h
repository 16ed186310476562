// Reductions of the losses of samples or elements.
#pragma once

#include <cstdint>

namespace catena::functions {

// How a loss function ends. Sums are added up in float32 or wider; a 16-bit sum may overflow.
//
// Over ranks an optimizer averages gradients by the batch weights n_local / n_global
// (set_batch_weight, training::make_step). For a mean over samples that is the gradient of the mean
// over the whole batch. Divide a sum by the number of samples of the rank to get the same. A mean
// that divides by something else, such as labels that are not ignored or their class weights,
// declares that (mean.h) and is weighed by it.
enum class Reduction : uint8_t {
  kMean,  // 0-d, the mean; 0 where there is nothing to average
  kSum,   // 0-d, the sum
  kNone   // the losses themselves
};

}  // namespace catena::functions
