// Runs mpirun to its end and decides what came of it.
#pragma once

#include <string>
#include <vector>

#include "report.h"

namespace catena::launch {

struct Job {
  std::string mpirun;                    // path of the executable
  std::vector<std::string> command;      // argv of mpirun
  std::vector<std::string> environment;  // "NAME=VALUE", set on top of the current one
  std::string id;                        // as in RankSettings
  int ranks = 0;
  double start_timeout = 60;
  bool terminal = false;  // standard output is a terminal
};

// Output appears on standard output and standard error; the report does not.
Report run_job(const Job& job);

}  // namespace catena::launch
