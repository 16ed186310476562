// The loops of a type, out of tables that have them for several. Beside the tables' headers, which
// must not bring in any inline function.
#pragma once

#include <type_traits>

#include "backends/cpu/loops/levels.h"
#include "backends/cpu/loops/tables.h"
#include "catena/core/dtype.h"

namespace catena::host {

// Casts elements of one dtype to another; DtypeError where there is no loop.
inline CastLoop cast_of(Dtype from, Dtype to) {
  const CastLoop cast = tables().casts[static_cast<int>(from)][static_cast<int>(to)];
  CATENA_CHECK(DtypeError, cast != nullptr, "no loop of the CPU casts ", from, " to ", to);
  return cast;
}

// The table of a family for this processor, or for the level that CATENA_CPU_ISA allows.
template <class Tables>
const Tables& loops_of_processor() {
  static const Tables tables = [] {
    [[maybe_unused]] const int level = level_of_tables();
#ifdef CATENA_HAVE_ISA_v2
    if (level == 2) return v2::make_loops<Tables>();
#endif
#ifdef CATENA_HAVE_ISA_v3
    if (level == 3) return v3::make_loops<Tables>();
#endif
#ifdef CATENA_HAVE_ISA_v4
    if (level == 4) return v4::make_loops<Tables>();
#endif
    return Tables{};
  }();
  return tables;
}

// The loops of a family for float or double.
template <class Tables, class C>
const auto& loops_of() {
  if constexpr (std::is_same_v<C, float>) {
    return loops_of_processor<Tables>().of_float;
  } else {
    static_assert(std::is_same_v<C, double>);
    return loops_of_processor<Tables>().of_double;
  }
}

// Of a float narrower than float32; DtypeError where there are none.
template <class Tables>
const auto& narrow_loops_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16: return loops_of_processor<Tables>().of_half;
    case Dtype::kBFloat16: return loops_of_processor<Tables>().of_brain;
    default: fail<DtypeError>("no loop of the CPU computes in ", dtype);
  }
}

// Of a floating dtype; DtypeError where there are none.
template <class Tables>
const auto& loops_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32: return loops_of_processor<Tables>().of_float;
    case Dtype::kFloat64: return loops_of_processor<Tables>().of_double;
    default: return narrow_loops_of<Tables>(dtype);
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
