// The part of a job that its rank processes get, as the words of their command line.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "spec/job_spec.h"

namespace catena::launch {

inline constexpr const char* kRankProcess = "--rank-process";

// By which Slurm brings rank processes the launcher's word to stop. Slurm signals all processes of
// a task: the rank process and its program, which ignores this one unless it asked for it.
inline constexpr int kStopOfSlurm = SIGURG;

// The words of a program that the starter would take for its own.
using MustHide = std::function<bool(const std::string& word)>;

// catena-run --rank-process job=... size=... -- program args...
// If a word of the program must be hidden, all of them are percent-encoded and the rank process is
// asked to; else they stay as they are, for `ps` and --dry-run.
std::vector<std::string> rank_process_command(const JobSpec& spec, const MustHide& must_hide);

// `words` begin behind "--rank-process". Throws UserError.
JobSpec parse_rank_process_words(const std::vector<std::string>& words);
// The same for a look at another process: words of another version are passed over, and a program
// whose words are in a file stays empty.
JobSpec look_at_rank_process_words(const std::vector<std::string>& words);

}  // namespace catena::launch
