// The enumerators of ElementwiseOp, such as ElementwiseOp::kadd: one for each row. It includes the
// whole table, so it is for the few files that need rows. Other files take names from
// kernels/elementwise_ops.h.
#pragma once

#include "catena/kernels/elementwise.h"

namespace catena {

enum class ElementwiseOp : uint16_t {
#define CATENA_EW1(functor, name, ...) k##name,
#define CATENA_EW2(functor, name, ...) k##name,
#define CATENA_EW3(functor, name, ...) k##name,
#include "catena/kernels/detail/elementwise_arithmetic.def"
  kArithmeticEnd,
  kBeforeMath = kFirstMath - 1,
#include "catena/kernels/detail/elementwise_math.def"
  kMathEnd,
  kBeforeLogic = kFirstLogic - 1,
#include "catena/kernels/detail/elementwise_logic.def"
  kLogicEnd,
  kBeforeGradient = kFirstGradient - 1,
#include "catena/kernels/detail/elementwise_gradient.def"
  kGradientEnd,
  kBeforeActivation = kFirstActivation - 1,
#include "catena/kernels/detail/elementwise_activation.def"
  kActivationEnd,
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
};

static_assert(int(ElementwiseOp::kArithmeticEnd) < kFirstMath &&
                  int(ElementwiseOp::kMathEnd) < kFirstLogic &&
                  int(ElementwiseOp::kLogicEnd) < kFirstGradient &&
                  int(ElementwiseOp::kGradientEnd) < kFirstActivation &&
                  int(ElementwiseOp::kActivationEnd) < kElementwiseRows,
              "a family has more rows than kFamilyRows leaves room for");

}  // namespace catena
