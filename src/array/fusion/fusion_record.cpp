// Records fused functions: operations on the stand-ins become nodes.
#include "array/fusion/fusion_graph.h"

namespace catena::detail {

namespace {

int add_node(FusionGraph& graph, const FusionNode& node) {
  graph.nodes.push_back(node);
  return static_cast<int>(graph.nodes.size()) - 1;
}

Fused handle(const std::shared_ptr<FusionGraph>& graph, int node) {
  return Fused(FusedRef{graph, node, {}});
}

void check_source(const char* name, const FusionGraph& graph, int node) {
  const FusionNode& source = graph.nodes[size_t(node)];
  CATENA_CHECK(ValueError, source.kind != FusionNode::kReduction, "fuse: ", name,
               " is applied to the result of ", source.name,
               "; a reduction is the last step of a fused function: return it and apply ", name,
               " to the array");
}

int source_of(const char* name, const std::shared_ptr<FusionGraph>& graph, const FusedRef& ref) {
  if (ref.graph == nullptr) {
    FusionNode number;
    number.kind = FusionNode::kNumber;
    number.scalar = ref.scalar;
    return add_node(*graph, number);
  }
  CATENA_CHECK(ValueError, ref.graph == graph, "fuse: ", name,
               " mixes values of two fused functions; pass the arrays as arguments of one");
  check_source(name, *graph, ref.node);
  return ref.node;
}

}  // namespace

Fused record(ElementwiseOp op, std::initializer_list<FusedRef> operands) {
  std::shared_ptr<FusionGraph> graph;
  for (const FusedRef& ref : operands) {
    if (ref.graph && !graph) graph = ref.graph;
  }
  FusionNode node;
  node.kind = FusionNode::kOp;
  node.op = op;
  int k = 0;
  for (const FusedRef& ref : operands) {
    node.source[k] = source_of(info(op).name, graph, ref);
    node.arguments |= graph->nodes[size_t(node.source[k])].arguments;
    ++k;
  }
  return handle(graph, add_node(*graph, node));
}

Fused record_cast(const FusedRef& x, Dtype dtype) {
  CATENA_CHECK(ValueError, x.graph != nullptr, "fuse: astype of a stand-in never assigned");
  FusionNode node;
  node.kind = FusionNode::kCast;
  node.source[0] = source_of("astype", x.graph, x);
  node.dtype = dtype;
  node.arguments = x.graph->nodes[size_t(x.node)].arguments;
  return handle(x.graph, add_node(*x.graph, node));
}

Fused record_reduction(const char* name, const FusedRef& x, const ReduceOptions& options) {
  CATENA_CHECK(ValueError, x.graph != nullptr, "fuse: ", name, " of a stand-in never assigned");
  CATENA_CHECK(ValueError, !options.out.given(), "fuse: ", name,
               " takes no `out` in a fused function; its result is a new array");
  CATENA_CHECK(ValueError, !options.where.given() && !options.initial, "fuse: ", name,
               " takes no `where` or `initial` in a fused function; use where() on its argument");
  FusionNode node;
  node.kind = FusionNode::kReduction;
  node.source[0] = source_of(name, x.graph, x);
  node.name = name;
  node.options = options;
  node.arguments = x.graph->nodes[size_t(x.node)].arguments;
  return handle(x.graph, add_node(*x.graph, node));
}

void refuse_operation(const char* name) {
  fail<ValueError>("fuse: ", name,
                   " is not element-wise and cannot be part of a fused function; call it on the "
                   "arrays before or after");
}

void refuse_value(const char* what) {
  fail<ValueError>("fuse: ", what,
                   " asks for the value of a stand-in, which has none while the function is "
                   "recorded; choose between values with where()");
}

std::shared_ptr<FusionState> make_fusion_state() { return std::make_shared<FusionState>(); }

bool is_traced(const FusionState& state, size_t arguments) {
  return arguments < size_t(kMaxFusedOperands) &&
         state.traced[arguments].load(std::memory_order_acquire);
}

void trace_fusion(FusionState& state, size_t arguments, const FusionTrace& trace) {
  CATENA_CHECK(ValueError, arguments > 0 && arguments < size_t(kMaxFusedOperands),
               "fuse: a fused function of ", arguments, " arguments; expected 1 to ",
               kMaxFusedOperands - 1);
  auto result = std::make_unique<FusionTraceResult>();
  result->graph = std::make_shared<FusionGraph>();
  std::vector<Fused> list;
  for (size_t k = 0; k < arguments; ++k) {
    FusionNode node;
    node.argument = static_cast<int>(k);
    node.arguments = 1u << k;
    list.push_back(handle(result->graph, add_node(*result->graph, node)));
  }
  const std::vector<Fused> outputs = trace(list);
  CATENA_CHECK(ValueError,
               !outputs.empty() && outputs.size() + arguments <= size_t(kMaxFusedOperands),
               "fuse: ", arguments, " arguments and ", outputs.size(),
               " results; expected at least one result and at most ", kMaxFusedOperands,
               " of both together");
  for (const Fused& output : outputs) {
    CATENA_CHECK(ValueError, output.ref().graph == result->graph,
                 "fuse: a result was not computed from the function's arguments");
    result->outputs.push_back(output.ref().node);
  }
  const std::lock_guard lock(state.mutex);
  if (state.traces[arguments]) return;  // another thread was first
  state.traces[arguments] = std::move(result);
  state.traced[arguments].store(true, std::memory_order_release);
}

}  // namespace catena::detail
