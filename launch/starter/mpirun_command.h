// The mpirun line, in the dialect of the Open MPI that is installed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "plan/network.h"
#include "plan/plan.h"

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

// What a rank process is told on its command line; see rank_process.h.
struct RankSettings {
  std::string job;  // 8 hexadecimal digits
  int size = 0;
  std::string devices;  // as in Plan
  double timeout = 300;
  double start_timeout = 60;
  std::optional<double> grace;  // as --grace
  std::string folder;           // to work in; "": where mpirun starts the rank process
  std::string log_dir;
  std::string terminal;  // "columns x lines" as 120x40 when catena-run prints to a terminal
  bool bind = true;
  bool several_hosts = false;  // also send signs of life, and digests of the files of the program
  bool escaped = false;        // the words of the program are percent-encoded
};
std::vector<std::string> to_words(const RankSettings& settings);
RankSettings parse_rank_settings(const std::vector<std::string>& words);

// Names of the variables that all ranks get: the fixed families that are set in `environment`
// ("NAME=VALUE" entries), then those of --env.
std::vector<std::string> forwarded_names(const std::vector<std::string>& environment,
                                         const std::vector<EnvSetting>& settings);

struct MpirunRequest {
  std::string mpirun = "mpirun";  // argv[0]
  MpiVersion version;
  Plan plan;
  std::vector<std::string> forward;  // names of variables
  std::vector<McaSetting> settings_of_mpi;
  std::vector<std::string> networks;  // that the hosts share, as in Network
  std::vector<std::string> mpi_args;
  std::string session_folder;  // for mpirun's own files; "": where it likes
  std::string launcher;        // path of catena-run, the same on all hosts
  RankSettings settings;
  std::vector<std::string> program;
};
std::vector<std::string> mpirun_command(const MpirunRequest& request);

// The folder that catena-run was started in, by the name that the user knows it by.
std::string working_folder();

}  // namespace catena::launch
