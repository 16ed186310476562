// States of all ranks of a running job, which catena-run --status and SIGUSR1 print.
//
// Ranks of this host have their status board. Those of other hosts send what they do to catena-run,
// which keeps it where --status finds it: in a file without a name, among its descriptors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/process.h"
#include "spec/job_spec.h"
#include "wire/state_report.h"

namespace catena::launch {

// Of the ranks that have a slot of the board.
std::vector<StateReport> states_on(const comm::StatusBoard& board);

// A line for each rank, and lines about updates and stragglers, each with two spaces before it.
// `others`: the ranks of other hosts that are known, with the ages of what is known. `board` is
// nullptr when there is none.
std::string describe_ranks(const JobSpec& spec, const comm::StatusBoard* board,
                           const std::vector<StateReport>& others);

// Of ranks on other hosts, as heard last. Used by catena-run.
class OtherStates {
 public:
  // Takes a report, which others see at once or with the next publish_late().
  void note(const StateReport& report);
  // The rank has ended, or failed.
  void note_end(int rank, bool well);
  // Publishes what note() has not, because the last time was shortly before.
  void publish_late();
  // By rank, as old as they are now.
  std::vector<StateReport> all() const;

 private:
  struct Heard {
    StateReport state;
    double time = 0;  // when it came
  };

  void publish();

  std::map<int, Heard> heard_;
  double published_ = 0;  // when that was
  bool late_ = false;     // something is to be published
  Descriptor file_;
};

// The answer to SIGUSR1: a line about the job before those of the ranks, without the last line end.
std::string describe_now(const JobSpec& spec, const comm::StatusBoard* board,
                         const OtherStates& others);

// What the catena-run of that process number has published; none when there is no such process, or
// it has heard nothing.
std::vector<StateReport> published_states(int pid);

}  // namespace catena::launch
