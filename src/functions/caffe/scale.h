// Caffe's layer Scale: factors and offsets along axes in the middle of an array.
#pragma once

#include "catena/autograd/function_set.h"
#include "catena/autograd/variable.h"

namespace catena::functions::caffe {

// x * factors, and x + offsets, whose axes are those of x from `axis` on; negative ones count from
// the end. ShapeError where the extents differ.
Variable scaled(const Variable& x, const Variable& factors, int64_t axis);
Variable shifted(const Variable& x, const Variable& offsets, int64_t axis);

// y = x * W + b. W is undefined where the factors are an input, b where there is none.
class Scale : public Parameterized {
 public:
  Variable operator()(const Variable& x) const { return offset(scaled(x, W.variable(), axis)); }
  Variable operator()(const Variable& x, const Variable& factors) const {
    return offset(scaled(x, factors, axis));
  }
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;

  OwnedParameter W, b;
  int64_t axis = 1;

 private:
  Variable offset(const Variable& y) const {
    return b.defined() ? shifted(y, b.variable(), axis) : y;
  }
};

}  // namespace catena::functions::caffe
