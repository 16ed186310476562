#include "catena/autograd/grad_mode.h"

namespace catena {
namespace {
thread_local bool t_recording = true;
thread_local bool t_repeated = false;
}  // namespace

bool is_recording() { return t_recording; }

NoBackprop::NoBackprop() : previous_(t_recording) { t_recording = false; }
NoBackprop::~NoBackprop() { t_recording = previous_; }

ForceBackprop::ForceBackprop() : previous_(t_recording) { t_recording = true; }
ForceBackprop::~ForceBackprop() { t_recording = previous_; }

bool is_repeated_forward() { return t_repeated; }
RepeatedForward::RepeatedForward() : previous_(t_repeated) { t_repeated = true; }
RepeatedForward::~RepeatedForward() { t_repeated = previous_; }

}  // namespace catena
