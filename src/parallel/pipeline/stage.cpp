#include "parallel/pipeline/stage.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "autograd/first_run.h"
#include "catena/array/creation.h"
#include "catena/array/random_source.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/function_hook.h"
#include "catena/autograd/grad_mode.h"
#include "catena/functions/recompute.h"
#include "parallel/synchronised_layers.h"

namespace catena::parallel::pipeline {

// Looks for parameters that the units use and do not list.
class Stage::ParameterCheck : public FunctionHook {
 public:
  explicit ParameterCheck(const Stage& stage) : stage_(stage) {
    for (const Parameter& p : stage.units_.parameters()) own_.insert(p.state());
  }
  void forward_begins(const FunctionCall& call) override {
    if (!is_recorded_in_the_end()) return;
    for (const Variable* v : call.inputs())
      if (v->requires_grad() && v->node()->parameter) check(*v->node()->parameter, call);
  }

 private:
  void check(const ParameterState& parameter, const FunctionCall& call) const {
    const std::string path = path_of(parameter);
    CATENA_CHECK(
        GradientError, own_.contains(&parameter), "Pipeline: unit ", stage_.running_, " ('",
        stage_.units_.name(stage_.running_), "') of stage ", stage_.number_, " uses ",
        path.empty() ? "a parameter" : "parameter '" + path + "'", " of shape ",
        parameter.variable.shape(), " in ", call.label(),
        ", which no unit of the stage lists, so that its gradient would be lost; if another unit "
        "lists it, give it to this one too: Sequence::add(name, unit, {parameter}), or tie_to in a "
        "layer. What is not to be trained goes in without a gradient: "
        "Variable::constant(parameter.data())");
  }

  const Stage& stage_;
  std::unordered_set<const ParameterState*> own_;
};

const std::string& UnitRange::name(int unit) const { return model_->name(size_t(unit)); }

Variables UnitRange::run(const Variables& xs, int micro_batch, const UnitNumbers& numbers,
                         int& running) const {
  Variables h = xs;
  for (int u = begin_; u < end_; ++u) {
    running = u;
    const RandomSourceScope scope(numbers.of(u, micro_batch));
    h = model_->run(size_t(u), h);
    for (const Variable& y : h)
      CATENA_CHECK(ValueError, y.defined(), "Pipeline: unit ", u, " ('", model_->name(size_t(u)),
                   "') gave an undefined variable");
  }
  return h;
}

void UnitRange::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  for (int u = begin_; u < end_; ++u)
    if (Parameterized* layer = model_->layer(size_t(u)))
      layer->visit_parameters(visitor, prefix + model_->name(size_t(u)) + "/");
}

void UnitRange::visit_functions(const FunctionVisitor& visitor) {
  for (int u = begin_; u < end_; ++u)
    if (Parameterized* layer = model_->layer(size_t(u))) visitor(model_->name(size_t(u)), *layer);
}

void Stage::begin_step(int micro_batches) {
  batches_.clear();
  batches_.resize(size_t(micro_batches));
}

Variables Stage::forward(int micro_batch, const Arrays& inputs, const MessageInfo* info,
                         const UnitNumbers& numbers) {
  const DeviceScope device(device_);
  Variables xs = variables_of(inputs, info);
  const auto run = [this, micro_batch, numbers](const Variables& given) {
    return units_.run(given, micro_batch, numbers, running_);
  };
  std::optional<ParameterCheck> check;
  std::optional<FunctionHookScope> watched;
  if (is_recording() && !std::exchange(is_checked_, true)) watched.emplace(check.emplace(*this));
  const Variables ys = functions::recompute(run, {.keep = keep_}, xs);
  if (is_recording()) {
    MicroBatch& batch = batches_[size_t(micro_batch)];
    batch.inputs = std::move(xs);
    batch.results = ys;
  }
  return ys;
}

Variables Stage::try_out(const Arrays& inputs, const MessageInfo* info,
                         const UnitNumbers& numbers) {
  const DeviceScope device(device_);
  const RepeatedForward nothing_moves;
  const OwnStatistics no_other_rank;
  ParameterCheck check(*this);
  const FunctionHookScope scope(check);
  return units_.run(variables_of(inputs, info), 0, numbers, running_);
}

void Stage::go_on_to(int micro_batch, const Variable& loss) {
  batches_[size_t(micro_batch)].results = {loss};
}

Arrays Stage::backward(int micro_batch, const Arrays& gradients, bool split) {
  const DeviceScope device(device_);
  MicroBatch& batch = batches_[size_t(micro_batch)];
  const Variables results = std::exchange(batch.results, {});
  Variables starts;
  Arrays given;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].requires_grad() || !gradients[i].defined()) continue;
    starts.push_back(results[i]);
    given.push_back(gradients[i]);
  }
  if (split) batch.weights.emplace();
  if (!starts.empty()) {
    BackwardOptions options;
    if (split) options.weights_later = &*batch.weights;
    catena::backward(starts, given, options);
  }
  Arrays of_inputs;
  const Variables inputs = std::exchange(batch.inputs, {});
  for (auto x = inputs.begin(); x != inputs.end(); ++x) {
    const bool is_again = std::any_of(
        inputs.begin(), x, [&](const Variable& other) { return same_variable(other, *x); });
    Array g = x->requires_grad() && !is_again ? x->grad() : Array();
    if (x->requires_grad() && !is_again && !g.defined()) g = zeros_like(x->data());
    of_inputs.push_back(std::move(g));
  }
  return of_inputs;
}

void Stage::backward_weights(int micro_batch) {
  const DeviceScope device(device_);
  MicroBatch& batch = batches_[size_t(micro_batch)];
  catena::backward_weights(*batch.weights);
  batch = {};
}

}  // namespace catena::parallel::pipeline
