// copy between devices
#include "catena/functions/array/copy.h"

#include "catena/autograd/linear_map.h"

namespace catena::functions {
namespace {

struct Copy {
  static constexpr const char* kName = "Copy";
  Device from, to;
  Array forward(const Array& x) const { return x.to(to); }
  Array adjoint(const Array& gy) const { return gy.to(from); }
};

}  // namespace

Variable copy(const VariableOperand& x, Device device) {
  FunctionCall call(Copy::kName, Autocast::kNone, x);
  return linear_map(call, Copy{call[0].device(), device});
}

}  // namespace catena::functions
