// Assignments as parts of other functions, whose names their errors give.
#pragma once

#include <span>

#include "catena/array/indexing.h"

namespace catena {

// Array::assign, index_put and index_add on behalf of `who`.
void assign_for(const char* who, const Array& destination, const Array& source);
void put_for(const char* who, const Array& a, std::span<const AnyIndex> indices,
             const Operand& values, OutOfRange mode = OutOfRange::kRaise);
void add_for(const char* who, const Array& a, std::span<const AnyIndex> indices,
             const Operand& values, OutOfRange mode = OutOfRange::kRaise);

}  // namespace catena
