#include "backends/cudnn/attention_plan.h"

#include "backends/cudnn/known_bugs.h"

namespace catena::cudnn {
namespace {

// Kernels of the gradient read parts of their workspace that nothing has written:
// github.com/NVIDIA/TransformerEngine/issues/2186.
constexpr size_t kFirstThatWritesWorkspace = 91800;

PlanRequest request_of(const AttentionProblem& p) {
  return {
      // Numerical notes do not say in which order the gradients of queries are added up: the graph
      // decides (AttentionShape::ordered).
      .rules = {.dtype = p.shape.dtype,
                .exact = false,
                .deterministic = false,
                .workspace_limit = p.workspace_limit},
      .graph =
          [&p](cudnnHandle_t native) {
            return p.gradient ? attention_grad_graph(p.shape, native)
                              : attention_graph(p.shape, native);
          },
      .cleared = p.gradient && cudnnGetVersion() < kFirstThatWritesWorkspace};
}

}  // namespace

std::shared_ptr<const Plan> plan_of(const AttentionProblem& problem, Handle& handle) {
  static auto* plans = new Plans;
  return plan_in(*plans, problem, handle, [&] { return request_of(problem); });
}

}  // namespace catena::cudnn
