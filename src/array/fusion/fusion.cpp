// Calls of fused functions: shapes, plans by dtype, results.
#include "catena/array/fusion.h"

#include <array>
#include <limits>

#include "array/fusion/fusion_graph.h"
#include "array/memory_order.h"
#include "catena/core/call_scope.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/elementwise.h"
#include "core/scalar_bits.h"

namespace catena::detail {

namespace {

struct CallTypes {
  Device device;
  uint64_t types = 0;
};

CallTypes describe(std::span<const Operand> arguments) {
  CallTypes call;
  const Array* first = nullptr;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const Array* a = arguments[k].array();
    uint64_t code = 0;
    if (a == nullptr) {
      code = kDtypeCount + uint64_t(arguments[k].scalar().default_dtype());
    } else {
      CATENA_CHECK(ValueError, a->defined(), "fuse: argument ", k + 1, " is an undefined array");
      code = uint64_t(a->dtype());
      if (first)
        check_same_device("fuse", *first, *a);
      else
        first = a;
    }
    call.types = call.types * (2 * kDtypeCount) + code;
  }
  call.device = first ? first->device() : current_device();
  return call;
}

// The plan of some outputs for the arguments' dtypes, made at its first use.
const FusionPlan& plan_of(FusionState& state, FusionTraceResult& trace, const CallTypes& call,
                          uint32_t outputs, std::span<const Operand> arguments) {
  const std::lock_guard lock(state.mutex);
  for (const auto& plan : trace.plans) {
    if (plan->types == call.types && plan->outputs == outputs) return *plan;
  }
  auto plan = std::make_unique<FusionPlan>();
  plan->types = call.types;
  plan->outputs = outputs;
  std::vector<int> nodes;
  for (size_t k = 0; k < trace.outputs.size(); ++k) {
    if ((outputs >> k) & 1) nodes.push_back(trace.outputs[k]);
  }
  resolve_program(*trace.graph, nodes, arguments, plan->program);
  trace.plans.push_back(std::move(plan));
  return *trace.plans.back();
}

Shape shape_of(const FusionNode& node, std::span<const Operand> arguments) {
  Shape shape;
  bool any = false;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const Array* a = arguments[k].array();
    if (a == nullptr || !((node.arguments >> k) & 1)) continue;
    if (!any)
      shape = a->shape();
    else if (a->shape() != shape)
      shape = broadcast_shapes("fuse", shape, a->shape());
    any = true;
  }
  return shape;
}

// Inputs of a call, broadcast to the loop's shape.
struct BoundInputs {
  Array views[kMaxFusedOperands];

  void bind(FusedCall& call, std::span<const Operand> arguments) {
    for (size_t k = 0; k < call.program->inputs.size(); ++k) {
      const FusedInput& input = call.program->inputs[k];
      const Operand& argument = arguments[size_t(input.argument)];
      call.inputs[k] = nullptr;
      if (input.number) {
        // An integer that does not fit the dtype of its partner is refused, as in a separate call.
        if (!argument.scalar().fits(input.dtype)) {
          const EntryScope call("fuse");
          (void)promote(input.dtype, argument.scalar());
        }
        call.numbers[k] = scalar_bits(argument.scalar(), input.dtype);
      } else if (argument.array()->shape() == call.shape) {
        call.inputs[k] = argument.array();
      } else {
        views[k] = argument.array()->broadcast_to(call.shape);
        call.inputs[k] = &views[k];
      }
    }
  }

  // The memory order of results.
  MemoryOrder order(const FusedCall& call) const {
    return common_order({call.inputs, call.program->inputs.size()}, call.shape.ndim());
  }

  // Lets the loop visit the axes in this order.
  void turn(FusedCall& call, const MemoryOrder& order) {
    for (size_t k = 0; k < call.program->inputs.size(); ++k) {
      if (call.inputs[k] == nullptr) continue;
      views[k] = in_order(*call.inputs[k], order);
      call.inputs[k] = &views[k];
    }
    Shape turned;
    for (const int64_t axis : order.axes(call.shape.ndim()))
      turned.push_back(call.shape[size_t(axis)]);
    call.shape = turned;
  }
};

// The element-wise outputs of `group`, in the memory order of the inputs. Kernels are fastest in C
// order, so the loop visits the axes in the order of memory.
void run_elementwise(uint32_t group, Device device, FusedCall& call, BoundInputs& bound,
                     std::span<Array> results) {
  const MemoryOrder order = bound.order(call);
  const Shape shape = call.shape;
  if (!order.is_c()) bound.turn(call, order);
  std::array<Array, kMaxFusedOperands> turned;
  size_t output = 0;
  for (size_t j = 0; j < results.size(); ++j) {
    if (!((group >> j) & 1)) continue;
    results[j] = Array::uninitialized(shape, call.program->output_dtype(output), device, order);
    turned[output] = in_order(results[j], order);
    call.outputs[output] = &turned[output];
    ++output;
  }
  if (element_count(shape) > 0) kernels::fused(device, call);
}

Dtype sum_dtype(Dtype d) {
  if (is_float(d)) return d;
  return is_unsigned_int(d) ? Dtype::kUInt64 : Dtype::kInt64;
}

// Like the function of this name on arrays.
void describe_reduction(const FusionNode& node, Dtype input, FusedCall& call, Dtype& result) {
  const std::string_view name = node.name;
  result = input;
  if (name == "sum" || name == "prod") {
    call.reduction = name == "sum" ? ReduceOp::kSum : ReduceOp::kProd;
    result = sum_dtype(input);
  } else if (name == "mean") {
    call.reduction = ReduceOp::kSum;
    call.mean = true;
    result = is_float(input) ? input : Dtype::kFloat64;
  } else if (name == "amax" || name == "amin") {
    call.reduction = name == "amax" ? ReduceOp::kMax : ReduceOp::kMin;
  } else {
    call.reduction = name == "all" ? ReduceOp::kAll : ReduceOp::kAny;
    result = Dtype::kBool;
  }
  const bool logical = result == Dtype::kBool && (name == "all" || name == "any");
  if (node.options.dtype && !logical) result = *node.options.dtype;
  CATENA_CHECK(DtypeError, !call.mean || is_float(result),
               "fuse: mean: expected a floating dtype for the result, got ", result);
}

Array run_reduction(const FusionNode& node, FusedCall& call, Device device) {
  Dtype result{};
  describe_reduction(node, call.program->output_dtype(0), call, result);
  Shape kept = call.shape, squeezed;
  int64_t count = 1;
  for (const int64_t axis : normalize_axes(node.name, node.options.axes, call.shape.ndim())) {
    call.axes |= 1u << axis;
    count *= call.shape[size_t(axis)];
    kept[size_t(axis)] = 1;
  }
  for (int d = 0; d < call.shape.ndim(); ++d) {
    if (!((call.axes >> d) & 1)) squeezed.push_back(call.shape[size_t(d)]);
  }
  const bool extreme = call.reduction == ReduceOp::kMax || call.reduction == ReduceOp::kMin;
  CATENA_CHECK(ValueError, count > 0 || !extreme, "fuse: ", node.name,
               ": no elements along the reduced axes of shape ", call.shape);
  const Array output = Array::uninitialized(kept, result, device);
  call.outputs[0] = &output;
  call.reduces = true;
  if (output.size() > 0 && count == 0) {
    const bool one = call.reduction == ReduceOp::kProd || call.reduction == ReduceOp::kAll;
    output.fill(call.mean ? Scalar(std::numeric_limits<double>::quiet_NaN()) : Scalar(int{one}));
  } else if (output.size() > 0) {
    kernels::fused(device, call);
  }
  return node.options.keepdims ? output : output.reshape(squeezed);
}

}  // namespace

std::vector<Array> run_fusion(FusionState& state, std::span<const Operand> arguments) {
  const CallScope scope("fuse");
  FusionTraceResult& trace = *state.traces[arguments.size()];
  const CallTypes described = describe(arguments);
  const size_t count = trace.outputs.size();
  std::vector<Array> results(count);
  std::vector<Shape> shapes(count);
  for (size_t k = 0; k < count; ++k)
    shapes[k] = shape_of(trace.graph->nodes[size_t(trace.outputs[k])], arguments);
  uint32_t done = 0;
  for (size_t k = 0; k < count; ++k) {
    if ((done >> k) & 1) continue;
    const FusionNode& node = trace.graph->nodes[size_t(trace.outputs[k])];
    const bool reduces = node.kind == FusionNode::kReduction;
    uint32_t group = 1u << k;
    for (size_t j = k + 1; j < count && !reduces; ++j) {
      const bool other =
          trace.graph->nodes[size_t(trace.outputs[j])].kind == FusionNode::kReduction;
      if (!other && shapes[j] == shapes[k]) group |= 1u << j;
    }
    done |= group;
    const FusionPlan& plan = plan_of(state, trace, described, group, arguments);
    FusedCall call;
    call.program = &plan.program;
    call.shape = shapes[k];
    BoundInputs bound;
    bound.bind(call, arguments);
    if (reduces) {
      results[k] = run_reduction(node, call, described.device);
      continue;
    }
    run_elementwise(group, described.device, call, bound, results);
  }
  return results;
}

}  // namespace catena::detail
