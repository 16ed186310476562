// Selecting elements by arrays of positions and by masks.
//
// Positions are integers; negative ones count from the end. Looking whether they are in range
// (OutOfRange::kRaise, the default, as NumPy) reads the smallest and the largest back from a GPU:
// one synchronisation a call, none on the CPU. kWrap and kClip never wait. A mask (bool array) has
// a result whose size depends on its elements: one synchronisation to count them, whatever the
// mode.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "catena/array/array.h"

namespace catena {

// How a position outside [0, extent) is treated. kRaise and kWrap count negative ones from the end
// first; kClip makes them 0.
enum class OutOfRange : uint8_t { kRaise, kWrap, kClip };

// NumPy's a[indices] with arrays among the indices: a copy, on the device of a. The arrays
// broadcast together and stand for the axes they index; a mask of m axes stands for its m positions
// where it is true (its shape must be that of the axes). The axes of the broadcast arrays come
// where the arrays are, or first when a slice, newaxis or ellipsis separates them; integers count
// as arrays there. Lists without an entry for every axis take the rest whole. Errors: IndexError
// (position with its axis, number of indices, mask shape), ShapeError (arrays that do not
// broadcast), DtypeError (indices of a float dtype), DeviceError.
Array index_get(const Array& a, std::initializer_list<AnyIndex> indices,
                OutOfRange mode = OutOfRange::kRaise);
Array index_get(const Array& a, std::span<const AnyIndex> indices,
                OutOfRange mode = OutOfRange::kRaise);
// a[indices] = values: values broadcast to the shape index_get would give, and are cast (NumPy's
// "unsafe"). Of several values for one element the last one stays on the CPU, and on a GPU with
// config().deterministic; else a GPU keeps any one of them.
void index_put(const Array& a, std::initializer_list<AnyIndex> indices, const Operand& values,
               OutOfRange mode = OutOfRange::kRaise);
void index_put(const Array& a, std::span<const AnyIndex> indices, const Operand& values,
               OutOfRange mode = OutOfRange::kRaise);
// a[indices] += values where repeated positions add up as often as they occur (numpy.add.at). With
// config().deterministic a GPU adds them in the order of the positions.
void index_add(const Array& a, std::initializer_list<AnyIndex> indices, const Operand& values,
               OutOfRange mode = OutOfRange::kRaise);
void index_add(const Array& a, std::span<const AnyIndex> indices, const Operand& values,
               OutOfRange mode = OutOfRange::kRaise);

// Elements (without an axis: of the flattened array) at the given integer positions; the result has
// the shape of `indices` in place of the axis. `out`: shape of the result, dtype of a (DtypeError).
Array take(const Array& a, const Array& indices, OptionalAxis axis = none,
           OutOfRange mode = OutOfRange::kRaise, const Out& out = {});
Array take(const Array& a, std::initializer_list<int64_t> indices, OptionalAxis axis = none,
           OutOfRange mode = OutOfRange::kRaise, const Out& out = {});
Array take(const Array& a, const std::vector<int64_t>& indices, OptionalAxis axis = none,
           OutOfRange mode = OutOfRange::kRaise, const Out& out = {});
// One position: the axis falls away.
Array take(const Array& a, int64_t index, OptionalAxis axis = none,
           OutOfRange mode = OutOfRange::kRaise, const Out& out = {});
// Writes values (a number, or an array repeated as often as needed; cast) to positions of the
// flattened array.
void put(const Array& a, const Array& indices, const Operand& values,
         OutOfRange mode = OutOfRange::kRaise);
// a[..., indices, ...] += values along `axis`; repeated positions accumulate, in their order as
// index_add. kRaise checks the positions first, for which it waits for a GPU.
void scatter_add(const Array& a, const Array& indices, const Operand& values, Axis axis = 0,
                 OutOfRange mode = OutOfRange::kRaise);
// Slices of a along `axis` (without one: elements of the flattened array) where the 1-d condition,
// which may be shorter, is true. One synchronisation, as for every mask.
Array compress(const Array& condition, const Array& a, OptionalAxis axis = none);
// Elements of a where the condition of the same size is true, flattened.
Array extract(const Array& condition, const Array& a);

// Element-wise condition ? x : y.
Array where(const Array& condition, const Operand& x, const Operand& y);
// With one argument: nonzero(condition), see scan.h.
std::vector<Array> where(const Array& condition);
// choices[a[i]][i].
Array choose(const Array& a, std::span<const Array> choices);
inline Array choose(const Array& a, std::initializer_list<Array> choices) {
  return choose(a, std::span(choices.begin(), choices.size()));
}

// Positions in the flattened array of shape `shape` (C order) from one array a axis, and back;
// int64. Out of range positions are an IndexError (unravel_index: always; one synchronisation).
Array ravel_multi_index(std::span<const Array> indices, const Shape& shape,
                        OutOfRange mode = OutOfRange::kRaise);
std::vector<Array> unravel_index(const Array& indices, const Shape& shape);

}  // namespace catena
