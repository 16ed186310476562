#include "catena/training/stop_on_signal.h"

#include "catena/training/trainer.h"

namespace catena::training {

StopOnSignal::StopOnSignal(Communicator* comm, const std::vector<int>& signals, int64_t every)
    : Extension("stop on signal", {.iterations = every}), comm_(comm), signals_(signals) {
  CATENA_CHECK(ValueError, every >= 1, "StopOnSignal: every is ", every,
               ", expected a number of updates, 1 or more");
}

// One that came while the data was loaded.
void StopOnSignal::start(Trainer& trainer) { run(trainer); }

void StopOnSignal::run(Trainer& trainer) {
  signal_ = comm_ ? signals_.received(*comm_) : signals_.received();
  if (signal_ != 0) trainer.stop();
}

}  // namespace catena::training
