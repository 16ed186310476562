#include "functions/labels.h"

namespace catena::functions {

void Labels::check(const char* who, const Array& t, int64_t classes, int32_t ignore_label) {
  const Array labels = as_int32(t).to_cpu();
  const int32_t* values = labels.data<int32_t>();
  for (int64_t i = 0; i < labels.size(); ++i) {
    if ((values[i] >= 0 && values[i] < classes) || values[i] == ignore_label) [[likely]]
      continue;
    fail<ValueError>(who, ": label ", values[i], " at position ", i, " is outside [0, ", classes,
                     ") and not the ignored label ", ignore_label);
  }
}

}  // namespace catena::functions
