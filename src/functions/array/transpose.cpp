// transpose and swapaxes: views.
#include "catena/functions/array/transpose.h"

#include "catena/autograd/linear_map.h"
#include "functions/common/axes.h"

namespace catena::functions {
namespace {

struct Transpose {
  static constexpr const char* kName = "Transpose";
  Axes order;
  static Array moved(const Array& a, const Axes& order) {
    return a.ndim() == 0 ? a : a.transpose(order);
  }
  Array forward(const Array& x) const { return moved(x, order); }
  Array adjoint(const Array& gy) const { return moved(gy, inverse_order(order)); }
};

struct Swapaxes : Transpose {
  static constexpr const char* kName = "Swapaxes";
};

}  // namespace

Variable transpose(const VariableOperand& x, const Axes& axes) {
  FunctionCall call(Transpose::kName, Autocast::kNone, x);
  const Array& data = call[0].data();
  Axes order = axes;
  if (order.empty()) {
    for (int i = data.ndim() - 1; i >= 0; --i) order.push_back(i);
  }
  return linear_map(call, Transpose{order});
}

Variable swapaxes(const VariableOperand& x, Axis axis1, Axis axis2) {
  FunctionCall call(Swapaxes::kName, Autocast::kNone, x);
  const int ndim = call[0].ndim();
  Axes order;
  for (int i = 0; i < ndim; ++i) order.push_back(i);
  std::swap(order[size_t(normalize_axis(call.name(), axis1, ndim))],
            order[size_t(normalize_axis(call.name(), axis2, ndim))]);
  return linear_map(call, Swapaxes{{order}});
}

}  // namespace catena::functions
