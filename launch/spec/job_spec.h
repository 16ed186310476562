// A job: what the user asked for and what was decided about it.
//
// The command line fills the first part, planning completes it (plan/plan.h, plan/surroundings.h),
// the starter makes its command of it, the rank processes get their part of it
// (wire/job_words.h), and the supervisor acts by it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "spec/hosts.h"

namespace catena::launch {

struct EnvSetting {
  std::string name;
  std::optional<std::string> value;  // empty: hand on the current one
  bool operator==(const EnvSetting&) const = default;
};
// In this process; without a value the variable goes.
void put(const EnvSetting& setting);

// What the ranks compute on.
struct Devices {
  enum class Kind { automatic, cpu, listed };  // automatic: each host looks for itself
  Kind kind = Kind::automatic;
  std::vector<int> gpus;  // listed: the GPU of each local rank
  bool operator==(const Devices&) const = default;
};
// "auto", "cpu", "cuda:0,1,3"
std::string to_text(const Devices& devices);
Devices parse_devices(const std::string& text);

// Over which networks the processes of the job may talk to each other.
struct Network {
  bool leaves_host = false;          // there are, or may be, ranks on other machines
  std::vector<std::string> shared;   // that all hosts are in, "10.1.0.0/16"; empty: not known
  std::vector<std::string> bridges;  // interfaces of this machine that lead to no other host
};

inline constexpr double kDefaultGrace = 3;

struct JobSpec {
  // Asked for on the command line.
  std::vector<std::string> program;  // and its arguments
  int ranks = 0;                     // 0: as many as there are GPUs or slots
  std::vector<Host> hosts;           // empty: this machine, or what the batch system allocated
  Devices devices;
  std::vector<EnvSetting> env;
  double start_timeout = 60;
  double timeout = 300;
  std::optional<double> grace;  // between SIGTERM and SIGKILL of ranks
  std::string log_dir;          // "": no logs
  std::string trace;            // of all ranks, by its full name; "": none
  bool no_bind = false;
  int max_restarts = 0;
  int min_ranks = 0;              // with which hosts may be left out of a restart; 0: none may
  std::string starter;            // "mpirun", "srun"; "": what suits
  std::string mpirun = "mpirun";  // as the user named it
  std::vector<std::string> mpi_args, srun_args;

  // Decided before the start; a dry run decides the same.
  std::string id;                    // 8 hexadecimal digits
  std::optional<int> restart;        // how often it has been started again; none: it will not be
  bool by_srun = false;              // the starter is srun
  bool in_allocation = false;        // the batch system chooses the hosts
  std::vector<std::string> nodes;    // of those hosts: the ones that are left; empty: all are
  bool remote = false;               // ranks may run on other machines: they send signs of life
  std::vector<std::string> forward;  // names of the variables that all ranks get
  Network network;
  std::string launcher;      // path of catena-run, the same on all hosts
  std::string folder;        // to work in; "": where the starter starts the rank processes
  std::string program_file;  // with the words of a long `program`, for this machine; else ""
  std::string terminal;      // "120x40" when catena-run prints to a terminal, else ""
  std::string rank_pipe;     // the pipe that rank processes of this machine write to, else ""

  // Whose programs must be the same files.
  bool several_hosts() const { return in_allocation || hosts.size() > 1; }
  double grace_seconds() const { return grace.value_or(kDefaultGrace); }
};

// 8 hexadecimal digits that no other job has.
std::string new_job_id();

// The environment of the job's ranks as "NAME=VALUE": that of this process, then --env.
std::vector<std::string> environment_of(const JobSpec& spec);

}  // namespace catena::launch
