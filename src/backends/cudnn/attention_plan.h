// Plans of attention.
#pragma once

#include <memory>

#include "backends/cudnn/attention_graph.h"
#include "backends/cudnn/plan.h"

namespace catena::cudnn {

struct AttentionProblem {
  AttentionShape shape;
  bool gradient;
  int device;
  int64_t workspace_limit;  // bytes

  // All but the device, to a PlanKey or a PlanText.
  template <class Key>
  void describe(Key& key) const {
    constexpr PlanWord kForward = "attention", kGradient = "attention_grad";
    const AttentionShape& s = shape;
    key << (gradient ? kGradient : kForward) << s.dtype << s.batch << s.heads << s.groups
        << s.queries << s.keys << s.depth << s.width << s.causal << workspace_limit;
    for (const HeadStrides& heads : {s.q, s.k, s.v, s.out}) add(heads, key);
    if (!gradient) return;
    for (const HeadStrides& heads : {s.gout, s.gq, s.gk, s.gv}) add(heads, key);
    key << s.bounded << s.ordered;
  }

 private:
  template <class Key>
  static void add(const HeadStrides& heads, Key& key) {
    key << heads.batch << heads.head << heads.row;
  }
};

// The plan of the problem, made at its first use (Plans, stored_plan); unusable where cuDNN has no
// kernel. The GPU is the thread's current device.
std::shared_ptr<const Plan> plan_of(const AttentionProblem& problem, Handle& handle);

}  // namespace catena::cudnn
