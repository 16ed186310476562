// The threads of CPU kernels. Each thread that computes has its own team: itself, and workers that
// start when they are first needed and end with it.
#pragma once

#include <cstdint>

namespace catena::host {

// Calls piece(context, i) for each i of [0, pieces), 1 <= pieces <= kMaxPieces, on this thread and
// at most pieces - 1 workers. Returns when all are done. The caller takes the pieces that no worker
// has begun, so a worker without a core delays nobody. Inside a piece, nested calls run on the
// calling thread. A piece must not throw. After fork() the child starts its own workers.
inline constexpr int kMaxPieces = 4096;
void run_pieces(int pieces, void (*piece)(void* context, int i), void* context);

// Whether this thread is inside run_pieces or inside a parallel region of OpenMP.
bool in_parallel();

// The workers of this thread; for tests.
int team_workers();

// How often a worker polls for the next job before it sleeps, from OMP_WAIT_POLICY and
// GOMP_SPINCOUNT (either may be null), which OpenMP programs use. Without them a worker polls for
// tens of microseconds, the time that waking up would take.
int64_t spins_before_sleep(const char* wait_policy, const char* spin_count);

}  // namespace catena::host
