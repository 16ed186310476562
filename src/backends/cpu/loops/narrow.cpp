// See narrow.h, and loop.h about linkage.
#include "backends/cpu/loops/narrow.h"

#include "backends/cpu/loops/gelu.h"

namespace catena::host {
namespace {

// The rows of activations.
enum Row {
#define CATENA_EW1(functor, ...) kRow##functor,
#define CATENA_EW2(functor, ...) kRow##functor,
#define CATENA_EW3(functor, ...) kRow##functor,
#include "catena/kernels/detail/elementwise_activation.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
};

}  // namespace

template <>
NarrowTables CATENA_ISA::make_loops() {
  NarrowTables tables{};
  tables.loops[kFirstActivation + kRowGelu] = &padded1<GeluNarrow, float>;
  return tables;
}

}  // namespace catena::host
