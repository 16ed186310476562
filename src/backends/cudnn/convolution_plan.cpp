#include "backends/cudnn/convolution_plan.h"

#include "backends/cudnn/convolution_graph.h"
#include "backends/cudnn/known_bugs.h"
#include "backends/cudnn/measure.h"
#include "catena/core/log.h"

namespace catena::cudnn {
namespace {

PlanRequest request_of(const Problem& p, Handle& handle) {
  if (p.precision == Precision::kBf16)
    logging::debug("cuDNN computes float32 convolutions in tf32, more exactly than bf16 allows");
  PlanRequest request{.rules = {p.dtype, p.is_exact(), p.deterministic, p.workspace_limit},
                      .graph = [&p](cudnnHandle_t native) { return make_graph(p, native); }};
  if (is_measured(p))
    request.times = [&](std::span<const Plan> plans) { return measure(plans, p, handle.native); };
  // A tuned problem that is met in a capture is left to a later process.
  request.lasting = !p.tuned || is_measured(p);
  return request;
}

}  // namespace

ConvolutionBindings::ConvolutionBindings(const Pointers& pointers)
    : bindings_{{kX, pointers.x}, {kW, pointers.w}, {kY, pointers.y}, {kB, pointers.b}},
      count_(pointers.b != nullptr ? 4 : 3) {}

std::shared_ptr<const Plan> plan_of(const Problem& problem, Handle& handle) {
  static auto* plans = new Plans;
  return plan_in(*plans, problem, handle, [&] { return request_of(problem, handle); });
}

}  // namespace catena::cudnn
