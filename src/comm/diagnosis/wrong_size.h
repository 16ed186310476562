// Texts of errors when MPI sees another number of ranks than the launcher has started.
#pragma once

#include <string>

#include "catena/comm/factory.h"

namespace catena::comm {

// `library`: what MPI_Get_library_version says. Names what was seen and what to do: under Slurm the
// kind of --mpi that this library needs. For one process alone of several (they may not notice).
std::string describe_wrong_size(const LaunchEnvironment& launch, int mpi_size,
                                const std::string& library);

// Before MPI_Init in a task of srun: that nothing is there by which this library finds the other
// tasks, so that it may fail or run alone. "" where something is, and without other tasks.
std::string describe_missing_connection(const LaunchEnvironment& launch,
                                        const std::string& library);

// Whether this library finds other tasks of srun by PMIx ("pmix") or PMI-2 ("pmi2").
const char* slurm_mpi_kind(const std::string& library);

}  // namespace catena::comm
