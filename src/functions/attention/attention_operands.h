// Operands of an attention call in their order, and the kernels' call that they make.
#pragma once

#include "catena/autograd/function_call.h"
#include "catena/functions/attention/scaled_dot_product_attention.h"
#include "catena/kernels/attention.h"

namespace catena::functions {

inline constexpr const char* kAttention = "ScaledDotProductAttention";

// What of a call is no array.
struct AttentionNumbers {
  bool causal;
  double scale, softcap, dropout;
  int64_t window;
  RandomBits bits;
};

// The operands of a call: q, k and v, then those that are given, in this order.
enum class AttentionOperand : uint8_t {
  kQ,
  kK,
  kV,
  kBias,
  kMask,
  kKeyLengths,
  kQueryStart,
  kDocuments,
  kKeyDocuments
};
inline constexpr size_t kAttentionOperands = 9;

// Where each operand is among those of the call; -1: it is not given.
struct AttentionPlaces {
  int of[kAttentionOperands];
  int operator[](AttentionOperand operand) const { return of[size_t(operand)]; }
};

// Arrays of a call, which outlive `call`. Undefined: not given.
class AttentionArrays {
 public:
  Array& operator[](AttentionOperand operand) { return arrays_[size_t(operand)]; }
  const Array& operator[](AttentionOperand operand) const { return arrays_[size_t(operand)]; }

  // With masks and bias broadcast, for the kernels.
  AttentionCall call(const AttentionNumbers& numbers, const Array& out, const Array& norms);
  // (batch, heads, queries, keys)
  Shape scores() const;

 private:
  const Array* given(AttentionOperand operand) const {
    const Array& a = arrays_[size_t(operand)];
    return a.defined() ? &a : nullptr;
  }
  Array arrays_[kAttentionOperands];
  Array mask_, bias_;  // broadcast
};

// y of a call whose operands are checked, and log_sum_exp if asked for; the arrays are those of the
// call.
Variables run_attention(FunctionCall& call, const AttentionPlaces& places, AttentionArrays& arrays,
                        const AttentionNumbers& numbers, bool with_statistics);

}  // namespace catena::functions
