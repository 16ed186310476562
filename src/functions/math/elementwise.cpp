// One node class serves every row of elementwise.def; what differs is a table of gradient functions
// made from the rows' gradient columns.
#include "catena/functions/math/elementwise.h"

#include <algorithm>
#include <array>
#include <span>

#include "catena/array/elementwise.h"
#include "catena/autograd/mean.h"
#include "catena/functions/array/cast.h"
#include "catena/functions/math/sum.h"
#include "catena/kernels/elementwise.h"
#include "functions/activation/second_order.h"
#include "functions/common/support.h"
#include "kernels/elementwise_rows.h"

namespace catena::functions {
namespace {

// What a gradient column may save: inputs and the output.
constexpr uint8_t None = 0, X0 = 1, X1 = 2, X2 = 4, Y = 8;

// What a gradient expression may name: gy and what its column saves of x0, x1, x2, y.
struct GradientArguments {
  Variable gy;
  Variable inputs[3];
  Scalar numbers[3];
  Variable y;

  VariableOperand operand(int k) const {
    return inputs[k].defined() ? VariableOperand(inputs[k]) : VariableOperand(numbers[k]);
  }
  // As a variable: second-order gradients compose arithmetic on operands, so that a host number
  // becomes a constant of gy's type.
  Variable variable(int k) const {
    return inputs[k].defined()
               ? inputs[k]
               : Variable::constant(full({}, numbers[k], {gy.dtype(), gy.device()}));
  }
};
using Gradient = Variable (*)(const GradientArguments&);

struct GradientColumn {
  Gradient function = nullptr;  // null: not differentiable
  uint8_t saves = None;
  bool constant = false;  // an operand that may not want a gradient
};
struct GradientRow {
  GradientColumn columns[3];
};
constexpr GradientColumn ND;

}  // namespace

// The functions themselves; those of gradient rows are used by gradient expressions only.
static Variable apply(ElementwiseOp op, std::initializer_list<const VariableOperand*> operands);
#define CATENA_EW1(functor, name, ...) \
  Variable name(const VariableOperand& x) { return apply(ElementwiseOp::k##name, {&x}); }
#define CATENA_EW2(functor, name, ...)                                  \
  Variable name(const VariableOperand& x0, const VariableOperand& x1) { \
    return apply(ElementwiseOp::k##name, {&x0, &x1});                   \
  }
#define CATENA_EW3(functor, name, ...)                                                             \
  Variable name(const VariableOperand& x0, const VariableOperand& x1, const VariableOperand& x2) { \
    return apply(ElementwiseOp::k##name, {&x0, &x1, &x2});                                         \
  }
#include "catena/kernels/detail/elementwise_activation.def"
#include "catena/kernels/detail/elementwise_arithmetic.def"
#include "catena/kernels/detail/elementwise_gradient.def"
#include "catena/kernels/detail/elementwise_math.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3

namespace {

// An operand that an expression's column does not save: nothing takes it.
struct NotSaved {};

// Operand k or the output for an expression whose column saves `saves`. First-order gradients are
// one operation, which takes host numbers as they are; the compositions of second order get
// variables.
template <bool kComposed, uint8_t saves, int k>
auto operand(const GradientArguments& a) {
  if constexpr ((saves >> k & 1) == 0)
    return NotSaved();
  else if constexpr (kComposed)
    return a.variable(k);
  else
    return a.operand(k);
}
template <uint8_t saves>
const auto& output(const GradientArguments& a) {
  static constexpr NotSaved kNotSaved;
  if constexpr ((saves & Y) == 0)
    return kNotSaved;
  else
    return a.y;
}

// One gradient column: the expression as a function of the arguments, and what it saves.
#define CATENA_G(saves, ...)                                              \
  GradientColumn {                                                        \
    [](const GradientArguments& a) -> Variable {                          \
      [[maybe_unused]] const auto& gy = a.gy;                             \
      [[maybe_unused]] const auto& y = output<(saves)>(a);                \
      [[maybe_unused]] const auto x0 = operand<kComposed, (saves), 0>(a); \
      [[maybe_unused]] const auto x1 = operand<kComposed, (saves), 1>(a); \
      [[maybe_unused]] const auto x2 = operand<kComposed, (saves), 2>(a); \
      return __VA_ARGS__;                                                 \
    },                                                                    \
        (saves)                                                           \
  }
#define CATENA_K(sample) \
  GradientColumn { .constant = true }

using GradientRows = std::array<GradientRow, kElementwiseRows>;
#define CATENA_ROW(name, ...) rows[size_t(ElementwiseOp::k##name)] = {{__VA_ARGS__}};
#define CATENA_EW1(functor, name, caption, types, form, cost, low, high, g0) CATENA_ROW(name, g0)
#define CATENA_EW2(functor, name, caption, types, form, cost, low, high, g0, g1) \
  CATENA_ROW(name, g0, g1)
#define CATENA_EW3(functor, name, caption, types, form, cost, low, high, g0, g1, g2) \
  CATENA_ROW(name, g0, g1, g2)
constexpr void add_operations(GradientRows& rows) {
  constexpr bool kComposed = false;
#include "catena/kernels/detail/elementwise_activation.def"
#include "catena/kernels/detail/elementwise_arithmetic.def"
#include "catena/kernels/detail/elementwise_logic.def"
#include "catena/kernels/detail/elementwise_math.def"
}
constexpr void add_gradients(GradientRows& rows) {
  constexpr bool kComposed = true;
#include "catena/kernels/detail/elementwise_gradient.def"
}
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
#undef CATENA_ROW
#undef CATENA_G
#undef CATENA_K

constexpr GradientRows kRows = [] {
  GradientRows rows{};
  add_operations(rows);
  add_gradients(rows);
  return rows;
}();

const GradientRow& row_of(ElementwiseOp op) { return kRows[static_cast<size_t>(op)]; }

// Captions in graph drawings; an operand that is a host number is shown in its place.
std::string caption(ElementwiseOp op, const Scalar* left, const Scalar* right) {
  const auto shown = [](const Scalar& value) {
    const std::string text = to_string(value);
    return text.starts_with('-') ? "(" + text + ")" : text;
  };
  std::string text = info(op).caption;
  if (!text.starts_with("_ ")) return text;
  if (right) text.replace(text.size() - 1, 1, shown(*right));
  if (left) text.replace(0, 1, shown(*left));
  return text;
}

class ElementwiseNode final : public FunctionNode {
 public:
  ElementwiseNode(ElementwiseOp op, std::span<const VariableOperand* const> operands)
      : op_(op), count_(static_cast<int8_t>(operands.size())) {
    int8_t next = 0;
    for (int k = 0; k < count_; ++k) {
      const VariableOperand& operand = *operands[size_t(k)];
      position_[k] = operand.is_number() ? int8_t{-1} : next++;
      numbers_[k] = operand.number();
    }
  }

  std::string label() const override {
    return caption(op_, position_[0] < 0 ? &numbers_[0] : nullptr,
                   count_ > 1 && position_[1] < 0 ? &numbers_[1] : nullptr);
  }

  void backward(BackwardContext& context) override {
    GradientArguments arguments;
    arguments.gy = context.grad_output();
    if (!arguments.gy.defined()) return;
    const GradientRow& row = row_of(op_);
    fill(arguments, context, row);
    for (int k = 0; k < count_; ++k) {
      if (wants(context, row, k))
        give_fitting(context, position_[k], row.columns[k].function(arguments));
    }
  }

 private:
  bool wants(BackwardContext& context, const GradientRow& row, int k) const {
    return position_[k] >= 0 && row.columns[k].function && context.needs(position_[k]);
  }

  // Fetches what the wanted gradients use.
  void fill(GradientArguments& arguments, BackwardContext& context, const GradientRow& row) const {
    uint8_t used = 0;
    for (int k = 0; k < count_; ++k) {
      if (wants(context, row, k)) used |= row.columns[k].saves;
    }
    for (int k = 0; k < count_; ++k) {
      arguments.numbers[k] = numbers_[k];
      if ((used >> k & 1) && position_[k] >= 0) arguments.inputs[k] = context.input(position_[k]);
    }
    if (used & Y) arguments.y = context.output();
  }

  // Brings a gradient of the output's type to the input's: sums over broadcast axes, casts.
  void give_fitting(BackwardContext& context, int i, Variable g) const {
    if (!g.defined()) return;
    const VariableNode& input = *inputs()[size_t(i)];
    if (g.dtype() != input.dtype) g = cast(g, input.dtype);
    if (g.shape() == input.shape) return context.set_grad(i, g);
    if (context.create_graph()) return context.set_grad(i, sum_to(g, input.shape));
    give_sum(context, i, g.data(), input.shape);
  }

  ElementwiseOp op_;
  int8_t count_;
  int8_t position_[3] = {-1, -1, -1};  // of each operand among the inputs; -1: a number
  Scalar numbers_[3];
};

// Of numbers and, in order, of the call's operands.
Array compute(ElementwiseOp op, std::span<const VariableOperand* const> operands,
              const FunctionCall& call) {
  size_t next = 0;
  const auto operand = [&](size_t k) {
    return operands[k]->is_number() ? Operand(operands[k]->number()) : Operand(call[next++].data());
  };
  if (operands.size() == 1) return elementwise(op, {operand(0)});
  if (operands.size() == 2) return elementwise(op, {operand(0), operand(1)});
  return elementwise(op, {operand(0), operand(1), operand(2)});
}

[[noreturn]] void refuse_gradient(ElementwiseOp op, size_t k) {
  fail<GradientError>(info(op).name, ": operand ", k,
                      " is a constant of the function and gets no gradient, but it requires one; "
                      "give a number or its data()");
}

// Where an operand is a condition, numbers are probably not meant as one: InvalidType.
void check_condition(ElementwiseOp op, const VariableOperand& operand) {
  if (operand.is_number()) return;
  const TypeOf condition(operand.variable(info(op).name).data(), "condition");
  if (condition.array->dtype() == Dtype::kBool) [[likely]]
    return;
  Checks([op] { return caption(op, nullptr, nullptr); }, condition)
      .advised([] {
        return "The condition is a bool array: compare, as in greater(x, 0), or convert it with "
               ".astype(dtype::bool_).";
      })
      .require(condition.dtype() == Dtype::kBool);
}

void check_floats(ElementwiseOp op, const FunctionCall& call) {
  for (size_t i = 0; i < call.size(); ++i) {
    if (!call[i].requires_grad()) continue;
    const TypeOf in(call[i].data(), "x", call.size() > 1 ? static_cast<int>(i) : -1);
    Checks([op] { return caption(op, nullptr, nullptr); }, in).require_float(in);
  }
}

// Saves what the gradients of the operands that want one use.
IntrusivePtr<ElementwiseNode> node_of(ElementwiseOp op,
                                      std::span<const VariableOperand* const> operands,
                                      const FunctionCall& call, const Array& output) {
  const GradientRow& gradients = row_of(op);
  uint8_t used = 0;
  size_t i = 0;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k]->is_number()) continue;
    const GradientColumn& column = gradients.columns[k];
    if (call[i].requires_grad()) {
      if (column.function) used |= column.saves;
      if (column.constant) [[unlikely]]
        refuse_gradient(op, k);
    }
    ++i;
  }
  auto node = make_node<ElementwiseNode>(op, operands);
  i = 0;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k]->is_number()) continue;
    if (used >> k & 1) node->save_input(static_cast<int>(i), call[i]);
    ++i;
  }
  if (used & Y) node->save_output(0, output);
  return node;
}

// Of a mean, or a sum of means, that is changed by a number, which leaves it one in other units.
void hand_on_changed(ElementwiseOp op, std::span<const VariableOperand* const> operands,
                     const Variable& from, const Variable& to) {
  const bool is_first = operands[0]->is_number();
  const auto number = [&] { return operands[is_first ? 0 : 1]->number().to_double(); };
  const auto become = [&](double factor, double offset) {
    catena::detail::hand_on_scaled_means(from, factor, offset, to);
  };
  switch (op) {
    case ElementwiseOp::kmultiply: return become(number(), 0);
    case ElementwiseOp::kadd: return become(1, number());
    case ElementwiseOp::ksubtract: return is_first ? become(-1, number()) : become(1, -number());
    case ElementwiseOp::knegative: return become(-1, 0);
    case ElementwiseOp::kpositive: return become(1, 0);
    case ElementwiseOp::kdivide: return is_first ? void() : become(1 / number(), 0);
    default: return;
  }
}

// What the result is of the means that its operands are, or are sums of.
void hand_on_means(ElementwiseOp op, std::span<const VariableOperand* const> operands,
                   const FunctionCall& call, const Variable& result) {
  const auto has_means = [](const Variable* v) {
    const VariableNode* node = v->body()->node.get();
    return node != nullptr && node->mean;
  };
  const auto inputs = call.inputs();
  if (std::none_of(inputs.begin(), inputs.end(), has_means) || result.size() != 1) [[likely]]
    return;
  if (inputs.size() == 1) return hand_on_changed(op, operands, call[0], result);
  const bool adds = op == ElementwiseOp::kadd;
  if (adds || op == ElementwiseOp::ksubtract)
    catena::detail::note_sum_of_means(call[0], call[1], adds ? 1 : -1, result);
}

}  // namespace

static Variable apply(ElementwiseOp op, std::initializer_list<const VariableOperand*> list) {
  const std::span<const VariableOperand* const> operands(list.begin(), list.size());
  const ElementwiseInfo& row = info(op);
  const Variable* variables[3];
  size_t count = 0;
  for (const VariableOperand* operand : operands)
    if (!operand->is_number()) variables[count++] = &operand->variable(row.name);
  if (config().type_check && row.first_is_bool()) check_condition(op, *operands[0]);
  FunctionCall call(row.name, Autocast::kNone, std::span<const Variable* const>(variables, count));
  const Array output = compute(op, operands, call);
  if (!row.differentiable) return call.unrecorded(output);
  const Variable result = call.record(output, [&] {
    if (config().type_check && !row.first_is_bool()) check_floats(op, call);
    return node_of(op, operands, call, output);
  });
  hand_on_means(op, operands, call, result);
  return result;
}

}  // namespace catena::functions
