// catena-run --check hostA,hostB: which network the hosts can use, how fast it is, and the settings
// that choose it.
//
// Each network in which all hosts have an address is tried by a small job of catena-run, one rank a
// host, whose collectives are confined to it and have a deadline. Variables of Open MPI that choose
// networks do not count meanwhile, and --mpi-args that do are an error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/network.h"
#include "spec/job_spec.h"

namespace catena::launch {

// The interfaces of a host, or why they are not known.
struct HostInterfaces {
  std::string host;
  std::vector<Interface> interfaces;
  std::string problem;
};

// A network that at least one of the hosts is in.
struct NetworkCandidate {
  std::string network;                  // "10.1.0.0/16"
  std::vector<std::string> interfaces;  // their names, each once: "eth0", "ens3"
  std::string obstacle;                 // why it cannot join all hosts; "": it may
};
// In the order of the first host's interfaces; without loopback.
std::vector<NetworkCandidate> network_candidates(const std::vector<HostInterfaces>& hosts);

// What a trial found.
struct NetworkTrial {
  NetworkCandidate candidate;
  bool works = false;
  double latency = 0;    // seconds of a small all-reduce
  double bandwidth = 0;  // bytes a second, as nccl-tests count (busbw)
  std::string reason;    // why it does not work
};
// The trial's line in the output of a job of `ranks` ranks; nothing when it has none.
std::optional<NetworkTrial> parse_trial(const std::string& output, int ranks);
// Why a job that did not work failed: what catena-run said first, else the last line.
std::string reason_of_failure(const std::string& output);

// The table, then the settings of the fastest network that works.
std::string format_network_check(const std::vector<NetworkTrial>& trials,
                                 const std::vector<Host>& hosts);

// "eth0 10.1.0.7/16" for each interface, and back. Lines that are none are left out.
std::string format_interfaces(const std::vector<Interface>& interfaces);
std::vector<Interface> parse_interfaces(const std::string& text);

// Tries the networks of job.hosts and prints what was found. The exit code is 0 when one of them
// works for all hosts. Throws UserError.
int run_network_check(const JobSpec& job);

// The parts of the check that catena-run does on other hosts and as a rank of the trial; the exit
// code, or nothing when the command line asks for neither.
std::optional<int> run_network_part(int argc, char** argv);

}  // namespace catena::launch
