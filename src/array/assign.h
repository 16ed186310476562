// Assignments as parts of other functions, whose names their errors give.
#pragma once

#include <span>

#include "catena/array/indexing.h"

namespace catena {

// Array::fill, Array::assign, index_put and index_add on behalf of `who`.
// fill: ValueError for undefined and read-only arrays and for numbers that the dtype does not hold.
void fill_for(const char* who, const Array& a, const Scalar& value);
void assign_for(const char* who, const Array& destination, const Array& source);
void put_for(const char* who, const Array& a, std::span<const AnyIndex> indices,
             const Operand& values, OutOfRange mode = OutOfRange::kRaise);
void add_for(const char* who, const Array& a, std::span<const AnyIndex> indices,
             const Operand& values, OutOfRange mode = OutOfRange::kRaise);

}  // namespace catena
