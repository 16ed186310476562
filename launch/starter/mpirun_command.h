// The mpirun line, in the dialect of the Open MPI that is installed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spec/job_spec.h"
#include "starter/mpirun_settings.h"

namespace catena::launch {

struct MpiVersion {
  int major = 0;
  int minor = 0;
  std::string text;  // "4.1.4"
};

// From the output of `mpirun --version`; empty when it is not Open MPI.
std::optional<MpiVersion> parse_mpirun_version(const std::string& output);

// Finds mpirun and asks for its version. Throws UserError that says how to install it.
struct Mpirun {
  std::string path;
  MpiVersion version;
};
Mpirun find_mpirun(const std::string& name);

// What of the line does not follow from the job.
struct MpirunDialect {
  int major = 4;                     // of Open MPI
  std::vector<McaSetting> settings;  // that the job adds
  std::string session_folder;        // for mpirun's own files; "": where it likes
};
// The words begin with the name of mpirun as the user gave it: with a path, mpirun changes PATH and
// LD_LIBRARY_PATH of all ranks to its own installation.
std::vector<std::string> mpirun_command(const JobSpec& spec, const MpirunDialect& dialect);

}  // namespace catena::launch
