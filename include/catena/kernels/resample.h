// Resampling: each element of an image is a weighted sum of a part of another image, the weights
// being products of one number for the row and one for the column.
#pragma once

#include "catena/kernels/axis_map.h"
#include "catena/kernels/slot.h"

namespace catena {

class Array;

// y (+)= R x C^T / divisor, for every image and channel, where R and C are the matrices that `rows`
// and `columns` describe. x (N, C, rows.in, columns.in), y (N, C, rows.out, columns.out). With
// `adjoint` the transposed matrices: x has the extents `out` and y those `in`. Both axes have the
// same rule. x and y are of one floating dtype and not empty; both are contiguous, or both have
// channels last. Sums are made in float32 or wider, first down the rows of a column, then over the
// columns, so that equal calls give equal bits; with channels last, sums of four columns or more
// without weights first along a row, then over the rows, as they are in memory. Elements of no
// weight are not read.
struct ResampleCall {
  const Array* x;
  const Array* y;
  AxisMap rows, columns;
  double divisor = 1;
  bool adjoint = false;
  bool accumulate = false;
};

namespace kernels {

// The slot of the call above: average pooling, unpooling, resizing, and their gradients.
extern Slot<ResampleCall> resample;

}  // namespace kernels

}  // namespace catena
