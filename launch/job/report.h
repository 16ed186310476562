// Who failed first, and what to say about it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "starter/mpirun_output.h"
#include "wire/rank_report.h"

namespace catena::launch {

// What the launcher knows of a rank when the job is over.
struct RankOutcome {
  std::optional<HelloRecord> hello;
  std::optional<EndRecord> end;
  // From the status board at the moment of the first failure, when the rank runs on this host.
  std::string operation_then;
};

// The job stood still and was ended. Who is at fault: a rank, a host, or neither (mpirun).
struct Standstill {
  int rank = -1;
  std::string host;
  std::string reason;
};

struct JobOutcome {
  std::vector<RankOutcome> ranks;
  int mpirun_status = 0;  // its exit code, 128 + signal when a signal ended it
  int stop_signal = 0;    // the signal that ended catena-run, 0: none
  // Where each rank was to run, "" or missing when mpirun decides.
  std::vector<std::string> planned_hosts;
  // How long nothing has been heard of other hosts that were silent at the first failure already.
  std::map<std::string, double> silences;
  std::uint64_t silences_time = 0;  // when that was, wall clock, ns
  // And of all other hosts at the end of the job, some of whose ranks did not say how they ended.
  std::map<std::string, double> final_silences;
  std::optional<Standstill> standstill;
  std::string network;      // of a job of several hosts: what they use, and how to choose another
  std::string setup_error;  // the launcher itself gave up: start timeout, world size, binaries
  MpirunHints hints;
};

struct Report {
  int exit_code = 0;
  std::string text;  // lines, "" when all went well
};
Report make_report(const JobOutcome& job);

bool failed(const EndRecord& end);

// The hosts that were to run ranks and of which no rank was heard, without this machine, which
// needs no ssh.
std::vector<std::string> silent_hosts(const JobOutcome& job);

// "0, 2-5, 7"
std::string format_ranks(const std::vector<int>& ranks);

}  // namespace catena::launch
