#include "catena/optimizers/loss_scale.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "catena/array/math.h"
#include "catena/autograd/mean.h"
#include "catena/core/graph.h"
#include "catena/core/log.h"
#include "catena/functions/array.h"
#include "catena/functions/math.h"

namespace catena::optimizers {
namespace {

constexpr int64_t kNumbers = 5;

void check_scale_options(const LossScaleOptions& o) {
  CATENA_CHECK(ValueError, o.growth >= 1 && std::isfinite(o.growth),
               "DynamicLossScale: expected a growth of at least 1, got ", o.growth);
  CATENA_CHECK(ValueError, o.backoff > 0 && o.backoff <= 1,
               "DynamicLossScale: expected a backoff in (0, 1], got ", o.backoff);
  CATENA_CHECK(ValueError, o.interval > 0, "DynamicLossScale: expected a positive interval, got ",
               o.interval);
  CATENA_CHECK(ValueError,
               0 < o.least && o.least <= o.initial && o.initial <= o.most && std::isfinite(o.most),
               "DynamicLossScale: expected 0 < least <= initial <= most, got least ", o.least,
               ", initial ", o.initial, ", most ", o.most);
}

}  // namespace

DynamicLossScale::DynamicLossScale(const LossScaleOptions& options) : options_(options) {
  check_scale_options(options);
}

std::vector<std::pair<std::string, double>> DynamicLossScale::settings() const {
  return {{"initial", options_.initial}, {"growth", options_.growth},
          {"backoff", options_.backoff}, {"interval", double(options_.interval)},
          {"least", options_.least},     {"most", options_.most}};
}

// Where the numbers are ---------------------------------------------------------------------------

DynamicLossScale::DeviceState DynamicLossScale::make_state(const Array& block) {
  return {block, block[0], block[1], block[3], block[0].astype(Dtype::kFloat32)};
}

DynamicLossScale::DeviceState& DynamicLossScale::on(Device device) {
  const auto found = std::find_if(states_.begin(), states_.end(), [&](const DeviceState& state) {
    return state.block.device() == device;
  });
  if (found != states_.end()) return *found;
  if (!states_.empty()) return states_.emplace_back(make_state(states_[0].block.to(device)));
  const std::vector<double> start{options_.initial, 1 / options_.initial, 0, 0, 0};
  return states_.emplace_back(make_state(array(start, {kNumbers}, {Dtype::kFloat64, device})));
}

double DynamicLossScale::number(int index) const {
  if (states_.empty()) return index == 0 ? options_.initial : 0;
  return states_[0].block[index].item<double>();
}

void DynamicLossScale::after_setup(Optimizer& optimizer) {
  states_.clear();
  updates_ = 0;
  skipped_before_ = 0;
  seen_ = {};
  prepare_for_capture(optimizer);
}

void DynamicLossScale::prepare_for_capture(Optimizer& optimizer) {
  for (const ParameterArena& arena : optimizer.layout().arenas()) on(arena.device());
}

// A step ------------------------------------------------------------------------------------------

Variable DynamicLossScale::scaled(const Variable& loss) {
  scaled_ = true;
  const DeviceState& state = on(loss.device());
  const bool is_wide = loss.dtype() == Dtype::kFloat64;
  const Variable wide = is_wide ? loss : functions::cast(loss, Dtype::kFloat32);
  const Variable result =
      functions::multiply(wide, Variable::constant(is_wide ? state.scale : state.scale32));
  if (mean_of(loss) != nullptr) catena::detail::hand_on_mean(loss, result);
  return result;
}

Array DynamicLossScale::gradient_factor(Device device) { return on(device).inverse; }

// One device's gradients decide for all, and one process's.
void DynamicLossScale::agree_on_found(Optimizer& optimizer) {
  if (states_.size() == 1) optimizer.sum_over_processes({states_[0].found}, Processes::Sum::kFound);
  if (states_.size() < 2) return;
  Array total = states_[0].found.copy();
  for (size_t i = 1; i < states_.size(); ++i)
    total = add(total, states_[i].found.to(total.device()));
  optimizer.sum_over_processes({total}, Processes::Sum::kFound);
  for (const DeviceState& state : states_) state.found.assign(total);
}

// Once, and not after the first updates: a rank without samples in a step has no loss.
void DynamicLossScale::warn_unless_scaled() {
  constexpr int kUpdatesBeforeAWarning = 3;
  if (scaled_ || ++unscaled_updates_ != kUpdatesBeforeAWarning) return;
  logging::warning(
      "update: the optimizer has a loss scale, but no loss was multiplied by it, and the gradients "
      "are divided by it: call backward of optimizer.scaled(loss)");
}

void DynamicLossScale::run(UpdateContext& update) {
  warn_unless_scaled();
  const std::vector<ParameterArena>& arenas = update.optimizer().layout().arenas();
  for (const ParameterArena& arena : arenas)
    kernels::find_nonfinite(arena.device(), {&arena.gradient().memory, &on(arena.device()).found});
  agree_on_found(update.optimizer());
  Arrays factors, flags;
  for (const ParameterArena& arena : arenas) {
    const DeviceState& state = on(arena.device());
    factors.push_back(state.inverse);
    flags.push_back(state.found);
  }
  update.scale_gradients(factors);
  update.skip_if(std::move(flags));
}

void DynamicLossScale::after_update(Optimizer&) {
  for (const DeviceState& state : states_) {
    const DeviceScope scope(state.block.device());
    kernels::advance_loss_scale(
        state.block.device(),
        {&state.block, &state.scale32, options_.growth, options_.backoff, options_.least,
         options_.most, static_cast<double>(options_.interval)});
  }
  look_at_skipped();
}

// Copies the numbers every kHopeless updates, and reads them when the copy is there: nothing waits
// for a device.
void DynamicLossScale::look_at_skipped() {
  if (warned_hopeless_ || states_.empty() || cuda::is_capturing(states_[0].block.device())) return;
  if (seen_.defined() && seen_event_.query()) {
    warn_if_hopeless(seen_);
    seen_ = {};
  }
  if (++updates_ < kHopeless || seen_.defined()) return;
  updates_ = 0;
  const Stream stream = current_stream(states_[0].block.device());
  seen_ = states_[0].block.get(stream);
  seen_event_ = stream.record();
}

void DynamicLossScale::warn_if_hopeless(const Array& numbers) {
  const double scale = numbers[0].item<double>(), skipped = numbers[4].item<double>();
  const double before = std::exchange(skipped_before_, skipped);
  if (scale > options_.least || skipped - before < double(kHopeless)) return;
  warned_hopeless_ = true;
  logging::warning(
      "update: all of the last ", kHopeless,
      " updates were skipped, because gradients are infinite or NaN although the loss "
      "scale is down to its least, ",
      scale,
      ". No smaller scale will help: look for infinities or NaN in the loss, the inputs "
      "and the parameters (shown once)");
}

// Files -------------------------------------------------------------------------------------------

NamedArrays DynamicLossScale::state() {
  if (states_.empty()) on(cpu(0));
  const Array& block = states_[0].block;
  return {{"loss_scale/value", block[0]},
          {"loss_scale/good_steps", block[2]},
          {"loss_scale/skipped", block[4]}};
}

void DynamicLossScale::state_was_loaded() {
  const Array& block = states_[0].block;
  const double value = std::clamp(block[0].item<double>(), options_.least, options_.most);
  block[0].fill(value);
  block[1].fill(1 / value);
  updates_ = 0;
  skipped_before_ = block[4].item<double>();
  seen_ = {};
  for (size_t i = 1; i < states_.size(); ++i) states_[i].block.assign(block);
  for (const DeviceState& state : states_) state.scale32.fill(value);
}

std::shared_ptr<DynamicLossScale> add_loss_scale(Optimizer& optimizer,
                                                 const LossScaleOptions& options) {
  for (const auto& stage : optimizer.stages())
    CATENA_CHECK(ValueError, dynamic_cast<const DynamicLossScale*>(stage.get()) == nullptr,
                 "add_loss_scale: the optimizer has a loss scale already");
  return optimizer.add_stage(std::make_shared<DynamicLossScale>(options));
}

}  // namespace catena::optimizers
