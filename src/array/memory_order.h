// The memory order of results (NumPy's order 'K'), and views that kernels visit in it.
#pragma once

#include <span>

#include "catena/array/array.h"
#include "catena/array/memory_order.h"

namespace catena {

// The order of an array that is made like `a`: 'C', 'F', 'A' (Fortran order if `a` is contiguous in
// it and not in C order) or 'K' (a.order()). ValueError for other letters.
MemoryOrder order_of_letter(const Array& a, char letter);

// The order of an element-wise result of `ndim` axes: that on which the operands agree. Axes about
// which they disagree, or along which none has several elements, are as in C order. Null operands
// are numbers.
MemoryOrder common_order(std::span<const Array* const> operands, int ndim);

// `a` with its axes in this order: C-contiguous if `a` is dense in it.
Array in_order(const Array& a, const MemoryOrder& order);

}  // namespace catena
