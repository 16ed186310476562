// Recorder of the times at which the actions of a step ran on their devices.
#pragma once

#include <map>
#include <vector>

#include "catena/core/stream.h"
#include "catena/parallel/pipeline/simulate.h"

namespace catena::parallel::pipeline {

// A point in the work of a stream; on a CPU, where work is done when calls return, a time.
struct Moment {
  Event event;
  double seconds = 0;
};

// Notes moments while a step is issued, and has their times once the devices have come to them.
class Recorder {
 public:
  // Of the rank's device, for each rank of which this process runs actions.
  explicit Recorder(std::map<int, Device> devices);

  // Waits for the devices, and begins their times.
  void begin();
  void next_step() { ++step_; }
  // A computation is issued: it begins, after this what it waits for has come, it ends. A
  // computation that waits for nothing needs no arrived().
  void begin(int rank, const Action& action);
  void arrived();
  void end();
  // A message on the wire, at one of its ends.
  void message(int rank, const Action& action, const Moment& begin, const Moment& end);
  // What the stream has been given so far.
  static Moment now(const Stream& stream);

  // Of all that was noted, in seconds of the host's clock. Waits for the devices.
  std::vector<Span> spans() const;

 private:
  struct Noted {
    int rank, step;
    Action action;
    Moment issued, begin, end;
  };
  // Times of a device's events are counted from `event`, which was there at `seconds`.
  double seconds_of(const Moment& moment) const;

  std::map<int, Device> devices_;
  std::map<int, Moment> origins_;  // of GPUs, by index
  std::vector<Noted> noted_;
  int step_ = 0;
};

// The measured step: spans of all ranks, in seconds from the first one's begin.
Simulation measured(const Schedule& schedule, std::vector<Span> spans);

}  // namespace catena::parallel::pipeline
