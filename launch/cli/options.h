// The command line of catena-run.
#pragma once

#include <string>
#include <variant>

#include "spec/job_spec.h"

namespace catena::launch {

struct CommandLine {
  JobSpec job;        // as far as it was asked for
  std::string trace;  // the file of --trace or CATENA_TRACE; "": none
  // What to do instead of starting the job.
  bool dry_run = false;
  bool check = false;
  bool prepare = false;
  bool status = false;  // of the job that the first word of job.program names, if there is one
};

// The command line, or the exit code when everything is done (--help, --version). Throws UserError.
std::variant<CommandLine, int> parse_options(int argc, char** argv);

}  // namespace catena::launch
