#include "catena/autograd/grad_mode.h"

#include "autograd/first_run.h"

namespace catena {
namespace {
thread_local bool t_recording = true;
thread_local bool t_repeated = false;
// How many NoBackprop scopes are open, and how many were when the innermost first run began.
thread_local int t_off = 0;
thread_local int t_off_of_first_run = -1;
}  // namespace

bool is_recording() { return t_recording; }

NoBackprop::NoBackprop() : previous_(t_recording) {
  t_recording = false;
  ++t_off;
}
NoBackprop::~NoBackprop() {
  t_recording = previous_;
  --t_off;
}

ForceBackprop::ForceBackprop() : previous_(t_recording) { t_recording = true; }
ForceBackprop::~ForceBackprop() { t_recording = previous_; }

FirstRun::FirstRun() : previous_(t_off_of_first_run) { t_off_of_first_run = t_off; }
FirstRun::~FirstRun() { t_off_of_first_run = previous_; }
bool is_recorded_in_the_end() { return t_recording || t_off == t_off_of_first_run; }

bool is_repeated_forward() { return t_repeated; }
RepeatedForward::RepeatedForward() : previous_(t_repeated) { t_repeated = true; }
RepeatedForward::~RepeatedForward() { t_repeated = previous_; }

}  // namespace catena
