#include "catena/autograd/pass_start.h"

#include <algorithm>

#include "autograd/backward_pass.h"
#include "catena/array/math.h"

namespace catena {
namespace {

Array in_type_of(const VariableNode& v, const Array& factor) {
  return factor.reshape(Shape{}).to(v.device).astype(v.dtype, false);
}

}  // namespace

const Mean* PassStart::mean() const {
  const VariableNode* start = pass_.single_start();
  return start != nullptr && start->mean ? &start->mean->mean : nullptr;
}

// Nodes lie in descending order of creation.
const std::vector<VariableNode*>& PassStart::means() {
  if (std::exchange(knows_means_, true)) return means_;
  for (auto node = pass_.nodes_.rbegin(); node != pass_.nodes_.rend(); ++node)
    for (VariableNode* v : (*node)->outputs()) {
      if (v == nullptr || !v->mean) continue;
      const auto same = [&](const VariableNode* other) { return other->mean == v->mean; };
      if (std::none_of(means_.begin(), means_.end(), same)) means_.push_back(v);
    }
  return means_;
}

bool PassStart::begins(double unit) {
  CATENA_CHECK(GradientError, !is_scaled_ || unit == unit_,
               "backward: the pass reaches parameters of two optimizers whose batches are weighed "
               "differently; give both the same set_batch_weight, or run a pass for each");
  unit_ = unit;
  return !std::exchange(is_scaled_, true);
}

void PassStart::scale(const Array& factor, double unit) {
  if (begins(unit)) pass_.scale_starts(factor);
}

void PassStart::scale_means(const Arrays& factors, double unit) {
  if (!begins(unit)) return;
  for (size_t i = 0; i < factors.size(); ++i) {
    VariableNode* v = means().at(i);
    pass_.scale_vertex(*v, in_type_of(*v, factors[i]));
  }
}

// In the pass -------------------------------------------------------------------------------------

VariableNode* BackwardPass::single_start() const {
  if (kept_) return kept_;
  return starts_.size() == 1 && !starts_[0].vertex->parameter ? starts_[0].vertex : nullptr;
}

// A copy of one that is kept: the caller goes on holding what the pass was to begin with.
void BackwardPass::scale_starts(const Array& factor) {
  if (kept_) {
    is_scaled_ = true;
    given_ = kept_->grad;
    given_variable_ = kept_->grad_variable;
    return scale_start(*kept_, factor);
  }
  for (auto start = starts_.begin(); start != starts_.end(); ++start) {
    VariableNode* v = start->vertex;
    const auto same = [v](const Start& other) { return other.vertex == v; };
    if (!v->parameter && std::none_of(starts_.begin(), start, same)) scale_start(*v, factor);
  }
}

void BackwardPass::scale_start(VariableNode& v, const Array& factor) {
  const Array own = in_type_of(v, factor);
  v.grad = v.grad.defined() ? multiply(v.grad, own) : own.reshape(v.shape);
  v.grad_is_own = false;
  if (options_.create_graph)
    v.grad_variable = IntrusivePtr<VariableBody>(Variable::constant(v.grad).body());
}

void BackwardPass::restore_start() {
  if (!is_scaled_) return;
  kept_->grad = given_;
  if (options_.create_graph) kept_->grad_variable = given_variable_;
}

void BackwardPass::scale_vertex(VariableNode& v, const Array& factor) {
  CATENA_CHECK(GradientError, !options_.create_graph,
               "backward: a sum of several means over ranks cannot be differentiated again "
               "(create_graph); run a pass for each mean");
  factors_.emplace_back(&v, factor);
}

void BackwardPass::scale_outputs(FunctionNode& node) {
  for (VariableNode* v : node.outputs())
    for (const auto& [vertex, factor] : factors_)
      if (v == vertex && v->grad.defined()) {
        v->grad = multiply(v->grad, factor);
        v->grad_is_own = false;
      }
}

}  // namespace catena
