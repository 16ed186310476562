// Selecting elements by arrays of positions.
#pragma once

#include <optional>
#include <vector>

#include "catena/array/array.h"

namespace catena {

// How take() treats a position outside [0, extent): negative ones count from the end first.
enum class OutOfRange : uint8_t { kRaise, kWrap, kClip };

// Elements (without an axis: of the flattened array) at the given integer positions; the result has
// the shape of `indices` in place of the axis. kRaise reads the positions back from a GPU to check
// them (one synchronisation); kWrap and kClip do not.
Array take(const Array& a, const Array& indices, std::optional<int64_t> axis = {},
           OutOfRange mode = OutOfRange::kRaise);
// a[..., indices, ...] += values along `axis`; repeated positions accumulate.
void scatter_add(const Array& a, const Array& indices, const Array& values, int64_t axis = 0);
// Element-wise condition ? x : y.
Array where(const Array& condition, const Operand& x, const Operand& y);
// With one argument: nonzero(condition), see scan.h.
std::vector<Array> where(const Array& condition);
// choices[a[i]][i].
Array choose(const Array& a, std::span<const Array> choices);

}  // namespace catena
