// Arrays as sets of numbers, as NumPy. unique is in sorting.h.
//
// Arrays are flattened; results are 1-d, ascending and without repetition, in the promoted dtype
// (setdiff1d: in that of a), on the arrays' device. NaN equals no number, so it is found nowhere.
// The size of a result depends on the
// elements: every function but isin waits for a GPU, and is an Error during graph capture.
#pragma once

#include "catena/array/array.h"

namespace catena {

// bool of the shape of `elements`: which of them are among the candidates; `invert`: which are not.
// Never waits.
Array isin(const Array& elements, const Array& candidates, bool invert = false);
// In both.
Array intersect1d(const Array& a, const Array& b);
// In one of them or both. NaN counts as one value here.
Array union1d(const Array& a, const Array& b);
// In a and not in b.
Array setdiff1d(const Array& a, const Array& b);
// In one of them, not in both.
Array setxor1d(const Array& a, const Array& b);

}  // namespace catena
