// The parent of one rank's program, started by mpirun on every host as
//   catena-run --rank-process job=... size=... -- program args...
// It passes the program its place, carries its output, outlives it, and reports how it ended.
#pragma once

namespace catena::launch {

// `argv` starts at "--rank-process". Returns the exit code of the process.
int run_rank_process(int argc, char** argv);

}  // namespace catena::launch
