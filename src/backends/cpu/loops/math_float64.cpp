// Elementary functions of double, relu of integers. See loop.h.
#include "backends/cpu/loops/loop.h"

namespace catena::host {
namespace {

template <class T>
void fill_math_rows(LoopEntry (*table)[kDtypes]) {
#define CATENA_EW1(functor, name, types, result, ...) \
  fill_row<ops::functor, 1, Types::types, Result::result, T>(table, k##functor);
#define CATENA_EW2(functor, name, types, result, ...) \
  fill_row<ops::functor, 2, Types::types, Result::result, T>(table, k##functor);
#define CATENA_EW3(functor, name, types, result, ...) \
  fill_row<ops::functor, 3, Types::types, Result::result, T>(table, k##functor);
#include "catena/array/detail/elementwise_math.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
}

}  // namespace

namespace CATENA_ISA {

void fill_math_float64(Tables& tables) {
  LoopEntry(*rows)[kDtypes] = tables.loops + kMathFirst;
  fill_math_rows<double>(rows);
  fill_math_rows<int8_t>(rows);
  fill_math_rows<int16_t>(rows);
  fill_math_rows<int32_t>(rows);
  fill_math_rows<int64_t>(rows);
  fill_math_rows<uint8_t>(rows);
  fill_math_rows<uint16_t>(rows);
  fill_math_rows<uint32_t>(rows);
  fill_math_rows<uint64_t>(rows);
}

}  // namespace CATENA_ISA

}  // namespace catena::host
