// The extensions that the library has.
#include "catena/training/extension.h"

#include <cmath>
#include <limits>

#include "catena/training/trainer.h"

namespace catena::training {

namespace {

// Whether a value beats the best one so far, NaN for none, by more than `change`.
bool is_better(Best best, double now, double record, double change) {
  if (std::isnan(now)) return false;
  if (std::isnan(record)) return true;
  return best == Best::kHighest ? now > record + change : now < record - change;
}

}  // namespace

KeepBest::KeepBest(std::string column, Best best, std::string file)
    : Extension("best " + file, {.rows = true}),
      column_(std::move(column)),
      file_(std::move(file)),
      best_(best),
      record_(std::numeric_limits<double>::quiet_NaN()) {}

void KeepBest::run(Trainer& trainer) {
  const double now = trainer.value(column_);
  if (!is_better(best_, now, record_, 0)) return;
  record_ = now;
  trainer.save_model(file_);
}

void KeepBest::add_state(serializers::Checkpoint& state) { state.add("record", record_); }

EarlyStopping::EarlyStopping(std::string column, Best best, int64_t patience, double least_change)
    : Extension("early stopping", {.rows = true}),
      column_(std::move(column)),
      best_(best),
      patience_(patience),
      least_change_(least_change),
      record_(std::numeric_limits<double>::quiet_NaN()) {
  CATENA_CHECK(ValueError, patience > 0 && least_change >= 0,
               "EarlyStopping: expected a patience of at least one row and a least change of at "
               "least 0, got ",
               patience, " and ", least_change);
}

void EarlyStopping::start(Trainer& trainer) {
  if (waited_ >= patience_) trainer.stop();
}

void EarlyStopping::run(Trainer& trainer) {
  const double now = trainer.value(column_);
  if (is_better(best_, now, record_, least_change_)) {
    record_ = now;
    waited_ = 0;
  } else if (++waited_ >= patience_) {
    trainer.stop();
  }
}

void EarlyStopping::add_state(serializers::Checkpoint& state) {
  state.add("record", record_);
  state.add("waited", waited_);
}

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
