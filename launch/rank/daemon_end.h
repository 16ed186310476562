// The daemon of mpirun on a host that is cut off from the launcher. It hears nothing and notices
// nothing until the kernel gives up its connection, which takes a quarter of an hour. Its ranks
// know more: they have ended, and nobody told them to.
#pragma once

#include <sys/types.h>

namespace catena::launch {

// Whether the process is a daemon of Open MPI on a host, and not mpirun itself.
bool is_daemon_of_mpirun(pid_t process);

// Kills the process, if it is such a daemon and still runs when ranks have had `grace` seconds to
// save and mpirun some more to end it. Returns at once.
void end_daemon_later(pid_t process, double grace);

// Kills the process if it still runs after so many seconds. Returns at once: a process of its own,
// which keeps no file open, waits for that. Does nothing where no process can be made.
void end_later(pid_t process, double seconds);

}  // namespace catena::launch
