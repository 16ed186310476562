#include "catena/autograd/grad_mode.h"

namespace catena {
namespace {
thread_local bool t_recording = true;
}

bool is_recording() { return t_recording; }

NoBackprop::NoBackprop() : previous_(t_recording) { t_recording = false; }
NoBackprop::~NoBackprop() { t_recording = previous_; }

ForceBackprop::ForceBackprop() : previous_(t_recording) { t_recording = true; }
ForceBackprop::~ForceBackprop() { t_recording = previous_; }

}  // namespace catena
