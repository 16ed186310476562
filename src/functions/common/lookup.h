// Rows of a table by their ids, as a linear map of the table.
#pragma once

#include "catena/array/array.h"
#include "catena/autograd/linear_map.h"
#include "catena/kernels/index.h"

namespace catena::functions {

// From a table (rows, size) to the rows of ids, ids.shape + (size); ids: int32 or int64,
// contiguous.
struct Lookup {
  static constexpr const char* kName = "EmbedID";
  static constexpr bool kSumsWiden = true;
  Array ids;
  IdRule rule;

  Array forward(const Array& W) const {
    const int64_t rows = W.shape()[0], size = W.shape()[1], count = ids.size();
    Shape shape = ids.shape();
    shape.push_back(size);
    const Array y = Array::uninitialized(shape, W.dtype(), W.device());
    if (y.size() > 0)
      kernels::take(W.device(), {W.contiguous().reshape({1, rows, size}), ids.reshape({count}),
                                 static_cast<uint8_t>(0), y.reshape({1, count, size}), rule});
    return y;
  }
  void adjoint(const Array& gy, const Array& gW, bool accumulate) const {
    const int64_t rows = gW.shape()[0], size = gW.shape()[1], count = ids.size();
    if (gW.size() == 0) return;
    // Other layouts get the sums through a contiguous array.
    const bool direct = gW.is_contiguous();
    const Array sums = direct ? gW : Array::uninitialized(gW.shape(), gW.dtype(), gW.device());
    kernels::scatter_add(gW.device(),
                         {sums.reshape({1, rows, size}), ids.reshape({count}),
                          gy.contiguous().reshape({1, count, size}), direct && accumulate, rule});
    if (!direct) detail::assign_or_add(gW, sums, accumulate);
  }
};

}  // namespace catena::functions
