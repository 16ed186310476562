#include "backends/cudnn/attention_plan.h"

#include "backends/cudnn/known_bugs.h"
#include "catena/core/log.h"

namespace catena::cudnn {
namespace {

// Kernels of the gradient read parts of their workspace that nothing has written:
// github.com/NVIDIA/TransformerEngine/issues/2186.
constexpr size_t kFirstThatWritesWorkspace = 91800;

Plan make_plan(const AttentionProblem& p, Handle& handle) {
  if (const auto* bug = known_bug(p)) {
    logging::debug("cuDNN is not used for attention: ", bug->reason);
    return {};
  }
  const PlanRequest request{
      // The kernels add gradients of queries up in the order in which blocks end, whatever their
      // numerical notes say. The provider leaves calls that must be deterministic alone.
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
  PlanText text;
  p.describe_on_any_gpu(text);
  return stored_plan(text, request, cuda_device(p.device), handle);
}

}  // namespace

std::shared_ptr<const Plan> plan_of(const AttentionProblem& problem, Handle& handle) {
  static auto* plans = new Plans;
  PlanKey key;
  problem.describe(key);
  return plans->get(key, [&] { return make_plan(problem, handle); });
}

}  // namespace catena::cudnn
