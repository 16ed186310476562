#include "catena/optimizers/moving_average.h"

#include "catena/array/math.h"
#include "catena/core/log.h"

namespace catena::optimizers {

MovingAverage::MovingAverage(double decay) : decay_(decay) {
  CATENA_CHECK(ValueError, decay >= 0 && decay < 1,
               "MovingAverage: expected a decay in [0, 1), got ", decay);
}

std::shared_ptr<MovingAverage> add_moving_average(Optimizer& optimizer, double decay) {
  return optimizer.add_stage(std::make_shared<MovingAverage>(decay));
}

void MovingAverage::before_setup(Optimizer&, const Parameters&) {
  CATENA_CHECK(ValueError, !in_use(),
               "MovingAverage: the optimizer is set up while averages are in use; call restore() "
               "first");
}

void MovingAverage::after_setup(Optimizer& optimizer) {
  spreads_.reset();
  for (const auto& stage : optimizer.stages())
    if (Processes* processes = stage->processes(); processes && processes->share().count > 1)
      spreads_ = stage;
}

// The averages of all elements of an arena.
Block MovingAverage::whole(const ParameterBlocks::OfArena& averages) const {
  const auto& [block, size, slots] = averages;
  if (block.covers.size() == size) return block;
  const auto stage = spreads_.lock();
  CATENA_CHECK(ValueError, stage,
               "MovingAverage: the averages are spread over processes, but the stage that spread "
               "them is gone");
  return {stage->processes()->gather(block.memory), {0, size}};
}

// Averaging ---------------------------------------------------------------------------------------

void MovingAverage::run(UpdateContext& update) {
  CATENA_CHECK(ValueError, !in_use(),
               "update: the parameters are their moving averages; call restore() before training "
               "goes on");
  CATENA_CHECK(ValueError, !averages_.arenas.empty(),
               "update: the averages could not be made when the optimizer was set up, for want of "
               "memory; call setup(model) again");
  skips_.clear();
  for (size_t i = 0; i < update.optimizer().layout().arenas().size(); ++i) {
    const Array flag = update.skip_flag(i);
    skips_.push_back(flag.defined() ? flag.copy() : Array());  // loss scales clear theirs
  }
}

// Here and not in run(), so that every stage has done its part of the parameters.
void MovingAverage::after_update(Optimizer& optimizer) {
  const std::vector<ParameterArena>& arenas = optimizer.layout().arenas();
  for (size_t i = 0; i < arenas.size(); ++i)
    average_arena(arenas[i], averages_.arenas[i].block.memory, skips_[i]);
  skips_.clear();
}

// SGD's step with the value as gradient, a decay of one and a scale of minus one:
// average -= (1 - decay) * (average - value).
void MovingAverage::average_arena(const ParameterArena& arena, const Array& average,
                                  const Array& skip) const {
  if (average.size() == 0) return;
  const DeviceScope scope(arena.device());
  const Array values = arena.covered().updated().astype(average.dtype(), false);
  OptimizerCall call{};
  call.rule = &optimizer_rule("SGD");
  call.parameter = &average;
  call.gradient = &values;
  call.learning_rate.value = 1 - decay_;
  call.gradient_scale.value = -1;
  call.weight_decay = 1;
  if (skip.defined()) call.skip = &skip;
  kernels::optimizer_update(arena.device(), call);
  average.note_write();
}

// Use ---------------------------------------------------------------------------------------------

void MovingAverage::use() {
  CATENA_CHECK(ValueError, !averages_.arenas.empty(),
               "MovingAverage::use: the optimizer is not set up, so that there are no averages");
  CATENA_CHECK(ValueError, !in_use(), "MovingAverage::use: the averages are in use already");
  std::vector<std::pair<Parameter, Array>> saved;
  for (const auto& averages : averages_.arenas)
    for (const auto& slot : averages.slots)
      saved.emplace_back(slot.parameter, slot.parameter.data().copy());
  for (const auto& averages : averages_.arenas) {
    const Block all = whole(averages);
    for (const auto& slot : averages.slots)
      slot.parameter.copy_from(
          ParameterArena::slice(all, slot).astype(slot.parameter.dtype(), false));
  }
  saved_ = std::move(saved);
}

void MovingAverage::restore() {
  CATENA_CHECK(ValueError, in_use(), "MovingAverage::restore: the averages are not in use");
  for (const auto& [parameter, values] : saved_) parameter.copy_from(values);
  saved_.clear();
}

MovingAverage::Scope::~Scope() {
  try {
    average_.restore();
  } catch (const std::exception& error) {
    logging::warning("MovingAverage::Scope: the parameters are not restored: ", error.what());
  }
}

Array MovingAverage::of(const Parameter& parameter) const {
  for (const auto& averages : averages_.arenas)
    for (const auto& slot : averages.slots)
      if (slot.parameter == parameter) return ParameterArena::slice(whole(averages), slot);
  fail<ValueError>("MovingAverage::of: the parameter is not one of this optimizer");
}

}  // namespace catena::optimizers
