// Gradients. See loop.h.
#include "backends/cpu/loops/loop.h"

namespace catena::host {
namespace {

template <class T>
void fill_gradient_rows(LoopEntry (*table)[kDtypes]) {
#define CATENA_EW1(functor, name, types, result, ...) \
  fill_row<ops::functor, 1, Types::types, Result::result, T>(table, k##functor);
#define CATENA_EW2(functor, name, types, result, ...) \
  fill_row<ops::functor, 2, Types::types, Result::result, T>(table, k##functor);
#define CATENA_EW3(functor, name, types, result, ...) \
  fill_row<ops::functor, 3, Types::types, Result::result, T>(table, k##functor);
#include "catena/array/detail/elementwise_gradient.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
}

}  // namespace

namespace CATENA_ISA {

void fill_gradient(Tables& tables) {
  LoopEntry(*rows)[kDtypes] = tables.loops + kGradientFirst;
  fill_gradient_rows<float>(rows);
  fill_gradient_rows<double>(rows);
}

}  // namespace CATENA_ISA

}  // namespace catena::host
