// A job that is started again when it fails (--max-restarts): the attempts, and what follows each.
#pragma once

#include <string>
#include <vector>

#include "job/supervisor.h"

namespace catena::launch {

// What the decision about the next attempt needs to know of one that has ended.
struct PastAttempt {
  int ranks = 0;
  double seconds = 0;
  Verdict verdict;
  std::string what;      // the first line of its report, "" when it ended well
  int asked = 0;         // the signal by which somebody asked catena-run to end, 0: nobody did
  std::string hopeless;  // why another attempt would end the same way, "" when it might not
  bool early = false;    // it failed within seconds and before any rank's first collective
  std::vector<std::string> unreached;  // hosts that could not be reached
  std::string lost;                    // the host that fell silent or was lost, "" when none was
};
PastAttempt look_back(const JobSpec& spec, const Attempt& attempt);

// What comes next.
struct NextAttempt {
  bool again = false;
  std::string why_not;                // "" also when there is nothing to say
  std::vector<std::string> left_out;  // hosts
  std::vector<Host> hosts;            // and those that stay
  std::vector<std::string> nodes;     // the same of an allocation of Slurm; empty: all stay
  int ranks = 0;
};

// The nodes of an allocation of Slurm, for a job that may go on without some of them.
struct AllocatedNodes {
  std::vector<std::string> all;   // when the job began
  std::vector<std::string> left;  // that ranks can be started on now
  int ranks = 0;                  // of the first attempt
};
// `past` has at least one attempt. `restarts`: how many of spec.max_restarts have been used; an
// attempt for which hosts were left out uses none, as there cannot be more of these than hosts.
// `nodes`: with --min-ranks in an allocation, else nullptr.
NextAttempt decide_next(const JobSpec& spec, const std::vector<PastAttempt>& past, int restarts,
                        const AllocatedNodes* nodes = nullptr);

// A line an attempt; "" for one attempt, which has its report.
std::string describe_attempts(const std::vector<PastAttempt>& past);

// Runs the job, and again as long as spec.max_restarts and the kind of failure allow it. The output
// of the ranks appears on standard output and standard error, the report of each attempt, the list
// of all attempts and what there is to say of the last one's trace on standard error. Returns the
// exit code of the last attempt. Throws UserError when --min-ranks does not go together with the
// job.
int run_job(JobSpec spec, Starter& starter, SignalQueue& signals);

}  // namespace catena::launch
