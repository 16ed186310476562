// Gated linear units: one node, with one kernel each way.
#include "catena/functions/activation/gated.h"

#include "catena/functions/activation/elementwise.h"
#include "catena/functions/array/concat.h"
#include "catena/functions/array/split_axis.h"
#include "catena/kernels/gated.h"
#include "functions/common/advice.h"
#include "functions/common/common_rows.h"
#include "functions/common/gradient_target.h"
#include "functions/common/parts.h"
#include "functions/common/support.h"

namespace catena::functions {

// Rows of the table.
Variable silu_grad(const VariableOperand& gy, const VariableOperand& x);
Variable gelu_grad(const VariableOperand& gy, const VariableOperand& x);
Variable gelu_tanh_grad(const VariableOperand& gy, const VariableOperand& x);

namespace {

struct Kind {
  const char* label;
  GateFunction function;
  Variable (*value)(const VariableOperand& x);
  Variable (*slope)(const VariableOperand& gy, const VariableOperand& x);
};
constexpr Kind kSwiglu{"SwiGLU", GateFunction::kSilu, &silu, &silu_grad},
    kGeglu{"GeGLU", GateFunction::kGelu, &gelu, &gelu_grad},
    kGegluTanh{"GeGLUTanh", GateFunction::kGeluTanh, &gelu_tanh, &gelu_tanh_grad};

// The two halves of the last axis, which are views.
struct Halves {
  explicit Halves(const Array& packed) : gate(part(packed, 0)), x(part(packed, 1)) {}
  Array gate, x;

 private:
  static Array part(const Array& packed, int64_t i) {
    const int last = packed.ndim() - 1;
    const int64_t half = packed.shape()[size_t(last)] / 2;
    return GetItem::slice(packed.shape(), last, i * half, (i + 1) * half).forward(packed);
  }
};

// Arrays of a call as the kernels take them. Operands are copied where their numbers are not in
// rows; results are.
class Rows {
 public:
  Rows(std::vector<Array> operands, std::vector<Array> results, const MemoryOrder& order)
      : operands_(std::move(operands)), results_(std::move(results)) {
    std::optional<CommonRows> found = common(order, false);
    if (!found) {
      for (Array& a : operands_)
        if (!a.is_dense() || a.order() != order) a = dense_copy(a, order);
      found = common(order, true);  // halves of an axis of two are single numbers
    }
    common_ = *found;
  }
  int64_t rows() const { return common_.rows; }
  int64_t columns() const { return common_.columns; }
  GatedRows operand(size_t i) const { return {&operands_[i], common_.steps[i]}; }
  GatedRows result(size_t i) const {
    if (!results_[i].defined()) return {};
    size_t at = operands_.size();
    for (size_t k = 0; k < i; ++k) at += results_[k].defined();
    return {&results_[i], common_.steps[at]};
  }

 private:
  std::optional<CommonRows> common(const MemoryOrder& order, bool single_numbers) const {
    std::vector<const Array*> all;
    for (const Array& a : operands_) all.push_back(&a);
    for (const Array& a : results_)
      if (a.defined()) all.push_back(&a);
    return CommonRows::of(all, order, single_numbers);
  }
  std::vector<Array> operands_, results_;
  CommonRows common_;
};

// Operands are gate and x, or packed alone.
class GatedNode final : public FunctionNode {
 public:
  GatedNode(const Kind& kind, bool packed, const MemoryOrder& order)
      : kind_(kind), packed_(packed), order_(order) {}
  std::string label() const override { return kind_.label; }
  bool splits() const override { return false; }  // one kernel makes both gradients

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (context.create_graph()) return backward_recorded(context, gy);
    if (gy.data().size() == 0) return give_zeros(context, *this);
    if (packed_) return backward_packed(context, gy.data());
    const Array gate = context.input(0).data();
    // x serves the gradient of the gate alone.
    const Array x = context.needs(0) ? context.input(1).data() : gate;
    const Array g_gate = context.needs(0) ? like(gate) : Array(),
                gx = context.needs(1) ? like(gate) : Array();
    run({gate, x, gy.data()}, {g_gate, gx});
    if (g_gate.defined()) context.set_grad(0, Variable::constant(g_gate));
    if (gx.defined()) context.set_grad(1, Variable::constant(gx));
  }

 private:
  Array like(const Array& a) const {
    return Array::uninitialized(a.shape(), a.dtype(), a.device(), order_);
  }
  void run(std::vector<Array> operands, std::vector<Array> results) const {
    const Rows rows(std::move(operands), std::move(results), order_);
    kernels::gated_grad(rows.operand(0).array->device(),
                        {kind_.function, rows.rows(), rows.columns(), rows.operand(0),
                         rows.operand(1), rows.operand(2), rows.result(0), rows.result(1)});
  }
  void backward_packed(BackwardContext& context, const Array& gy) const {
    const Array packed = context.input(0).data(), g = like(packed);
    const Halves from(packed), to(g);
    run({from.gate, from.x, gy}, {to.gate, to.x});
    context.set_grad(0, Variable::constant(g));
  }
  // The same on variables.
  void backward_recorded(BackwardContext& context, const Variable& gy) const {
    if (packed_) {
      const Variables parts = split_axis(context.input(0), 2, -1);
      return context.set_grad(
          0, concat({kind_.slope(gy * parts[1], parts[0]), gy * kind_.value(parts[0])}, -1));
    }
    const Variable gate = context.input(0);
    if (context.needs(0)) context.set_grad(0, kind_.slope(gy * context.input(1), gate));
    if (context.needs(1)) context.set_grad(1, gy * kind_.value(gate));
  }

  const Kind& kind_;
  bool packed_;
  MemoryOrder order_;
};

// Of operands that are checked; `gate` and `x` are parts of them.
Variable apply_checked(FunctionCall& call, const Kind& kind, const Array& gate, const Array& x,
                       const MemoryOrder& order) {
  const Array y = Array::uninitialized(gate.shape(), gate.dtype(), gate.device(), order);
  if (y.size() > 0) {
    const Rows rows({gate, x}, {y}, order);
    kernels::gated(y.device(), {kind.function, rows.rows(), rows.columns(), rows.operand(0),
                                rows.operand(1), rows.result(0)});
  }
  return call.record(y, [&] {
    auto node = make_node<GatedNode>(kind, call.size() == 1, order);
    node->save_input(0, call[0]);
    if (call.size() > 1 && call[0].requires_grad()) node->save_input(1, call[1]);
    return node;
  });
}

Variable apply(const Kind& kind, const VariableOperand& gate_operand,
               const VariableOperand& x_operand) {
  FunctionCall call(kind.label, Autocast::kWidest, gate_operand, x_operand);
  const Array &gate = call[0].data(), &x = call[1].data();
  const TypeOf gates(gate, "gate"), numbers(x, "x");
  const Checks checks(call.named(), gates, numbers);
  checks.require_float(gates);
  checks.advised([&] { return dtype_advice(gate, x); }).require(numbers.dtype() == gates.dtype());
  const auto advised =
      checks.advised("Expected are a gate and an x of one shape; broadcast_to makes them that.");
  advised.require(numbers.ndim() == gates.ndim());
  for (int i = 0; i < gate.ndim(); ++i) advised.require(numbers.shape(i) == gates.shape(i));
  call.require_one_device();
  return apply_checked(call, kind, gate, x, gate.order());
}

Variable apply(const Kind& kind, const VariableOperand& operand) {
  FunctionCall call(kind.label, Autocast::kNone, operand);
  const Array& packed = call[0].data();
  const TypeOf in(packed, "packed");
  const Checks checks(call.named(), in);
  checks.require_float(in);
  const auto advised = checks.advised(
      "The last axis is expected to hold the gates and then as many numbers that they multiply.");
  advised.require(in.ndim() >= 1);
  const int last = packed.ndim() - 1;
  advised.require(shown(in.shape(last).get() % 2, message("packed.shape[", last, "] % 2")) == 0);
  const Halves halves(packed);
  return apply_checked(call, kind, halves.gate, halves.x, packed.order());
}

}  // namespace

Variable swiglu(const VariableOperand& gate, const VariableOperand& x) {
  return apply(kSwiglu, gate, x);
}
Variable swiglu(const VariableOperand& packed) { return apply(kSwiglu, packed); }
Variable geglu(const VariableOperand& gate, const VariableOperand& x) {
  return apply(kGeglu, gate, x);
}
Variable geglu(const VariableOperand& packed) { return apply(kGeglu, packed); }
Variable geglu_tanh(const VariableOperand& gate, const VariableOperand& x) {
  return apply(kGegluTanh, gate, x);
}
Variable geglu_tanh(const VariableOperand& packed) { return apply(kGegluTanh, packed); }

}  // namespace catena::functions
