// Arithmetic of contiguous 16-bit floats. See half_rows.h. Some operations pass on
// what they get, as maximum does.
#define CATENA_TABLE "catena/kernels/detail/elementwise_arithmetic.def"
#include "backends/cpu/loops/fill_rows.h"
#include "backends/cpu/loops/half_rows.h"

namespace catena::host {
namespace {

struct HalfRows {
  template <class Op, int kInputs, OpTypes kTypes, OpForm kForm, OpCost kCost>
  void row(LoopEntry (&row)[kDtypes]) const {
    if constexpr (kComputes<kTypes, float> && kForm == OpForm::kSame && !kIsApproximated<kCost>)
      fill_halves<Op, kInputs, false>(row, false);
  }
};

}  // namespace

namespace CATENA_ISA {

CATENA_LOOPS(arithmetic_half) { for_each_row(tables.loops + kFirstArithmetic, HalfRows()); }

}  // namespace CATENA_ISA

}  // namespace catena::host
