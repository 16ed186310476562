#include "functions/common/parts.h"

#include "catena/array/creation.h"

namespace catena::functions {

GetItem GetItem::slice(const Shape& whole, int axis, int64_t start, int64_t stop) {
  std::vector<Index> index(static_cast<size_t>(axis), Index(Slice()));
  index.emplace_back(Slice(start, stop));
  return GetItem(whole, index);
}

Array GetItem::adjoint(const Array& gy) const {
  const Array gx = zeros(whole_, {gy.dtype(), gy.device()});
  forward(gx).assign(gy);
  return gx;
}

void GetItem::adjoint(const Array& gy, const Array& gx, bool accumulate) const {
  if (!accumulate) gx.fill(0);
  detail::assign_or_add(forward(gx), gy, accumulate);
}

}  // namespace catena::functions
