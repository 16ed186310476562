// The linear map from an array to a part of it, which get_item, concat and split_axis share.
#pragma once

#include <span>
#include <vector>

#include "catena/array/array.h"
#include "catena/autograd/linear_map.h"

namespace catena::functions {

// y = x[indices], a view; the adjoint adds to the part, or puts it among zeros.
class GetItem {
 public:
  static constexpr const char* kName = "GetItem";
  GetItem(const Shape& whole, std::span<const Index> indices)
      : whole_(whole), indices_(indices.begin(), indices.end()) {}
  // [start, stop) of one axis.
  static GetItem slice(const Shape& whole, int axis, int64_t start, int64_t stop);

  Array forward(const Array& x) const { return x.at(std::span<const Index>(indices_)); }
  Array adjoint(const Array& gy) const;
  void adjoint(const Array& gy, const Array& gx, bool accumulate) const;

 private:
  Shape whole_;
  std::vector<Index> indices_;
};

}  // namespace catena::functions
