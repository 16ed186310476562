#include "catena/optimizers/moving_average.h"

#include <algorithm>

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

// Layout ------------------------------------------------------------------------------------------

namespace {

Dtype dtype_of_average(Dtype parameter) {
  return parameter == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
}

// What averages are made of: the master copies if they are all here, else the parameters.
Array values_of(const ParameterArena& arena) {
  if (arena.master().defined() && arena.covers().size() == arena.size())
    return arena.master().memory;
  CATENA_CHECK(
      ValueError, arena.has_whole_data(),
      "MovingAverage: not all values of the parameters are in this process when an update "
      "ends; in a multi-node optimizer take Sharding::kNone, kStates or kGradients, and no "
      "gather_ahead");
  return arena.data().memory.astype(dtype_of_average(arena.dtype()), false);
}

}  // namespace

// Averages that there are already are taken along.
void MovingAverage::lay_out(Optimizer& optimizer) {
  if (!moved_) return;
  const std::vector<Part> before = std::move(parts_);
  parts_.clear();
  blocks_.clear();
  for (const ParameterArena& arena : optimizer.layout().arenas()) {
    const DeviceScope scope(arena.device());
    blocks_.push_back(values_of(arena).copy());
    for (const ParameterArena::Slot& slot : arena.slots()) {
      const std::string& name = optimizer.layout().name(size_t(slot.index));
      const Part part{slot.parameter, name, arena.slice(blocks_.back(), slot)};
      for (const Part& old : before)
        if (old.parameter == part.parameter) part.average.assign(old.average);
      parts_.push_back(part);
    }
  }
  moved_ = false;
}

void MovingAverage::after_setup(Optimizer& optimizer) {
  CATENA_CHECK(ValueError, !in_use(),
               "MovingAverage: the optimizer is set up while averages are in use; call restore() "
               "first");
  moved_ = true;
  lay_out(optimizer);
}

void MovingAverage::before_layout_moves(Optimizer&) { moved_ = true; }
void MovingAverage::prepare_for_capture(Optimizer& optimizer) { lay_out(optimizer); }

ShardedArrays MovingAverage::parameter_states() {
  ShardedArrays result;
  for (const Part& part : parts_)
    result.push_back(ShardedArray::whole_of("average" + part.name, part.average, part.parameter));
  return result;
}

NamedArrays MovingAverage::state() {
  NamedArrays result;
  for (const ShardedArray& each : parameter_states()) result.emplace_back(each.name, each.local);
  return result;
}

// Averaging ---------------------------------------------------------------------------------------

void MovingAverage::run(UpdateContext& update) {
  CATENA_CHECK(ValueError, !in_use(),
               "update: the parameters are their moving averages; call restore() before training "
               "goes on");
  skips_.clear();
  for (size_t i = 0; i < update.optimizer().layout().arenas().size(); ++i) {
    const Array flag = update.skip_flag(i);
    skips_.push_back(flag.defined() ? flag.copy() : Array());  // loss scales clear theirs
  }
}

// Here and not in run(), so that every stage has done its part of the parameters.
void MovingAverage::after_update(Optimizer& optimizer) {
  lay_out(optimizer);
  const std::vector<ParameterArena>& arenas = optimizer.layout().arenas();
  for (size_t i = 0; i < arenas.size(); ++i) average_arena(arenas[i], blocks_[i], skips_[i]);
  skips_.clear();
}

// SGD's step with the value as gradient, a decay of one and a scale of minus one:
// average -= (1 - decay) * (average - value).
void MovingAverage::average_arena(const ParameterArena& arena, const Array& average,
                                  const Array& skip) const {
  if (arena.size() == 0) return;
  const DeviceScope scope(arena.device());
  const Array values = values_of(arena);
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
  CATENA_CHECK(ValueError, !parts_.empty(),
               "MovingAverage::use: the optimizer is not set up, so that there are no averages");
  CATENA_CHECK(ValueError, !in_use(), "MovingAverage::use: the averages are in use already");
  Arrays saved;
  for (const Part& part : parts_) saved.push_back(part.parameter.data().copy());
  for (const Part& part : parts_)
    part.parameter.copy_from(part.average.astype(part.parameter.dtype(), false));
  saved_ = std::move(saved);
}

void MovingAverage::restore() {
  CATENA_CHECK(ValueError, in_use(), "MovingAverage::restore: the averages are not in use");
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i].parameter.copy_from(saved_[i]);
  saved_.clear();
}

MovingAverage::Scope::~Scope() {
  try {
    average_.restore();
  } catch (const std::exception& error) {
    logging::warning("MovingAverage::Scope: the parameters are not restored: ", error.what());
  }
}

const Array& MovingAverage::of(const Parameter& parameter) const {
  const auto found = std::find_if(parts_.begin(), parts_.end(),
                                  [&](const Part& part) { return part.parameter == parameter; });
  CATENA_CHECK(ValueError, found != parts_.end(),
               "MovingAverage::of: the parameter is not one of this optimizer");
  return found->average;
}

}  // namespace catena::optimizers
