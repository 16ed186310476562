// The threads of CPU kernels. Each thread that computes has a team of its own: itself and workers
// that are started when they are first asked for and end with it.
#pragma once

#include <cstdint>

namespace catena::host {

// Calls piece(context, i) for each i of [0, pieces), 1 <= pieces <= kMaxPieces, on this thread and
// at most pieces - 1 workers; returns when all are done. The caller takes the pieces that no worker
// has begun, so a worker that does not get a core delays nobody. Inside of a piece, all run on the
// calling thread. A piece must not throw. After fork() the child starts workers of its own.
inline constexpr int kMaxPieces = 4096;
void run_pieces(int pieces, void (*piece)(void* context, int i), void* context);

// Whether this thread is inside of run_pieces or of a parallel region of OpenMP, where it is one of
// many.
bool in_parallel();

// Workers that this thread has; for tests.
int team_workers();

// How often a worker looks for the next job before it sleeps: OMP_WAIT_POLICY and GOMP_SPINCOUNT
// (either may be null), which programs know from OpenMP; without them the tens of microseconds that
// waking up would take.
int64_t spins_before_sleep(const char* wait_policy, const char* spin_count);

}  // namespace catena::host
