// ArrayBody, which an Array handle points to: it describes elements in shared storage.
#pragma once

#include "catena/core/device.h"
#include "catena/core/dtype.h"
#include "catena/core/intrusive.h"
#include "catena/core/memory.h"
#include "catena/core/shape.h"

namespace catena {

// The result of Array::flags().
struct ArrayFlags {
  bool c_contiguous, f_contiguous;
  bool owndata;  // allocated with its storage, not a view of another array or of foreign memory
};

// The object that an Array handle points to. Immutable except for the bytes it views.
struct ArrayBody : RefCounted {
  Dtype dtype = Dtype::kFloat64;
  bool contiguous = true;  // C order without gaps
  bool is_view = true;
  bool repeats = false;  // a broadcast view (or a view of one): several elements share memory
  Device device;
  int64_t size = 0;
  char* data = nullptr;  // first element
  StoragePtr storage;
  Shape shape;
  Strides strides;  // bytes

  // Bodies are recycled through a free list of each thread.
  static ArrayBody* create();
  static void destroy(ArrayBody* body);
};

}  // namespace catena
