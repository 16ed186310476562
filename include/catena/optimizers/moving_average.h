// MovingAverage: exponential moving averages of weights, which often test better than the weights.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "catena/optimizers/optimizer.h"

namespace catena::optimizers {

// Follows an optimizer: average = decay * average + (1 - decay) * parameter after every update, in
// one kernel for all parameters of a device and dtype (B. Polyak, A. Juditsky, Acceleration of
// stochastic approximation by averaging, 1992, with exponential weights). An average begins as its
// parameter is when the optimizer is set up, or gets the stage. It is float32, of float64
// parameters float64; of 16-bit parameters it is that of the master copies.
//
// Nothing waits for a device, and replays of a captured update go on averaging. Skipped updates do
// not count. Averages follow the parameters to other devices and are saved with the optimizer's
// state ("average/l1/W"), in a CheckpointFolder as slices where the parameters are slices; a state
// without them cannot be loaded. Where states are spread over processes, averages are: each process
// has those of the elements that it updates, and use() and of() are collective.
//
// Persistent arrays of the model, such as the running statistics of batch normalization, are not
// averaged: those of training stay, or are computed anew for the averaged weights by a pass in
// train state.
//
//   const auto average = optimizers::add_moving_average(optimizer, 0.999);
//   ... training ...
//   {
//     const optimizers::MovingAverage::Scope averaged(*average);
//     evaluate(model); serializers::save("averaged.npz", model);
//   }
class MovingAverage : public UpdateStage {
 public:
  // ValueError unless 0 <= decay < 1.
  explicit MovingAverage(double decay = 0.999);
  // A captured update keeps the decay that it was captured with.
  double decay() const { return decay_; }

  // The parameters become their averages, and what they were again, bit for bit. Meanwhile an
  // update is a ValueError, and so is a second use(), or a restore() without use(). A replay
  // of a captured update is not noticed, and restore() would undo it: launch none. A model that is
  // saved meanwhile has the averages. With Sharding::kParameters call gather_parameters() of the
  // multi-node optimizer before.
  void use();
  void restore();
  bool in_use() const { return !saved_.empty(); }
  // use() while it lives.
  class Scope {
   public:
    explicit Scope(MovingAverage& average) : average_(average) { average_.use(); }
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    MovingAverage& average_;
  };

  // The average of a parameter: a view, or gathered where averages are spread. ValueError for one
  // of another optimizer.
  Array of(const Parameter& parameter) const;

  // Before the rule, so that a refused update changes nothing; averages are moved after all stages.
  UpdatePhase phase() const override { return UpdatePhase::kClip; }
  const char* name() const override { return "moving average"; }
  std::vector<std::pair<std::string, double>> settings() const override {
    return {{"decay", decay_}};
  }
  bool reads_gradients(const Optimizer&) const override { return false; }
  void run(UpdateContext& update) override;
  void after_update(Optimizer& optimizer) override;
  void before_setup(Optimizer& optimizer, const Parameters& parameters) override;
  void after_setup(Optimizer& optimizer) override;
  ParameterBlocks* parameter_states() override { return &averages_; }

 private:
  Block whole(const ParameterBlocks::OfArena& averages) const;
  void average_arena(const ParameterArena& arena, const Array& average, const Array& skip) const;

  double decay_;
  Arrays skips_;  // of the running update
  ParameterBlocks averages_{"average"};
  std::weak_ptr<UpdateStage> spreads_;              // what spreads the states over processes
  std::vector<std::pair<Parameter, Array>> saved_;  // the parameters, while averages are in use
};

// Adds a MovingAverage to an optimizer, before or after setup.
std::shared_ptr<MovingAverage> add_moving_average(Optimizer& optimizer, double decay = 0.999);

}  // namespace catena::optimizers
