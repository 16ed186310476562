// Extensions of a Trainer: what happens in a run beside the steps of training.
//
// clang-format off
//   class EarlyStop : public training::Extension {
//    public:
//     explicit EarlyStop(int patience)
//         : Extension("early stop", {.rows = true}), patience_(patience) {}
//     void run(training::Trainer& trainer) override {
//       if (trainer.value("test_loss") < best_) best_ = trainer.value("test_loss"), bad_ = 0;
//       else if (++bad_ == patience_) trainer.stop();
//     }
//     void add_state(serializers::Checkpoint& state) override {
//       state.add("best", best_);
//       state.add("bad", bad_);
//     }
//     ...
//   };
// clang-format on
//   trainer.extend(std::make_unique<EarlyStop>(3));
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "catena/optimizers/schedules.h"
#include "catena/serializers/checkpoint.h"

namespace catena::training {

class Trainer;

// After every so many epochs, or updates, of the whole run, or after each row, that of the end
// included: {.epochs = 1}, {.iterations = 100}, {.rows = true}, any of them together, or (never)
// none.
struct Trigger {
  int64_t epochs = 0;
  int64_t iterations = 0;
  bool rows = false;
  bool is_set() const { return epochs > 0 || iterations > 0 || rows; }
};

// Derive from it for what needs a beginning, an end, or state that a resumed run goes on with. Over
// ranks all have equal ones.
class Extension {
 public:
  // The name is that of its state in checkpoints: unique in a trainer, not empty, without '/'
  // (ValueError where it is added). Those of higher priority run first, equal ones in the order in
  // which they were added.
  explicit Extension(std::string name, Trigger trigger = {.epochs = 1}, int priority = 0)
      : name_(std::move(name)), trigger_(trigger), priority_(priority) {}
  virtual ~Extension() = default;
  Extension(const Extension&) = delete;
  Extension& operator=(const Extension&) = delete;

  // Before the first update of Trainer::run(), after what resume() restored.
  virtual void start(Trainer& /*trainer*/) {}
  // After each update, and the row made then, at which the trigger is due.
  virtual void run(Trainer& /*trainer*/) {}
  // After the last update and row of Trainer::run(), before the last checkpoint; not when an
  // exception ends it.
  virtual void end(Trainer& /*trainer*/) {}
  // Adds what checkpoints keep of it. Called once, when it is added to a trainer.
  virtual void add_state(serializers::Checkpoint& /*state*/) {}
  // Prints nothing in run(), so that the progress bar may stay.
  virtual bool is_quiet() const { return false; }
  // The files in the trainer's folder that it writes: those of an earlier run are not overwritten
  // unasked.
  virtual std::vector<std::string> files() const { return {}; }

  // What the constructor was given.
  const std::string& name() const { return name_; }
  const Trigger& trigger() const { return trigger_; }
  int priority() const { return priority_; }

 private:
  std::string name_;
  Trigger trigger_;
  int priority_;
};

// Which value of a metric counts as the best.
enum class Best : uint8_t { kHighest, kLowest };

// Saves the model to the trainer's folder after each row in which a column is better than in all
// rows before, the resumed ones included. Named "best FILE".
class KeepBest final : public Extension {
 public:
  KeepBest(std::string column, Best best, std::string file = "best.npz");
  void run(Trainer& trainer) override;
  void add_state(serializers::Checkpoint& state) override;
  std::vector<std::string> files() const override { return {file_}; }
  double record() const { return record_; }  // NaN: none yet

 private:
  std::string column_, file_;
  Best best_;
  double record_;
};

// Ends the run after a row that is, like the `patience - 1` rows before it, not better than the
// best one by more than `least_change`; NaN is never better. Rows before resume() count, and a
// resumed run that was stopped says so and ends at once; with more patience it goes on. Named
// "early stopping". ValueError unless patience > 0 and least_change >= 0.
class EarlyStopping final : public Extension {
 public:
  EarlyStopping(std::string column, Best best, int64_t patience, double least_change = 0);
  void start(Trainer& trainer) override;
  void run(Trainer& trainer) override;
  void add_state(serializers::Checkpoint& state) override;
  // The best value, NaN: none yet; rows since then.
  double record() const { return record_; }
  int64_t waited() const { return waited_; }

 private:
  std::string column_;
  Best best_;
  int64_t patience_;
  double least_change_, record_;
  int64_t waited_ = 0;
};

// Sets the learning rate of an optimizer to schedule(n), where n counts how often `every` was due
// in the whole run: before the first update schedule(0), so that each update has the rate of the
// updates (or epochs) finished before it. Runs before extensions of priority 0. ValueError when the
// schedule is empty, or `every` is not either of epochs and iterations.
class LearningRate final : public Extension {
 public:
  LearningRate(Optimizer& optimizer, optimizers::Schedule schedule, Trigger every = {.epochs = 1},
               std::string name = "learning rate");
  void start(Trainer& trainer) override { run(trainer); }
  void run(Trainer& trainer) override;

 private:
  Optimizer& optimizer_;
  optimizers::Schedule schedule_;
};

// A function as an extension.
class FunctionExtension final : public Extension {
 public:
  using Function = std::function<void(Trainer&)>;
  FunctionExtension(std::string name, const Trigger& trigger, Function function)
      : Extension(std::move(name), trigger), function_(std::move(function)) {}
  void run(Trainer& trainer) override { function_(trainer); }

 private:
  Function function_;
};

}  // namespace catena::training
