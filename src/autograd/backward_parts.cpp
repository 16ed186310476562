// Passes in parts: the gradients of inputs first, those of weights when backward_weights asks.
#include <algorithm>
#include <cstdint>

#include "autograd/backward_pass.h"
#include "autograd/contribute.h"
#include "catena/autograd/parameter_state.h"
#include "catena/core/profiler_range.h"

namespace catena {

DeferredWeights::DeferredWeights() = default;
DeferredWeights::~DeferredWeights() = default;
DeferredWeights::DeferredWeights(DeferredWeights&&) noexcept = default;
DeferredWeights& DeferredWeights::operator=(DeferredWeights&&) noexcept = default;
bool DeferredWeights::empty() const {
  return !rest_ || (rest_->entries.empty() && rest_->ready.empty());
}

namespace {

// What a node's inputs that want gradients are.
struct Kinds {
  bool weights = false, others = false;
  explicit Kinds(const FunctionNode& node) {
    for (const auto& input : node.inputs())
      if (input->requires_grad) (input->is_weight ? weights : others) = true;
  }
};

DeferredWeights::Rest::Entry entry_of(FunctionNode& node) {
  DeferredWeights::Rest::Entry entry;
  entry.node = IntrusivePtr<FunctionNode>(&node);
  for (VariableNode* v : node.outputs())
    if (v && v->grad.defined())
      entry.gradients.emplace_back(IntrusivePtr<VariableNode>(v), v->grad);
  return entry;
}

}  // namespace

// Of the collected nodes, inputs before outputs: a result of parameters alone is a weight, too.
void BackwardPass::mark_weights() {
  const auto mark = [](VariableNode& v) { v.is_weight = v.parameter != nullptr; };
  for (const Start& start : starts_) mark(*start.vertex);
  if (kept_) mark(*kept_);
  for (FunctionNode* node : nodes_)
    for (const auto& input : node->inputs()) mark(*input);
  for (size_t i = nodes_.size(); i-- > 0;) {
    const Kinds kinds(*nodes_[i]);
    for (VariableNode* v : nodes_[i]->outputs())
      if (v) v->is_weight = kinds.weights && !kinds.others;
  }
}

void BackwardPass::step_in_parts(FunctionNode& node) {
  const bool reached = has_gradient(node);
  const Kinds kinds(node);
  // Weights alone: later, also if no gradient has reached it yet.
  if (!kinds.others || (reached && kinds.weights && node.splits()))
    later_->entries.push_back(entry_of(node));
  if (kinds.others && reached)
    call(node, kinds.weights && node.splits() ? Part::kInputs : Part::kAll);
  if (!options_.retain_grad && reached) drop_output_gradients(node);
}

void BackwardPass::keep_ready(VariableNode& weight, const Variable& gradient,
                              const FunctionNode* node) {
  const uint64_t sequence = node ? node->sequence() : UINT64_MAX;
  later_->ready.push_back({sequence, IntrusivePtr<VariableNode>(&weight), gradient});
}

// The rest ----------------------------------------------------------------------------------------

void BackwardPass::collect_rest() {
  using Entry = DeferredWeights::Rest::Entry;
  const auto use = [this](VariableNode& v) {
    see(v);
    ++v.pending_uses;
  };
  for (const auto& ready : rest_->ready) use(*ready.weight);
  for (const Entry& entry : rest_->entries) {
    for (const auto& input : entry.node->inputs())
      if (input->requires_grad && input->is_weight) use(*input);
    if (Kinds(*entry.node).others) continue;
    for (const auto& [output, gradient] : entry.gradients) see(*output);
    for (const auto& parameter : entry.node->also_uses()) use(*parameter);
  }
  std::stable_sort(
      rest_->entries.begin(), rest_->entries.end(),
      [](const Entry& a, const Entry& b) { return a.node->sequence() > b.node->sequence(); });
  std::stable_sort(rest_->ready.begin(), rest_->ready.end(),
                   [](const auto& a, const auto& b) { return a.sequence > b.sequence; });
}

// Gradients meet at each vertex in the order of a pass that is not in parts, so that their sums
// have the same bits: first those that the pass began with, then one node after the other.
void BackwardPass::step_rest() {
  for (const auto& entry : rest_->entries) {
    if (Kinds(*entry.node).others) continue;
    for (const auto& [output, gradient] : entry.gradients)
      contribute(*output, Variable::constant(gradient), false);
  }
  auto ready = rest_->ready.begin();
  const auto give_ready = [&](uint64_t down_to) {
    for (; ready != rest_->ready.end() && ready->sequence >= down_to; ++ready) {
      give(*ready->weight, ready->gradient);
      done_with(*ready->weight);
    }
  };
  for (auto& entry : rest_->entries) {
    give_ready(entry.node->sequence());
    finish(entry);
  }
  give_ready(0);
}

void BackwardPass::finish(DeferredWeights::Rest::Entry& entry) {
  FunctionNode& node = *entry.node;
  if (Kinds(node).others) {  // the gradients of its outputs are complete, and kept where asked for
    for (auto& [output, gradient] : entry.gradients) std::swap(output->grad, gradient);
    call(node, Part::kWeights);
    for (auto& [output, gradient] : entry.gradients) std::swap(output->grad, gradient);
  } else {
    if (has_gradient(node)) call(node, Part::kAll);
    for (const auto& parameter : node.also_uses()) done_with(*parameter);
    drop_output_gradients(node);
  }
  for (const auto& input : node.inputs())
    if (input->requires_grad && input->is_weight) done_with(*input);
}

[[gnu::noinline]] void backward_weights(DeferredWeights& later) {
  if (later.empty()) return;
  const ProfilerRange range("backward_weights");
  const std::unique_ptr<DeferredWeights::Rest> rest = std::move(later.rest_);
  BackwardPass(*rest).run(__builtin_frame_address(0));
}

}  // namespace catena
