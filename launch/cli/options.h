// The command line of catena-run.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "spec/hosts.h"

namespace catena::launch {

struct EnvSetting {
  std::string name;
  std::optional<std::string> value;  // empty: hand on the current one
  bool operator==(const EnvSetting&) const = default;
};

struct Options {
  std::optional<int> ranks;
  std::vector<Host> hosts;
  std::vector<int> gpus;
  bool cpu = false;
  std::vector<EnvSetting> env;
  double start_timeout = 60;
  double timeout = 300;
  std::optional<double> grace;
  std::string log_dir;
  bool bind = true;
  std::string mpirun = "mpirun";
  std::vector<std::string> mpi_args;
  bool dry_run = false;
  bool check = false;
  bool prepare = false;
  std::vector<std::string> program;
};

// The options, or the exit code when everything is done (--help, --version). Throws UserError.
std::variant<Options, int> parse_options(int argc, char** argv);

}  // namespace catena::launch
