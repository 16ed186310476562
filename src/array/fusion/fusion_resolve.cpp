// Decides the dtypes of fused functions: the same promotion as in separate calls, with a step for
// every conversion.
#include <algorithm>
#include <map>

#include "array/fusion/fusion_graph.h"
#include "array/promotion.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/elementwise_ops.h"
#include "core/scalar_bits.h"

namespace catena::detail {

namespace {

// What promotion needs to know about a node, with the interface that promoted_dtype expects of an
// Operand.
struct NodeType {
  bool number = false;  // weak: an argument, a constant, or computed only from such numbers
  Dtype type{};
  Scalar value;

  Dtype dtype() const { return type; }
  const NodeType* array() const { return number ? nullptr : this; }
  const Scalar& scalar() const { return value; }
};

class Resolver {
 public:
  Resolver(const FusionGraph& graph, std::span<const Operand> arguments, FusedProgram& program)
      : graph_(graph),
        arguments_(arguments),
        program_(program),
        types_(graph.nodes.size()),
        computed_(graph.nodes.size(), -1) {}

  void run(std::span<const int> outputs) {
    std::vector<bool> needed(graph_.nodes.size());
    for (const int output : outputs) needed[size_t(output)] = true;
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      if (!needed[n]) continue;
      for (const int source : graph_.nodes[n].source) {
        if (source >= 0) needed[size_t(source)] = true;
      }
    }
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (needed[n]) resolve(n);
    }
    for (const int output : outputs) {
      program_.outputs.push_back(value_as(output, own_dtype(output)));
    }
  }

 private:
  int add(const FusedValue& value) {
    program_.values.push_back(value);
    return static_cast<int>(program_.values.size()) - 1;
  }

  int add_input(int argument, Dtype dtype, bool number) {
    program_.inputs.push_back({argument, dtype, number});
    FusedValue value{};
    value.kind = FusedValue::kInput;
    value.dtype = dtype;
    value.input = static_cast<int>(program_.inputs.size()) - 1;
    return add(value);
  }

  int add_cast(int source, Dtype dtype) {
    FusedValue value{};
    value.kind = FusedValue::kCast;
    value.dtype = dtype;
    value.source[0] = source;
    return add(value);
  }

  // The node's value in a dtype. It is converted once for all uses.
  int value_as(int node, Dtype dtype) {
    const NodeType& type = types_[size_t(node)];
    const int own = computed_[size_t(node)];  // -1 for numbers that are not computed
    if (own >= 0 && type.type == dtype) return own;
    const auto [place, fresh] = converted_.try_emplace({node, dtype}, -1);
    if (!fresh) return place->second;
    int made = -1;
    if (own >= 0) {
      made = add_cast(own, dtype);
    } else if (graph_.nodes[size_t(node)].kind == FusionNode::kArgument) {
      made = add_input(graph_.nodes[size_t(node)].argument, dtype, true);
    } else {
      FusedValue value{};
      value.kind = FusedValue::kNumber;
      value.dtype = dtype;
      value.bits = scalar_bits(type.value, dtype);
      made = add(value);
    }
    return place->second = made;
  }

  void resolve(size_t n) {
    const FusionNode& node = graph_.nodes[n];
    NodeType& type = types_[n];
    switch (node.kind) {
      case FusionNode::kArgument: {
        const Operand& argument = arguments_[size_t(node.argument)];
        type.number = argument.array() == nullptr;
        if (type.number) {
          type.value = argument.scalar();
        } else {
          type.type = argument.array()->dtype();
          computed_[n] = add_input(node.argument, type.type, false);
        }
        return;
      }
      case FusionNode::kNumber:
        type.number = true;
        type.value = node.scalar;
        return;
      case FusionNode::kCast:
      case FusionNode::kReduction:  // the reduction itself decides its dtype
        type.type = node.kind == FusionNode::kCast ? node.dtype : own_dtype(node.source[0]);
        computed_[n] = value_as(node.source[0], type.type);
        return;
      case FusionNode::kOp: return resolve_op(n);
    }
  }

  Dtype own_dtype(int node) const {
    const NodeType& type = types_[size_t(node)];
    return computed_[size_t(node)] < 0 ? type.value.default_dtype() : type.type;
  }

  // As for arrays. For arguments that are numbers a program may depend on their kind only.
  bool compares_out_of_range(size_t n, const NodeType (&operands)[3], FusedValue& value) {
    const FusionNode& node = graph_.nodes[n];
    for (int k = 0; info(node.op).inputs == 2 && k < 2; ++k) {
      const FusionNode& source = graph_.nodes[size_t(node.source[k])];
      const NodeType& other = operands[1 - k];
      if (source.kind != FusionNode::kNumber || other.number) continue;
      const auto truth = comparison_out_of_range(node.op, k, other.type, source.scalar);
      if (!truth) continue;
      value.op = *truth ? ops::equal : ops::not_equal;
      value.compute = other.type;
      value.dtype = types_[n].type = Dtype::kBool;
      value.source[0] = value.source[1] = value_as(node.source[1 - k], other.type);
      computed_[n] = add(value);
      return true;
    }
    return false;
  }

  int add_operation(ElementwiseOp op, Dtype compute, int first, int second) {
    FusedValue value{};
    value.kind = FusedValue::kOp;
    value.op = op;
    value.compute = compute;
    value.dtype = natural_result(op, compute);
    value.source[0] = first;
    value.source[1] = second;
    return add(value);
  }

  // As for arrays.
  bool compares_with_unsigned(size_t n, const NodeType (&operands)[3]) {
    const FusionNode& node = graph_.nodes[n];
    if (info(node.op).inputs != 2 || operands[0].number || operands[1].number) return false;
    const auto place = signed_beside_unsigned(node.op, operands[0].type, operands[1].type);
    if (!place) return false;
    const int first = value_as(node.source[0], Dtype::kUInt64),
              second = value_as(node.source[1], Dtype::kUInt64);
    const int compared = add_operation(node.op, Dtype::kUInt64, first, second);
    const bool if_negative = *comparison_if_less(node.op, *place);
    FusedValue zero{};
    zero.kind = FusedValue::kNumber;
    zero.dtype = Dtype::kInt64;
    const int numbers = value_as(node.source[*place], Dtype::kInt64), nothing = add(zero);
    const int sign = add_operation(if_negative ? ops::less : ops::greater_equal, Dtype::kInt64,
                                   numbers, nothing);
    types_[n].type = Dtype::kBool;
    computed_[n] = add_operation(if_negative ? ops::logical_or : ops::logical_and, Dtype::kBool,
                                 sign, compared);
    return true;
  }

  void resolve_op(size_t n) {
    const FusionNode& node = graph_.nodes[n];
    const ElementwiseInfo& row = info(node.op);
    NodeType operands[3];
    for (int k = 0; k < row.inputs; ++k) operands[k] = types_[size_t(node.source[k])];
    const bool numbers = std::all_of(operands, operands + row.inputs,
                                     [](const NodeType& operand) { return operand.number; });
    keep_computed_integers(node, operands, row.inputs);
    FusedValue value{};
    value.kind = FusedValue::kOp;
    value.op = node.op;
    if (compares_out_of_range(n, operands, value) || compares_with_unsigned(n, operands)) return;
    const EntryScope call(row.name);
    value.compute = dtype_in_class(row, promoted_dtype(row, operands));
    value.dtype = natural_result(node.op, value.compute);
    for (int k = 0; k < row.inputs; ++k)
      value.source[k] = value_as(node.source[k], operand_dtype(node.op, k, value.compute));
    types_[n].type = value.dtype;
    types_[n].number = numbers;
    if (numbers) types_[n].value = zero_of(value.dtype);
    computed_[n] = add(value);
  }

  // Stands for a number that only the kernel knows, because promotion needs its kind only.
  static Scalar zero_of(Dtype dtype) {
    return is_float(dtype) ? Scalar(0.0) : dtype == Dtype::kBool ? Scalar(false) : Scalar(0);
  }

  // Whether a computed integer fits a narrower dtype is not known before the kernel runs. Beside
  // integer arrays it keeps its own dtype, so that nothing wraps unnoticed.
  void keep_computed_integers(const FusionNode& node, NodeType (&operands)[3], int count) const {
    const bool beside = std::any_of(operands, operands + count, [](const NodeType& operand) {
      return !operand.number && !is_float(operand.type);
    });
    for (int k = 0; beside && k < count; ++k) {
      const bool computed = operands[k].number && computed_[size_t(node.source[k])] >= 0;
      if (computed && is_int(operands[k].type)) operands[k].number = false;
    }
  }

  const FusionGraph& graph_;
  std::span<const Operand> arguments_;
  FusedProgram& program_;
  std::vector<NodeType> types_;
  std::vector<int> computed_;  // value of a node in its own dtype
  std::map<std::pair<int, Dtype>, int> converted_;
};

}  // namespace

void resolve_program(const FusionGraph& graph, std::span<const int> outputs,
                     std::span<const Operand> arguments, FusedProgram& program) {
  Resolver(graph, arguments, program).run(outputs);
  CATENA_CHECK(ValueError,
               program.inputs.size() + program.outputs.size() <= size_t(kMaxFusedOperands),
               "fuse: ", program.inputs.size(), " operands and ", program.outputs.size(),
               " results in one kernel, at most ", kMaxFusedOperands,
               " of both together; a number used in several dtypes counts once for each");
}

}  // namespace catena::detail
