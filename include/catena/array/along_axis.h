// Elements chosen along one axis by an array of positions for each line, and arrays of positions
// that select lines, triangles, diagonals and grids.
//
// Positions are integers, results of the functions that make them int64. As everywhere, looking
// whether positions are in range (OutOfRange::kRaise) waits once for a GPU; see indexing.h.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/array/array.h"
#include "catena/array/indexing.h"

namespace catena {

// result[.., i, ..] = a[.., indices[.., i, ..], ..] along the axis: takes what argsort, argmax with
// keepdims and the like give. `indices` has as many axes as `a` (ShapeError) and broadcasts with it
// outside the axis; `none`: both flattened. IndexError, DtypeError (positions of floats).
Array take_along_axis(const Array& a, const Array& indices, OptionalAxis axis,
                      OutOfRange mode = OutOfRange::kRaise);
// a[.., indices[.., i, ..], ..] = values, which broadcast to the indices and are cast. Which of
// several values for one element stays: see index_put.
void put_along_axis(const Array& a, const Array& indices, const Operand& values, OptionalAxis axis,
                    OutOfRange mode = OutOfRange::kRaise);

// Writing by masks. Elements of `values` repeat as often as needed and are cast. A mask of another
// shape than `a` is a ShapeError; other dtypes than bool count as "not 0".
// a[mask] = values[mask], where values are repeated over all of `a`.
void putmask(const Array& a, const Array& mask, const Operand& values);
// a[mask] = the first values, one for each true position. Waits once for a GPU, as every use of a
// mask does.
void place(const Array& a, const Array& mask, const Array& values);
// Sets the elements a[i, i, ..., i]; values are a number or repeat as often as needed. `a` has at
// least 2 axes, of one extent if more than 2 (ShapeError). With `wrap` the diagonal of a tall
// matrix starts again after it left, one row being left out.
void fill_diagonal(const Array& a, const Operand& values, bool wrap = false);

// Rows and columns of the elements at and below (tril) or above (triu) the k-th diagonal of an
// (n, m) matrix, (n, n) without m. For x(indices[0], indices[1]). Waits once for a GPU.
std::vector<Array> tril_indices(int64_t n, int64_t k = 0, std::optional<int64_t> m = {},
                                std::optional<Device> device = {});
std::vector<Array> triu_indices(int64_t n, int64_t k = 0, std::optional<int64_t> m = {},
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

// What piecewise puts where a condition is true: a number, or what a function makes of the elements
// of x there (1-d in, of the same shape or 0-d out).
class Piece {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Piece(T number) : number_(number) {}
  template <class F>
  requires std::is_invocable_r_v<Array, const F&, const Array&> Piece(F function)
      : function_(std::move(function)) {}

  // The number, or the function that computes the value from the part of the array where it
  // applies.
  const Scalar& number() const { return number_; }
  const std::function<Array(const Array&)>& function() const { return function_; }

 private:
  Scalar number_;
  std::function<Array(const Array&)> function_;
};
// An array of the shape and dtype of x made piece by piece: the last condition that is true counts,
// where none is the piece after those of the conditions, else 0. Conditions are bool (DtypeError)
// and broadcast to x (ShapeError). ValueError for another number of pieces. Waits for a GPU for
// each piece that is a function, which is not called where no element is its own.
Array piecewise(const Array& x, std::span<const Array> conditions, std::span<const Piece> pieces);
Array piecewise(const Array& x, std::initializer_list<Array> conditions,
                std::initializer_list<Piece> pieces);

// The results of a function of 1-d arrays for each line along the axis, in place of that axis; all
// have one shape (ShapeError) and dtype (DtypeError). Calls it for each line: prefer functions with
// a separate axis. ValueError without any line.
Array apply_along_axis(const std::function<Array(const Array&)>& function, Axis axis,
                       const Array& a);

// Without the zeros at the front and the back of a 1-d array: a view. Waits for a GPU.
enum class TrimEnds : uint8_t { kBoth, kFront, kBack };
Array trim_zeros(const Array& a, TrimEnds ends = TrimEnds::kBoth);

}  // namespace catena
