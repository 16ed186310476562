// One node class serves every row of elementwise.def; what differs is a table of gradient functions
// made from the rows' gradient columns.
#include "catena/functions/math.h"

#include <string_view>

#include "catena/array/elementwise.h"
#include "catena/functions/array.h"
#include "functions/support.h"

namespace catena::functions {
namespace {

// What a gradient expression may name: gy, x0, x1, x2, y. Operands the expression does not use are
// left empty.
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

// In a gradient column: no gradient.
struct NotDifferentiable {
  operator Variable() const { return Variable(); }
};
constexpr NotDifferentiable ND;

constexpr bool is_name_character(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
// Whether an expression uses a name: what must be saved follows from the gradient columns.
constexpr bool mentions(std::string_view expression, std::string_view name) {
  for (size_t at = expression.find(name); at != std::string_view::npos;
       at = expression.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool starts = at == 0 || !is_name_character(expression[at - 1]);
    if (starts && (end == expression.size() || !is_name_character(expression[end]))) return true;
  }
  return false;
}

constexpr uint8_t kUsesOutput = 8;  // bits 0 to 2: the inputs
constexpr uint8_t uses(std::string_view expression) {
  uint8_t mask = mentions(expression, "y") ? kUsesOutput : 0;
  if (mentions(expression, "x0")) mask |= 1;
  if (mentions(expression, "x1")) mask |= 2;
  if (mentions(expression, "x2")) mask |= 4;
  return mask;
}

struct GradientColumn {
  Gradient function = nullptr;  // null: not differentiable
  uint8_t uses = 0;
};
struct GradientRow {
  GradientColumn columns[3];
};

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
#include "catena/kernels/detail/elementwise_arithmetic.def"
#include "catena/kernels/detail/elementwise_gradient.def"
#include "catena/kernels/detail/elementwise_math.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3

namespace {

// First-order gradients are one operation, which takes host numbers as they are; the compositions
// of second order, in the rows named after gradients, get variables.
constexpr bool is_gradient_row(std::string_view name) {
  return name.find("_grad") != std::string_view::npos;
}
template <bool kComposed>
auto access(const GradientArguments& a, int k, bool used) {
  if constexpr (kComposed)
    return used ? a.variable(k) : Variable();
  else
    return a.operand(k);
}

// One gradient column: the expression as a function of the arguments, and what it uses.
#define CATENA_COLUMN(name, g)                                                      \
  std::string_view(#g) == "ND" ? GradientColumn{} : GradientColumn {                \
    [](const GradientArguments& a) -> Variable {                                    \
      constexpr bool composed = is_gradient_row(#name);                             \
      [[maybe_unused]] const auto& gy = a.gy;                                       \
      [[maybe_unused]] const auto& y = a.y;                                         \
      [[maybe_unused]] const auto x0 = access<composed>(a, 0, (uses(#g) & 1) != 0); \
      [[maybe_unused]] const auto x1 = access<composed>(a, 1, (uses(#g) & 2) != 0); \
      [[maybe_unused]] const auto x2 = access<composed>(a, 2, (uses(#g) & 4) != 0); \
      return g;                                                                     \
    },                                                                              \
        uses(#g)                                                                    \
  }

constexpr GradientRow kRows[] = {
#define CATENA_EW1(f, n, t, r, lo, hi, save, g0) {{CATENA_COLUMN(n, g0)}},
#define CATENA_EW2(f, n, t, r, lo, hi, save, g0, g1) {{CATENA_COLUMN(n, g0), CATENA_COLUMN(n, g1)}},
#define CATENA_EW3(f, n, t, r, lo, hi, save, g0, g1, g2) \
  {{CATENA_COLUMN(n, g0), CATENA_COLUMN(n, g1), CATENA_COLUMN(n, g2)}},
#include "catena/kernels/detail/elementwise.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
};
static_assert(std::size(kRows) == size_t(kElementwiseOpCount));

// The save column tells readers what the gradients keep; it must be the truth.
constexpr bool saves(std::string_view column, uint8_t used) {
  return ((used & 7) != 0) == (column == "X" || column == "XY") &&
         ((used & kUsesOutput) != 0) == (column == "Y" || column == "XY");
}
#define CATENA_EW1(f, n, t, r, lo, hi, save, g0) static_assert(saves(#save, uses(#g0)), #n);
#define CATENA_EW2(f, n, t, r, lo, hi, save, g0, g1) \
  static_assert(saves(#save, uses(#g0) | uses(#g1)), #n);
#define CATENA_EW3(f, n, t, r, lo, hi, save, g0, g1, g2) \
  static_assert(saves(#save, uses(#g0) | uses(#g1) | uses(#g2)), #n);
#include "catena/kernels/detail/elementwise.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3

const GradientRow& row_of(ElementwiseOp op) { return kRows[static_cast<int>(op)]; }

// Captions in graph drawings; an operand that is a host number is shown.
std::string caption(ElementwiseOp op, const Scalar* left, const Scalar* right) {
  const auto shown = [](const Scalar& value) {
    const std::string text = to_string(value);
    return text.starts_with('-') ? "(" + text + ")" : text;
  };
  const auto infix = [&](const char* symbol) {
    return (left ? shown(*left) : "_") + " " + symbol + " " + (right ? shown(*right) : "_");
  };
  switch (op) {
    case ElementwiseOp::kadd:
      return infix("+");
    case ElementwiseOp::ksubtract:
      return infix("-");
    case ElementwiseOp::kmultiply:
      return infix("*");
    case ElementwiseOp::kdivide:
      return infix("/");
    case ElementwiseOp::kpower:
      return infix("**");
    case ElementwiseOp::knegative:
      return "__neg__";
    case ElementwiseOp::kabsolute:
      return "|_|";
    case ElementwiseOp::krelu:
      return "ReLU";
    case ElementwiseOp::ksigmoid:
      return "Sigmoid";
    case ElementwiseOp::ktanh:
      return "Tanh";
    case ElementwiseOp::ksoftplus:
      return "Softplus";
    case ElementwiseOp::kwhere:
      return "Where";
    default:
      return info(op).name;
  }
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
      if (wants(context, row, k)) used |= row.columns[k].uses;
    }
    for (int k = 0; k < count_; ++k) {
      arguments.numbers[k] = numbers_[k];
      if ((used >> k & 1) && position_[k] >= 0) arguments.inputs[k] = context.input(position_[k]);
    }
    if (used & kUsesOutput) arguments.y = context.output();
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

Array compute(ElementwiseOp op, std::span<const VariableOperand* const> operands) {
  const auto operand = [&](size_t k) {
    return operands[k]->is_number() ? Operand(operands[k]->number())
                                    : Operand(operands[k]->variable(info(op).name).data());
  };
  if (operands.size() == 1) return elementwise(op, {operand(0)});
  if (operands.size() == 2) return elementwise(op, {operand(0), operand(1)});
  return elementwise(op, {operand(0), operand(1), operand(2)});
}

void check_floats(ElementwiseOp op, std::span<const Variable> inputs) {
  for (const Variable& x : inputs) {
    if (is_float(x.dtype()) || !x.requires_grad()) [[likely]]
      continue;
    Arrays arrays;
    for (const Variable& input : inputs) arrays.push_back(input.data());
    refuse(caption(op, nullptr, nullptr).c_str(), arrays, [&](const TypeInfoTuple& in) {
      type_check::expect(in[static_cast<int>(&x - inputs.data())].dtype().kind() == 'f');
    });
  }
}

}  // namespace

static Variable apply(ElementwiseOp op, std::initializer_list<const VariableOperand*> list) {
  const std::span<const VariableOperand* const> operands(list.begin(), list.size());
  const ElementwiseInfo& row = info(op);
  const Array output = compute(op, operands);
  Variable copies[3];
  int count = 0;
  const Variable* only = nullptr;
  for (const VariableOperand* operand : operands) {
    if (operand->is_number()) continue;
    only = &operand->variable(row.name);
    if (operands.size() > 1) copies[count] = *only;
    ++count;
  }
  if (count == 0) return Variable::constant(output);
  const std::span<const Variable> inputs(operands.size() > 1 ? copies : only, size_t(count));
  if (!must_record(row.name, inputs)) return unrecorded(inputs, output);
  if (!row.differentiable) return Variable::constant(output);
  const GradientRow& gradients = row_of(op);
  uint8_t used = 0;
  int i = 0;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k]->is_number()) continue;
    if (gradients.columns[k].function && inputs[size_t(i)].requires_grad())
      used |= gradients.columns[k].uses;
    ++i;
  }
  if (config().type_check && !row.first_is_bool) check_floats(op, inputs);
  const auto node = make_node<ElementwiseNode>(op, operands);
  i = 0;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (operands[k]->is_number()) continue;
    if (used >> k & 1) node->save_input(i, inputs[size_t(i)]);
    ++i;
  }
  if (used & kUsesOutput) node->save_output(0, output);
  return node->connect(inputs, output);
}

}  // namespace catena::functions
