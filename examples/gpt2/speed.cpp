#include "speed.h"

#include <limits>
#include <utility>

#include "catena/core/device.h"

namespace gpt2 {
namespace {

constexpr int64_t kFirst = 5;  // updates that are not measured

}  // namespace

TimedUpdater::TimedUpdater(std::unique_ptr<Updater> updater)
    : Updater(updater->batches()), updater_(std::move(updater)) {}

void TimedUpdater::update(catena::training::Means& means) {
  if (left_out_ < kFirst) {
    ++left_out_;
    return updater_->update(means);
  }
  if (!runs_) {
    catena::synchronize(batches().device());
    since_ = Clock::now();
    runs_ = true;
  }
  updater_->update(means);
  ++since_start_;
}

void TimedUpdater::stop() {
  if (!runs_) return;
  catena::synchronize(batches().device());
  seconds_ += std::chrono::duration<double>(Clock::now() - since_).count();
  measured_ += std::exchange(since_start_, 0);
  runs_ = false;
}

void TimedUpdater::settle(catena::training::Means& means) {
  stop();
  updater_->settle(means);
}

double TimedUpdater::updates_per_second() const {
  return measured_ > 0 ? static_cast<double>(measured_) / seconds_
                       : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace gpt2
