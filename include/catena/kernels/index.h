// Reading and writing elements at given positions.
#pragma once

#include <cstdint>
#include <optional>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// Whether positions are ids of a table: then they do not count from the end, and no slice belongs
// to `ignored`, if given, nor to ids outside [0, extent).
struct IdRule {
  bool strict = false;
  std::optional<int64_t> ignored = {};  // of strict ids
};

// output[i, j, k] = source[i, wrap(indices[j]), k]; source (outer, extent, inner) contiguous,
// indices 1-d int32 or int64 contiguous. mode as OutOfRange; with kRaise the caller has already
// checked that all positions are in range. Of strict ids, for which mode does not count, the
// ignored one gives zeros, and others outside give elements with all bits set, which are NaN in
// every floating dtype; bool arrays take no strict ids.
struct TakeCall {
  const Array& source;
  const Array& indices;
  uint8_t mode;
  const Array& output;
  IdRule ids = {};
};

// target[i, indices[j], k] += values[i, j, k], deterministic when config().deterministic; target
// and values contiguous, indices as above, in range but for strict ids, which may be left out.
// Without `accumulate` the target's contents are not read: it becomes the sums, zero where there
// are no values. Target and values are of one dtype; or the target is float32 and the values are
// 16-bit floats. 16-bit floats are summed in float32 and rounded once.
struct ScatterAddCall {
  const Array& target;
  const Array& indices;
  const Array& values;
  bool accumulate = true;
  IdRule ids = {};
};

inline constexpr int kMaxPositionLists = 3;  // the caller folds more of them into one

// Elements chosen by lists of positions. All views have the shape of `values`: `base` has stride 0
// along the axes that positions replace, and element i of values belongs to the element
// of base at i displaced by the sum over k of wrap(positions[k][i]) * strides[k] bytes. An extent
// of 0 means that the positions of that list need no wrapping. With kRaise the
// caller has already checked that all positions are in range.
struct SelectCall {
  const Array* values;  // result of gather, source of scatter; dtype of base
  const Array* base;
  int count;
  const Array* positions[kMaxPositionLists];  // all int32 or all int64
  int64_t extents[kMaxPositionLists];
  int64_t strides[kMaxPositionLists];
  uint8_t mode;  // OutOfRange
};

namespace kernels {

// The slots of the calls above.
extern Slot<TakeCall> take;
extern Slot<ScatterAddCall> scatter_add;
// values = elements; values contiguous and not empty.
extern Slot<SelectCall> gather;
// elements = values; not empty. On the CPU the last of several values for one element stays, on a
// GPU any one of them.
extern Slot<SelectCall> scatter;

}  // namespace kernels

}  // namespace catena
