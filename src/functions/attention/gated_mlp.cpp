#include "catena/functions/attention/gated_mlp.h"

#include "catena/functions/activation/gated.h"

namespace catena::functions {
namespace {

constexpr const char* kGatedMlp = "GatedMlp";

Linear gated_product(int64_t in, int64_t out, const GatedMlpOptions& o) {
  CATENA_CHECK(ValueError, !o.initialW.array(), kGatedMlp,
               ": initialW is an array, but the products have different shapes; give an "
               "initializer, or assign to the parameters of gate_proj, up_proj and down_proj");
  return Linear(in, out, {.nobias = o.nobias, .initialW = o.initialW, .dtype = o.dtype});
}

Variable multiplied(const Variable& gate, const Variable& x, Gate function) {
  switch (function) {
    case Gate::kSilu: return swiglu(gate, x);
    case Gate::kGelu: return geglu(gate, x);
    case Gate::kGeluTanh: return geglu_tanh(gate, x);
  }
  fail<ValueError>("GatedMlpOptions: gate ", int(function), " is none of them");
}

}  // namespace

GatedMlp::GatedMlp(int64_t size, int64_t inner, const GatedMlpOptions& o)
    : gate_proj(gated_product(size, inner, o)),
      up_proj(gated_product(size, inner, o)),
      down_proj(gated_product(inner, size, o)),
      gate_(o.gate) {}

Variable GatedMlp::operator()(const VariableOperand& operand) const {
  const Variable& x = operand.variable(kGatedMlp);
  const int64_t size = gate_proj.in_size();
  CATENA_CHECK(ShapeError, x.ndim() >= 1 && x.shape().back() == size, kGatedMlp,
               ": expected x as (..., ", size, "), got shape ", x.shape());
  return down_proj(multiplied(gate_proj(x), up_proj(x), gate_));
}

}  // namespace catena::functions
