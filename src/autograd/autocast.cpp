// The thread's autocast scope.
#include "catena/autograd/autocast.h"

#include "catena/autograd/function_hook.h"
#include "catena/core/error.h"

namespace catena {
namespace {
thread_local Dtype t_low = Dtype::kFloat32;
}

AutocastScope::AutocastScope(Dtype low) : before_(t_low) {
  CATENA_CHECK(DtypeError, is_narrow_float(low) || low == Dtype::kFloat32,
               "AutocastScope: expected bfloat16, float16 or float32, got ", low);
  t_low = low;
  detail::call_watchers.fetch_add(1, std::memory_order_relaxed);
}

AutocastScope::~AutocastScope() {
  detail::call_watchers.fetch_sub(1, std::memory_order_relaxed);
  t_low = before_;
}

Dtype AutocastScope::low() { return t_low; }

Dtype AutocastScope::of_sums(Dtype operand) {
  return t_low != Dtype::kFloat32 && is_narrow_float(operand) ? Dtype::kFloat32 : operand;
}

}  // namespace catena
