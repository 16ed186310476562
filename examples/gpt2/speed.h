// The time that updates take.
#pragma once

#include <chrono>
#include <memory>

#include "catena/training/updater.h"

namespace gpt2 {

// Runs the updates of another updater and measures them, without test passes and checkpoints, and
// without the first updates, in which kernels are compiled and memory is found.
class TimedUpdater final : public catena::training::Updater {
 public:
  explicit TimedUpdater(std::unique_ptr<Updater> updater);
  void update(catena::training::Means& means) override;
  // Waits for the device.
  void settle(catena::training::Means& means) override;

  // Measured updates in a second; NaN: there were none.
  double updates_per_second() const;

 private:
  using Clock = std::chrono::steady_clock;
  void stop();

  std::unique_ptr<Updater> updater_;
  bool runs_ = false;  // the clock
  Clock::time_point since_{};
  int64_t left_out_ = 0, since_start_ = 0, measured_ = 0;
  double seconds_ = 0;
};

}  // namespace gpt2
