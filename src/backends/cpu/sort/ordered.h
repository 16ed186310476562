// Elements as ordered unsigned keys; see device/ordered_key.h.
#pragma once

#include "catena/core/dtype.h"

#define CATENA_FN inline
#include "device/ordered_key.h"

namespace catena::host {

// Calls f(O{}) with the order O of a dtype's elements.
template <class F>
void visit_order(Dtype dtype, const F& f) {
  switch (dtype) {
    case Dtype::kBool:
    case Dtype::kUInt8: return f(order::OrderedU8{});
    case Dtype::kInt8: return f(order::OrderedI8{});
    case Dtype::kUInt16: return f(order::OrderedU16{});
    case Dtype::kInt16: return f(order::OrderedI16{});
    case Dtype::kUInt32: return f(order::OrderedU32{});
    case Dtype::kInt32: return f(order::OrderedI32{});
    case Dtype::kUInt64: return f(order::OrderedU64{});
    case Dtype::kInt64: return f(order::OrderedI64{});
    case Dtype::kFloat16: return f(order::OrderedF16{});
    case Dtype::kBFloat16: return f(order::OrderedBF16{});
    case Dtype::kFloat32: return f(order::OrderedF32{});
    case Dtype::kFloat64: return f(order::OrderedF64{});
    default: fail<DtypeError>("sort: no kernel for ", dtype);
  }
}

}  // namespace catena::host
