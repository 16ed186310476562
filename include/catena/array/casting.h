// Dtypes of results, and copies that refuse casts NumPy refuses.
#pragma once

#include <initializer_list>

#include "catena/array/array.h"
#include "catena/core/dtype_info.h"

namespace catena {

// The dtype an operation on these operands has: host numbers are weak, arrays of any shape are not.
Dtype result_type(std::initializer_list<Operand> operands);
// The floating dtype that arrays have in common: integers count as float64.
Dtype common_type(std::initializer_list<Array> arrays);
inline bool can_cast(const Array& from, Dtype to, Casting casting = Casting::kSafe) {
  return can_cast(from.dtype(), to, casting);
}

// Copies source, broadcast, into destination where the mask (bool, broadcast; none: everywhere) is
// true. The devices may differ without a mask. Throws DtypeError naming both dtypes and the rule
// when it does not allow the cast; a host integer must fit the destination (ValueError).
void copyto(const Array& destination, const Operand& source, Casting casting = Casting::kSameKind,
            const OptionalArray& where = {});

}  // namespace catena
