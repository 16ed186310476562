// UpdateRule: what a rule is asked by the optimizer that it is part of. A rule of your own derives
// from Optimizer and overrides one of two sets of functions: update_one, which is called for each
// parameter, or update_arena, which is called for all parameters of a device and dtype together.
#pragma once

#include <string>
#include <vector>

#include "catena/autograd/parameter.h"
#include "catena/kernels/optimizer.h"
#include "catena/optimizers/arena.h"

namespace catena::optimizers {

// The functions that rules override. Optimizer derives from it.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

 protected:
  UpdateRule() = default;
  UpdateRule(const UpdateRule&) = default;
  UpdateRule(UpdateRule&&) noexcept = default;

  // Names of the states, which files use.
  virtual std::vector<std::string> state_names() const { return {}; }
  // DtypeError unless the rule can update parameters of this dtype.
  virtual void check_dtype(Dtype dtype) const;
  // An Error unless the rule can update this parameter, which is named "/l1/W". Called in setup,
  // before anything changes. A rule that reads whole parameters refuses here those of which this
  // rank has a piece (Parameter::placement): update_one would get the piece. By default all are
  // taken.
  virtual void check_parameter(const std::string& name, const Parameter& parameter) const;

  // Parameter by parameter ------------------------------------------------------------------------
  // Of a 16-bit parameter these functions get the float32 master copy as `parameter` and the
  // gradient in float32: steps that 16 bits would lose add up. The 16-bit parameter becomes the
  // rounded copy afterwards.

  // States of one parameter: arrays on its device (scalars as 0-d arrays). By default calls the
  // form for the device, which gives zeros like the parameter for each of state_names() by default.
  virtual Arrays init_state(const Array& parameter, const Array& gradient);
  virtual Arrays init_state_cpu(const Array& parameter, const Array& gradient);
  virtual Arrays init_state_gpu(const Array& parameter, const Array& gradient);
  // One parameter's step, in place, with its device current; also of one without elements. By
  // default calls the form for the device.
  virtual void update_one(const Array& parameter, const Array& gradient, const Arrays& states);
  virtual void update_one_cpu(const Array& parameter, const Array& gradient, const Arrays& states);
  virtual void update_one_gpu(const Array& parameter, const Array& gradient, const Arrays& states);

  // Arenas ----------------------------------------------------------------------------------------

  // True: update_arena is called once for each arena, or range of it, instead of update_one for
  // each parameter, and init_state is not used. A zero parameter with zero gradient and states as
  // they start must stay zero.
  virtual bool updates_arenas() const { return false; }
  // One step over an arena or a range of it; everything in the call is set but `rule` and
  // `numbers`. The rule multiplies the gradient by gradient_scale, then adds weight_decay *
  // parameter.
  virtual void update_arena(OptimizerCall& call);
  // What each element of a state of an arena begins with, in the order of state_names(); zeros by
  // default.
  virtual std::vector<double> state_starts() const;
  // Of what dtype states of arenas are, and whether 16-bit parameters have master copies. Asked in
  // setup; always the same.
  virtual StateFormat state_format() const { return {}; }
  // True: where call.counter is set, update_arena takes t from it and, with call.counts, stores t
  // there, as OptimizerCall::counter says, and call.step has no device value. Otherwise a kernel
  // before update_arena counts, unless the update is skipped, and call.step says t.
  virtual bool counts_updates() const { return false; }
  // True: update_arena does nothing where call.skip is not 0, and does not count then.
  virtual bool skips_updates() const { return false; }
  // True: update_arena follows call.segments, so that parameters may be in groups.
  virtual bool reads_segments() const { return false; }
  // True: call.segments and call.squares are given.
  virtual bool needs_norms() const { return false; }
  // True: call.squares are those of steps, which sum_step_squares writes (StepSquaresCall), else of
  // gradients.
  virtual bool needs_norms_of_steps() const { return false; }
  virtual void sum_step_squares(OptimizerCall& call, const Array& partial, const Array& sums);
};

}  // namespace catena::optimizers
