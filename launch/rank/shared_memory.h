// Leftovers of a program that was killed, in the memory that the ranks of a host share.
#pragma once

namespace catena::launch {

// Removes Open MPI's files in /dev/shm of the program of this rank process, "vader_segment.HOST.
// UID.JOB.RANK" (version 5: sm_segment...). Those who use them have them mapped. Does nothing where
// Open MPI has not started this process.
void remove_shared_memory(int local_rank);

}  // namespace catena::launch
