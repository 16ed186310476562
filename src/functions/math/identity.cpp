// identity
#include "catena/functions/math/identity.h"

#include "catena/autograd/linear_map.h"

namespace catena::functions {
namespace {

struct Identity {
  static constexpr const char* kName = "Identity";
  Array forward(const Array& x) const { return x; }
  Array adjoint(const Array& gy) const { return gy; }
};

}  // namespace

Variable identity(const VariableOperand& x) {
  FunctionCall call(Identity::kName, Autocast::kNone, x);
  return linear_map(call, Identity());
}
Variables identity(const Variables& xs) {
  Variables ys;
  for (const Variable& x : xs) ys.push_back(identity(VariableOperand(x)));
  return ys;
}

}  // namespace catena::functions
