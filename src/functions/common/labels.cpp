#include "functions/common/labels.h"

#include <limits>

#include "catena/array/math.h"

namespace catena::functions {
namespace {

template <class T>
void check_values(const Array& labels, int64_t classes, int32_t ignore_label) {
  const T* values = labels.data<T>();
  for (int64_t i = 0; i < labels.size(); ++i) {
    if ((values[i] >= 0 && values[i] < classes) || values[i] == ignore_label) [[likely]]
      continue;
    fail<ValueError>("label ", values[i], " at position ", i, " is outside [0, ", classes,
                     ") and not the ignored label ", ignore_label);
  }
}

}  // namespace

Array Labels::as_int32(const Array& t) {
  if (t.dtype() != Dtype::kInt64) return t.astype(Dtype::kInt32, false).contiguous();
  using Limits = std::numeric_limits<int32_t>;
  const Array narrow = Array::uninitialized(t.shape(), Dtype::kInt32, t.device());
  Out clipped(narrow);
  clipped.dtype = Dtype::kInt64;  // what it computes in
  return clip(t, Limits::min(), Limits::max(), clipped);
}

void Labels::check(const Array& t, int64_t classes, int32_t ignore_label) {
  const Array labels = t.to_cpu().contiguous();
  if (labels.dtype() == Dtype::kInt64)
    check_values<int64_t>(labels, classes, ignore_label);
  else
    check_values<int32_t>(labels.astype(Dtype::kInt32, false), classes, ignore_label);
}

}  // namespace catena::functions
