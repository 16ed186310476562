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
  if (pass_.rest_ != nullptr) {
    CATENA_CHECK(GradientError, !pass_.rest_->is_mixed,
                 "backward_weights: the passes before began with several means, or with a sum of "
                 "means, whose weights over the ranks are not known any more; call "
                 "backward_weights after each pass, from a loss that is one mean, or run whole "
                 "passes (without weights_later)");
    return pass_.rest_->mean ? &pass_.rest_->mean->mean : nullptr;
  }
  const VariableNode* start = pass_.single_start();
  return detail::is_mean(start) ? &start->mean->mean : nullptr;
}

// Nodes lie in descending order of creation.
const std::vector<VariableNode*>& PassStart::means() {
  if (std::exchange(knows_means_, true)) return means_;
  for (auto node = pass_.nodes_.rbegin(); node != pass_.nodes_.rend(); ++node)
    for (VariableNode* v : (*node)->outputs()) {
      if (!detail::is_mean(v)) continue;
      const auto same = [&](const VariableNode* other) { return other->mean == v->mean; };
      if (std::none_of(means_.begin(), means_.end(), same)) means_.push_back(v);
    }
  return means_;
}

void PassStart::is_of_a_part() { pass_.is_of_a_part_ = true; }

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
  if (rest_ != nullptr) return scale_rest(factor);
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

// A pass that leaves the gradients of weights for later is weighed then, when observers hear of it.
void BackwardPass::note_start() {
  const VariableNode* start = single_start();
  later_->note(detail::is_mean(start) ? start->mean : IntrusivePtr<MeanRecord>(),
               std::any_of(nodes_.begin(), nodes_.end(), [&](FunctionNode* node) {
                 return std::any_of(node->outputs().begin(), node->outputs().end(),
                                    detail::is_mean);
               }));
}

void DeferredWeights::Rest::note(const IntrusivePtr<MeanRecord>& begun_with, bool has_means) {
  is_mixed = is_mixed || (has_means && !begun_with) || (knows_mean && !(begun_with == mean));
  mean = begun_with;
  knows_mean = true;
}

void BackwardPass::scale_rest(const Array& factor) {
  const auto scaled = [&](const Array& gradient, const VariableNode& v) {
    return multiply(gradient, in_type_of(v, factor));
  };
  for (auto& entry : rest_->entries)
    for (auto& [output, gradient] : entry.gradients) gradient = scaled(gradient, *output);
  for (auto& ready : rest_->ready)
    ready.gradient = Variable::constant(scaled(ready.gradient.data(), *ready.weight));
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
