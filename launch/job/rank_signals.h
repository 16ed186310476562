// Signals to the rank processes of a job, by where these are.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "job/outcome.h"
#include "starter/starter.h"

namespace catena::launch {

class RankSignals {
 public:
  // What has become of the job, and its starter, outlive this; `host` is the one of this process.
  RankSignals(const JobOutcome& job, const Starter& starter, std::string host);

  // Whether the rank process has started, and on this host.
  bool is_here(const RankOutcome& rank) const;
  bool all_here() const;
  std::vector<int> pids_here() const;

  // To the rank processes of this host, without the starter, which may be stuck.
  void send_here(int signal) const;
  // By the starter, whose process this is, to all; nothing if all are here. Before the first has
  // started there is nobody to hand it on to: the starter gets a SIGTERM.
  void send_by_starter(pid_t starter, int signal) const;

 private:
  const JobOutcome& job_;
  const Starter& starter_;
  const std::string host_;
};

}  // namespace catena::launch
