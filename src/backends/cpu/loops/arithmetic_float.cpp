// Arithmetic of floats. See loop.h.
#include "backends/cpu/loops/loop.h"

namespace catena::host {
namespace {

template <class T>
void fill_arithmetic_rows(LoopEntry (*table)[kDtypes]) {
#define CATENA_EW1(functor, name, types, result, ...) \
  fill_row<ops::functor, 1, Types::types, Result::result, T>(table, k##functor);
#define CATENA_EW2(functor, name, types, result, ...) \
  fill_row<ops::functor, 2, Types::types, Result::result, T>(table, k##functor);
#define CATENA_EW3(functor, name, types, result, ...) \
  fill_row<ops::functor, 3, Types::types, Result::result, T>(table, k##functor);
#include "catena/array/detail/elementwise_arithmetic.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
}

}  // namespace

namespace CATENA_ISA {

void fill_arithmetic_float(Tables& tables) {
  LoopEntry(*rows)[kDtypes] = tables.loops + kArithmeticFirst;
  fill_arithmetic_rows<float>(rows);
  fill_arithmetic_rows<double>(rows);
}

}  // namespace CATENA_ISA

}  // namespace catena::host
