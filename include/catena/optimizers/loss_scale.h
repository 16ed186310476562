// DynamicLossScale: keeps the gradients of 16-bit computations from becoming zero, and skips the
// updates in which they are not finite.
#pragma once

#include <memory>
#include <vector>

#include "catena/autograd/variable.h"
#include "catena/optimizers/optimizer.h"

namespace catena::optimizers {

// How a loss scale changes.
struct LossScaleOptions {
  double initial = 32768;   // a power of two multiplies without rounding
  double growth = 2;        // of the scale after `interval` good steps in a row
  double backoff = 0.5;     // of the scale after a step with gradients that are not finite
  int64_t interval = 2000;  // steps
  double least = 1, most = 16777216;  // 2^24
};

// A stage of updates in mixed precision (P. Micikevicius et al., Mixed precision training, ICLR
// 2018):
//
//   const auto scale = add_loss_scale(optimizer);
//   ...
//   optimizer.zero_grads();
//   scale->scaled(loss).backward();   // or optimizer.scaled(loss), as training::make_step does
//   optimizer.update();
//
// The update checks the gradients once, after ranks have averaged them, so that all ranks see the
// same. If one is not finite, parameters, states and t stay as they are and the scale falls. Else
// the rule gets the gradients divided by the scale, in the precision that it computes in. Scale and
// counts live on the devices: nothing waits for them, and replays of a captured step go on scaling.
// They are saved with the optimizer's state ("loss_scale/value"). Setup starts anew. The
// third update before any loss was scaled logs a warning, once: gradients are divided all the same.
// So does a row of kHopeless skipped updates at the least scale, which no smaller scale will end;
// replays of a captured step do not look.
//
// Between backward and update the gradients in memory are scaled ones. compute_grads_norm,
// clip_grads and weight_decay know that; UpdateContext::apply, for hooks of one's own, divides in
// memory.
class DynamicLossScale : public UpdateStage {
 public:
  // ValueError unless growth >= 1, 0 < backoff <= 1, interval > 0 and 0 < least <= initial <= most.
  explicit DynamicLossScale(const LossScaleOptions& options = {});
  static constexpr int64_t kHopeless = 50;  // updates

  // The loss times the scale, on the loss's device. A 16-bit loss becomes float32 first, which
  // holds the product.
  Variable scaled(const Variable& loss) override;
  // The scale, good steps since it last changed, and skipped updates. These wait for the device.
  double value() const { return number(0); }
  int64_t good_steps() const { return static_cast<int64_t>(number(2)); }
  int64_t skipped() const { return static_cast<int64_t>(number(4)); }
  const LossScaleOptions& options() const { return options_; }

  UpdatePhase phase() const override { return UpdatePhase::kUnscale; }
  const char* name() const override { return "loss scale"; }
  std::vector<std::pair<std::string, double>> settings() const override;
  void run(UpdateContext& update) override;
  void after_update(Optimizer& optimizer) override;
  void after_setup(Optimizer& optimizer) override;
  void prepare_for_capture(Optimizer& optimizer) override;
  Array gradient_factor(Device device) override;
  bool skips_updates() const override { return true; }
  NamedArrays state() override;
  void state_was_loaded() override;

 private:
  // The numbers on a device. Views of the block have the order of LossScaleCall::state.
  struct DeviceState {
    Array block, scale, inverse, found;
    Array scale32;
  };

  DeviceState& on(Device device);
  static DeviceState make_state(const Array& block);
  double number(int index) const;
  void agree_on_found(Optimizer& optimizer);
  void warn_unless_scaled();
  void look_at_skipped();
  void warn_if_hopeless(const Array& numbers);

  LossScaleOptions options_;
  bool scaled_ = false, warned_hopeless_ = false;
  int unscaled_updates_ = 0;
  int64_t updates_ = 0;        // since the numbers were last copied to the host
  double skipped_before_ = 0;  // at the copy before
  Array seen_;                 // the copy, when seen_event_ has completed
  Event seen_event_;
  std::vector<DeviceState> states_;  // the first is the one that is saved
};

// Adds a DynamicLossScale to the optimizer. ValueError if it has one.
std::shared_ptr<DynamicLossScale> add_loss_scale(Optimizer& optimizer,
                                                 const LossScaleOptions& options = {});

}  // namespace catena::optimizers
