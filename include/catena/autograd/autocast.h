// AutocastScope: functions that are fast and safe in 16 bits get their operands in 16 bits.
#pragma once

#include "catena/core/dtype.h"

namespace catena {

// What an AutocastScope does with the operands of a function. float64 and integers stay as they
// are.
enum class Autocast : uint8_t {
  kNone,     // as given: functions whose kernels compute in float32 whatever they read and write
  kLow,      // float32 becomes the dtype of the scope: products, convolutions, vectors of ids
  kFloat32,  // 16-bit floats become float32: losses and functions that are made of others
  kWidest    // all become the widest of the floats among them: functions of equal dtypes
};

// While it lives, function calls of the thread cast their operands by their row, differentiably:
// parameters stay float32, and so do their gradients. Of a float32 parameter all calls share one
// 16-bit copy (ParameterState::low), which is made when the parameter was written, and by the
// update itself where an optimizer holds the parameter: a graph needs it as it was, so a parameter
// that is written between forward and backward is a GradientError, as without the scope. Products,
// sums over rows and sums of vectors of ids write the gradient of the parameter in float32
// (BackwardContext::wide_destination). Scopes nest; the innermost counts.
//
// float32 is where numbers are computed, not where they are stored: normalizations, softmax and
// activations read and write 16 bits and compute in float32; sums, means and softmax_cross_entropy
// read 16 bits and give float32.
//
//   const AutocastScope autocast(dtype::bfloat16);
//   loss = F::softmax_cross_entropy(model(x), t);
//
// DtypeError unless the dtype is bfloat16, float16 (which wants a loss scale) or float32, which
// casts nothing to low.
class AutocastScope {
 public:
  explicit AutocastScope(Dtype low);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;
  // The dtype of the thread's innermost scope; kFloat32 without one.
  static Dtype low();
  // The dtype of sums and losses of an operand of the dtype: float32 of 16-bit floats in a scope,
  // else the same.
  static Dtype of_sums(Dtype operand);

 private:
  Dtype before_;
};

}  // namespace catena
