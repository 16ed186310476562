// Defines fill_rows: the loops of one operation table. A loop file defines CATENA_TABLE, the .def
// file to take, and includes this; see loop.h about linkage.
#pragma once

#include "backends/cpu/loops/loop.h"

namespace catena::host {
namespace {

template <class T>
void fill_rows_of_type(LoopEntry (*rows)[kDtypes]) {
#define CATENA_EW1(functor, name, types, result, ...) \
  fill_row<ops::functor, 1, Types::types, Result::result, T>(rows, k##functor);
#define CATENA_EW2(functor, name, types, result, ...) \
  fill_row<ops::functor, 2, Types::types, Result::result, T>(rows, k##functor);
#define CATENA_EW3(functor, name, types, result, ...) \
  fill_row<ops::functor, 3, Types::types, Result::result, T>(rows, k##functor);
#include CATENA_TABLE
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
#undef CATENA_TABLE
}

// rows: where the table's operations begin in Tables::loops. Rows that do not compute in one of the
// types T are left alone there.
template <class... T>
void fill_rows(LoopEntry (*rows)[kDtypes]) {
  (fill_rows_of_type<T>(rows), ...);
}

}  // namespace
}  // namespace catena::host
