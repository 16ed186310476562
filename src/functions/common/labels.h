// Class labels as the kernels take them.
#pragma once

#include "catena/array/array.h"

namespace catena::functions {

// int32, contiguous. int64 labels are cast; those that int32 does not hold become its limits, which
// no class has, for GPUs do not wait for a check().
struct Labels {
  Array converted;
  bool saved;  // the user's array itself serves the kernels, so that the graph watches over it
  bool normalize;
  int32_t ignore;

  Labels(const Array& t, bool normalized, int32_t ignored)
      : converted(as_int32(t)),
        saved(converted.same_body(t)),
        normalize(normalized),
        ignore(ignored) {}
  static Array as_int32(const Array& t);
  // ValueError that names the first label (int32 or int64) outside [0, classes), unless
  // it is the ignored one. Waits for the labels' device.
  static void check(const Array& t, int64_t classes, int32_t ignore_label);
};

}  // namespace catena::functions
