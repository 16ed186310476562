// The extensions that the library has.
#include "catena/training/extension.h"

#include <cmath>
#include <limits>

#include "catena/training/trainer.h"

namespace catena::training {

KeepBest::KeepBest(std::string column, Best best, std::string file)
    : Extension("best " + file, {.rows = true}),
      column_(std::move(column)),
      file_(std::move(file)),
      best_(best),
      record_(std::numeric_limits<double>::quiet_NaN()) {}

void KeepBest::run(Trainer& trainer) {
  const double now = trainer.value(column_);
  const bool better = best_ == Best::kHighest ? now > record_ : now < record_;
  if (std::isnan(now) || !(std::isnan(record_) || better)) return;
  record_ = now;
  trainer.save_model(file_);
}

void KeepBest::add_state(serializers::Checkpoint& state) { state.add("record", record_); }

LearningRate::LearningRate(Optimizer& optimizer, optimizers::Schedule schedule, Trigger every,
                           std::string name)
    : Extension(std::move(name), every, 100),
      optimizer_(optimizer),
      schedule_(std::move(schedule)) {
  CATENA_CHECK(ValueError, schedule_ != nullptr,
               "LearningRate: the schedule is an empty function; give one, such as "
               "optimizers::cosine(...)");
  CATENA_CHECK(ValueError, (every.epochs > 0) != (every.iterations > 0) && !every.rows,
               "LearningRate: got .epochs = ", every.epochs, ", .iterations = ", every.iterations,
               every.rows ? " and .rows" : "", "; set one of .epochs and .iterations above 0");
}

void LearningRate::run(Trainer& trainer) {
  const bool by_epochs = trigger().epochs > 0;
  optimizer_.set_lr(schedule_(by_epochs ? trainer.epoch() / trigger().epochs
                                        : trainer.iteration() / trigger().iterations));
}

}  // namespace catena::training
