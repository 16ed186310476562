// A run of the trainer on the small problem, for tests of what extends it.
#pragma once

#include <sstream>

#include "catena/training/trainer.h"
#include "training/problem.h"

namespace catena::training {

struct SmallRun {
  testing::Net model{Dtype::kFloat32};
  optimizers::Adam optimizer{0.01};
  double factor = 1;  // of the loss
  datasets::ResidentIterator batches{make_data(), datasets::ShuffledIterator(kSamples, 5, 1),
                                     cpu(0)};
  StandardUpdater updater{batches, make_step(optimizer, score_of(model, &factor))};
  std::ostringstream text;
  Trainer trainer;

  explicit SmallRun(const TrainerOptions& options)
      : trainer((optimizer.setup(model), updater), model, optimizer, writing(options)) {}

 private:
  TrainerOptions writing(TrainerOptions options) {
    options.stream = &text;
    return options;
  }
};

// One process with test batches.
struct OneProcess : SmallRun {
  datasets::ResidentIterator test{make_data(7), datasets::SerialIterator(kSamples, 10), cpu(0)};

  explicit OneProcess(const TrainerOptions& options) : SmallRun(options) {
    trainer.evaluate_on(test, score_of(model));
  }
};

}  // namespace catena::training
