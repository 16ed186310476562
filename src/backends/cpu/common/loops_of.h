// The loops of a type, out of tables that have them for several. Beside the tables' headers, which
// must not bring in any inline function.
#pragma once

#include <type_traits>

#include "backends/cpu/loops/tables.h"
#include "catena/core/dtype.h"

namespace catena::host {

// Casts elements of one dtype to another; DtypeError where there is no loop.
inline CastLoop cast_of(Dtype from, Dtype to) {
  const CastLoop cast = tables().casts[static_cast<int>(from)][static_cast<int>(to)];
  CATENA_CHECK(DtypeError, cast != nullptr, "no loop of the CPU casts ", from, " to ", to);
  return cast;
}

// Of float or double.
template <class C, class Tables>
const auto& loops_of(const Tables& tables) {
  if constexpr (std::is_same_v<C, float>) {
    return tables.of_float;
  } else {
    static_assert(std::is_same_v<C, double>);
    return tables.of_double;
  }
}

// Of a float narrower than float32; DtypeError where there are none.
template <class Tables>
const auto& narrow_loops_of(const Tables& tables, Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16: return tables.of_half;
    case Dtype::kBFloat16: return tables.of_brain;
    default: fail<DtypeError>("no loop of the CPU computes in ", dtype);
  }
}

// Of a floating dtype; DtypeError where there are none.
template <class Tables>
const auto& loops_of(const Tables& tables, Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32: return tables.of_float;
    case Dtype::kFloat64: return tables.of_double;
    default: return narrow_loops_of(tables, dtype);
  }
}

template <class C>
const SoftmaxLoops<C>& softmax_loops() {
  if constexpr (std::is_same_v<C, float>)
    return tables().softmax_float;
  else
    return tables().softmax_double;
}

}  // namespace catena::host
