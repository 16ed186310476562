// A run that ends, with a checkpoint, when its process is asked to end.
#pragma once

#include "catena/comm/stop_signals.h"
#include "catena/training/extension.h"

namespace catena::training {

// Ends the run after the current update when one of the signals has come, with the last row and
// checkpoint of a run that ends: for jobs that are preempted or run out of time, and go on with
// Trainer::resume() in the next one.
//
//   auto& stop = trainer.extend(std::make_unique<training::StopOnSignal>(&optimizer.comm()));
//   trainer.run();
//   if (stop.signal() != 0) return 0;  // not finished
class StopOnSignal final : public Extension {
 public:
  // Over ranks all have one, with their communicator; they agree after every `every` updates,
  // which costs a small collective through host memory each time. A run of one process needs no
  // communicator. Errors as StopSignals; ValueError for an `every` below 1.
  explicit StopOnSignal(Communicator* comm = nullptr,
                        const std::vector<int>& signals = {SIGTERM, SIGUSR1}, int64_t every = 1);
  void start(Trainer& trainer) override;
  void run(Trainer& trainer) override;
  bool is_quiet() const override { return true; }
  // Which one has ended the run, 0: none has. The same on all ranks.
  int signal() const { return signal_; }

 private:
  Communicator* comm_;
  comm::StopSignals signals_;
  int signal_ = 0;
};

}  // namespace catena::training
