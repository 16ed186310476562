// Walks one operation table: for_each_row calls a function for each row, fill_rows stores the loops
// of loop.h. A loop file defines CATENA_TABLE as its .def file and includes this; see loop.h about
// linkage.
#pragma once

#include "backends/cpu/loops/loop.h"

namespace catena::host {
namespace {

// Calls fill.row<functor, inputs, types, form, cost>(entries) for each row of the table. `rows` is
// where the table's operations begin in Tables::loops.
template <class Fill>
void for_each_row(LoopEntry (*rows)[kDtypes], const Fill& fill) {
  using enum OpTypes;
  using enum OpForm;
  using enum OpCost;
#define CATENA_EW1(functor, name, caption, types, form, cost, ...) \
  fill.template row<ops::functor, 1, types, form, cost>(*rows++);
#define CATENA_EW2(functor, name, caption, types, form, cost, ...) \
  fill.template row<ops::functor, 2, types, form, cost>(*rows++);
#define CATENA_EW3(functor, name, caption, types, form, cost, ...) \
  fill.template row<ops::functor, 3, types, form, cost>(*rows++);
#include CATENA_TABLE
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
#undef CATENA_TABLE
}

template <class T>
struct RowsOfType {
  template <class Op, int kInputs, OpTypes kTypes, OpForm kForm, OpCost kCost>
  void row(LoopEntry (&row)[kDtypes]) const {
    fill_row<Op, kInputs, kTypes, kForm, kCost, T>(row);
  }
};

// Rows that do not compute in one of the types T are left unchanged.
template <class... T>
void fill_rows(LoopEntry (*rows)[kDtypes]) {
  (for_each_row(rows, RowsOfType<T>()), ...);
}

}  // namespace
}  // namespace catena::host
