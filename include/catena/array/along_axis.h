// Elements chosen along one axis by an array of positions for each line, and arrays of positions
// that select lines, triangles, diagonals and grids.
//
// Positions are integers, results of the functions that make them int64. As everywhere, looking
// whether positions are in range (OutOfRange::kRaise) waits once for a GPU; see indexing.h.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "catena/array/array.h"
#include "catena/array/indexing.h"

namespace catena {

// result[.., i, ..] = a[.., indices[.., i, ..], ..] along the axis: takes what argsort, argmax with
// keepdims and the like give. `indices` has as many axes as `a` (ShapeError) and broadcasts with it
// outside the axis; `none`: both flattened. IndexError, DtypeError (positions of floats).
Array take_along_axis(const Array& a, const Array& indices, std::optional<int64_t> axis,
                      OutOfRange mode = OutOfRange::kRaise);
// a[.., indices[.., i, ..], ..] = values, which broadcast to the indices and are cast. Which of
// several values for one element stays: see index_put.
void put_along_axis(const Array& a, const Array& indices, const Operand& values,
                    std::optional<int64_t> axis, OutOfRange mode = OutOfRange::kRaise);

// Writing by masks. Elements of `values` repeat as often as needed and are cast. A mask of another
// shape than `a` is a ShapeError; other dtypes than bool count as "not 0".
// a[mask] = values[mask], where values are repeated over all of `a`.
void putmask(const Array& a, const Array& mask, const Operand& values);
// a[mask] = the first values, one for each true position. Waits once for a GPU, as every mask.
void place(const Array& a, const Array& mask, const Array& values);
// Sets the elements a[i, i, ..., i]; values are a number or repeat as often as needed. `a` has at
// least 2 axes, of one extent if more than 2 (ShapeError). With `wrap` the diagonal of a tall
// matrix starts again after it left, one row being left out.
void fill_diagonal(const Array& a, const Operand& values, bool wrap = false);

// Rows and columns of the elements at and below (tril) or above (triu) the k-th diagonal of an
// (n, m) matrix; m < 0: n. For x(indices[0], indices[1]). Waits once for a GPU.
std::vector<Array> tril_indices(int64_t n, int64_t k = 0, int64_t m = -1,
                                std::optional<Device> device = {});
std::vector<Array> triu_indices(int64_t n, int64_t k = 0, int64_t m = -1,
                                std::optional<Device> device = {});
// The diagonal of an array of `ndim` axes of extent n.
std::vector<Array> diag_indices(int64_t n, int ndim = 2, std::optional<Device> device = {});
// Array k of the first axis holds the position along axis k: (ndim, shape...).
Array indices(const Shape& shape, std::optional<Device> device = {});
// 1-d arrays, array k along axis k of as many axes as there are arrays: they index the grid of all
// combinations. Those of bool stand for the positions where they are true (waits once for a GPU).
std::vector<Array> ix_(std::span<const Array> lists);
std::vector<Array> ix_(std::initializer_list<Array> lists);

// The choice of the first condition that is true, element by element, else the default (a number is
// weak in promotion). All broadcast together. ValueError unless there are as many choices as
// conditions, at least one; DtypeError for conditions that are not bool.
Array select(std::span<const Array> conditions, std::span<const Array> choices,
             const Operand& otherwise = 0);
Array select(std::initializer_list<Array> conditions, std::initializer_list<Array> choices,
             const Operand& otherwise = 0);

}  // namespace catena
