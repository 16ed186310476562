// Verdict on a job: who failed first, how, and with what exit code catena-run ends. It is reached
// from values alone, never from the text of a report.
#pragma once

#include <string>
#include <vector>

#include "job/outcome.h"

namespace catena::launch {

struct Verdict {
  enum class Ending {
    well,
    stopped,          // catena-run was asked to end
    given_up,         // see JobOutcome::given_up
    host_silent,      // `host`
    rank_failed,      // `rank`, by `cause`
    host_lost,        // `host`, or the connection to it
    culprit_unknown,  // `noticed_by` noticed a failure, and no rank or host is known to be at fault
    host_unaccounted,  // the same, or nobody noticed one; no word came of how `host`'s ranks ended
    starter_stopped,   // the starter ended the ranks, and catena-run had not asked for it
    starter_killed,    // a signal ended the starter itself, and nobody said anything else
    starter_hung,      // see JobOutcome::hang
    launcher_missing,  // catena-run could not be started on `host`
    hosts_unreached,   // no rank was heard of `hosts`
    starter_failed     // nobody said anything else
  };
  enum class Cause {
    ended,    // by an exit code or a signal
    error,    // it said why
    aborted,  // by MPI_Abort
    asked,    // by a signal of an outsider to its rank process
    killed,   // its rank process was, by a signal
    hung,     // see JobOutcome::hang
    noticed   // by the rank `noticed_by`, maybe itself
  };

  Ending ending = Ending::well;
  int exit_code = 0;
  int rank = -1;
  Cause cause = Cause::ended;
  int noticed_by = -1;  // -1: no rank did
  std::string host = {};
  double seconds = 0;                   // host_silent: for how long
  std::vector<std::string> hosts = {};  // hosts_unreached
};

Verdict judge(const JobOutcome& job);

// The hosts that were to run ranks and of which no rank was heard, without this machine, which
// needs no ssh.
std::vector<std::string> silent_hosts(const JobOutcome& job);

}  // namespace catena::launch
