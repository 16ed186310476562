#include "parallel/pipeline/stage.h"

#include <utility>

#include "catena/array/creation.h"
#include "catena/array/random_source.h"
#include "catena/autograd/grad_mode.h"
#include "catena/functions/recompute.h"
#include "parallel/synchronised_layers.h"

namespace catena::parallel::pipeline {

Variables UnitRange::run(const Variables& xs, int micro_batch, const UnitNumbers& numbers) const {
  Variables h = xs;
  for (int u = begin_; u < end_; ++u) {
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

void UnitRange::visit_persistents(const PersistentVisitor& visitor, const std::string& prefix) {
  for (int u = begin_; u < end_; ++u)
    if (Parameterized* layer = model_->layer(size_t(u)))
      layer->visit_persistents(visitor, prefix + model_->name(size_t(u)) + "/");
}

void Stage::begin_step(int micro_batches) {
  batches_.clear();
  batches_.resize(size_t(micro_batches));
}

Variables Stage::forward(int micro_batch, const Arrays& inputs, const MessageInfo* info,
                         const UnitNumbers& numbers) {
  const DeviceScope device(device_);
  Variables xs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool wanted = info != nullptr && (*info)[i].wants_gradient;
    xs.push_back(wanted ? Variable(inputs[i]) : Variable::constant(inputs[i]));
  }
  const auto run = [units = units_, micro_batch, numbers](const Variables& given) {
    return units.run(given, micro_batch, numbers);
  };
  const Variables ys = recomputes_ ? functions::recompute(run, xs) : run(xs);
  if (is_recording()) {
    MicroBatch& batch = batches_[size_t(micro_batch)];
    batch.inputs = std::move(xs);
    batch.results = ys;
  }
  return ys;
}

Variables Stage::try_out(const Variables& inputs, const UnitNumbers& numbers) const {
  const DeviceScope device(device_);
  const RepeatedForward nothing_moves;
  const OwnStatistics no_other_rank;
  return units_.run(inputs, 0, numbers);
}

Variables Stage::take_results(int micro_batch) {
  return std::exchange(batches_[size_t(micro_batch)].results, {});
}

Arrays Stage::backward(int micro_batch, const Variables& results, const Arrays& gradients,
                       bool split) {
  const DeviceScope device(device_);
  MicroBatch& batch = batches_[size_t(micro_batch)];
  batch.is_split = split;
  Variables starts;
  Arrays given;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].requires_grad() || !gradients[i].defined()) continue;
    starts.push_back(results[i]);
    given.push_back(gradients[i]);
  }
  if (!starts.empty()) {
    BackwardOptions options;
    if (split) options.weights_later = &batch.later;
    catena::backward(starts, given, options);
  }
  Arrays of_inputs;
  for (const Variable& x : std::exchange(batch.inputs, {})) {
    Array g = x.requires_grad() ? x.grad() : Array();
    if (x.requires_grad() && !g.defined()) g = zeros_like(x.data());
    of_inputs.push_back(std::move(g));
  }
  return of_inputs;
}

void Stage::backward_weights(int micro_batch) {
  const DeviceScope device(device_);
  MicroBatch& batch = batches_[size_t(micro_batch)];
  catena::backward_weights(batch.later);
  batch = {};
}

}  // namespace catena::parallel::pipeline
