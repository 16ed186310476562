// By which signal Slurm brings rank processes the launcher's word to stop.
#pragma once

#include <csignal>

namespace catena::launch {

// Slurm signals all processes of a task: the rank process and its program, which ignores this one
// unless it asked for it.
inline constexpr int kStopOfSlurm = SIGURG;

}  // namespace catena::launch
