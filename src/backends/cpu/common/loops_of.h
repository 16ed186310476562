// The loops of a type, out of tables that have them for several. Beside the tables' headers, which
// must not bring in any inline function.
#pragma once

#include <type_traits>

#include "backends/cpu/loops/tables.h"
#include "catena/core/dtype.h"

namespace catena::host {

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

// Of a floating dtype.
template <class Tables>
const auto& loops_of(const Tables& tables, Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16:
      return tables.of_half;
    case Dtype::kBFloat16:
      return tables.of_brain;
    case Dtype::kFloat64:
      return tables.of_double;
    default:
      return tables.of_float;
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
