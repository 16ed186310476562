#include "wrong_size.h"

#include <cstdlib>

#include "catena/core/error.h"
#include "core/slurm_step.h"

namespace catena::comm {
namespace {

// The first line, without what follows a comma: "Open MPI v4.1.4", "MPICH Version: 4.0.2".
std::string name_of(const std::string& library) {
  std::string name = library.substr(0, library.find_first_of(",\n"));
  for (char& c : name)
    if (c == '\t') c = ' ';
  return name.empty() ? "this MPI library" : name;
}

// What srun has given this process to find the others.
std::string describe_connection() {
  const char* kind = std::getenv("SLURM_MPI_TYPE");
  std::string text = kind && *kind ? message("srun used --mpi=", kind) : "srun used no --mpi";
  for (const char* name : {"PMIX_RANK", "PMI_RANK"})
    if (std::getenv(name)) text += message(" and set ", name);
  return text;
}

// Whether srun has started this process, for catena-run or by itself; mpirun starts its daemons by
// it.
bool is_started_by_srun(const LaunchEnvironment& launch) {
  return launch.source.starts_with("SLURM_") ||
         (slurm_step() && !std::getenv("OMPI_COMM_WORLD_SIZE"));
}

std::string advise(const std::string& kind) {
  return message("srun --mpi=", kind,
                 " (srun --mpi=list says what this Slurm has; for catena-run: "
                 "--srun-args --mpi=",
                 kind, ", or --starter mpirun)");
}

}  // namespace

const char* slurm_mpi_kind(const std::string& library) {
  for (const char* name : {"MPICH", "MVAPICH", "Intel"})
    if (library.find(name) != std::string::npos) return "pmi2";
  return "pmix";
}

std::string describe_missing_connection(const LaunchEnvironment& launch,
                                        const std::string& library) {
  const bool given = std::getenv("PMIX_RANK") || std::getenv("PMI_RANK");
  if (!is_started_by_srun(launch) || launch.size == 1 || given) return "";
  const char* kind = slurm_mpi_kind(library);
  return message("mpi: ", describe_connection(), ", and ", name_of(library), " needs --mpi=", kind,
                 " to connect the ", launch.size, " tasks. If MPI fails to start now, use ",
                 advise(kind));
}

std::string describe_wrong_size(const LaunchEnvironment& launch, int mpi_size,
                                const std::string& library) {
  const std::string seen = message("mpi: ", launch.source, " says that the job has ", launch.size,
                                   " ranks, but MPI sees ", mpi_size);
  if (mpi_size != 1) return seen + "; start the program with catena-run or unset the variable";
  if (!is_started_by_srun(launch))
    return seen +
           ". Every process runs alone: it was not started by the mpirun of the MPI library that "
           "catena was built with. Start it with that mpirun (catena-run does), or with Slurm by "
           "srun --mpi=pmix";
  return message(seen, ". Every task runs alone: ", describe_connection(), ", through which ",
                 name_of(library), " did not find the others. Use ",
                 advise(slurm_mpi_kind(library)));
}

}  // namespace catena::comm
