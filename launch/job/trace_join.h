// --trace FILE: the traces of all ranks as one file.
//
// Each rank writes FILE.rank<r> when it ends (catena/core/trace.h). The launcher joins them: times
// are moved to rank 0's clock, a track with the steps is added to each rank, and the parts go.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "job/trace_steps.h"

namespace catena::launch {

// The file by its full name, which is that of the target where `file` is a link, with parts of
// earlier jobs removed; their ranks may have been more. Throws UserError when its folder cannot be
// written, and when `file` exists and is not a regular file.
std::string prepare_trace(const std::string& file);

// Throws UserError when a device, a pipe, a socket or a folder has the name of a part of such a job
// on this host: its rank would record nothing.
void check_trace_parts(const std::string& file, int ranks);

// Removes the parts of an attempt of so many ranks, which another one follows.
void remove_trace_parts(const std::string& file, int ranks);

struct JoinedTrace {
  std::vector<int> missing;          // ranks that have left no part
  std::vector<std::string> damaged;  // parts that were not read to their end, and why
  std::uint64_t dropped = 0;         // events that did not fit into the ranks' memory
  std::int64_t clock_error = 0;      // the largest, in nanoseconds
  std::vector<int> unaligned;        // ranks whose clocks were not compared with that of rank 0
  // Why times of GPUs are missing, with the ranks.
  std::map<std::string, std::vector<int>> device_problems;
  std::vector<RankTimes> ranks;
  std::vector<TrainingStep> steps;
};

// Joins the parts of a job of so many ranks into `file` and removes them. Without any part no file
// is written. Throws std::runtime_error when `file` cannot be written; the parts then stay.
JoinedTrace join_trace(const std::string& file, int ranks);

// What catena-run prints about it.
std::string describe_trace(const std::string& file, const JoinedTrace& joined);

}  // namespace catena::launch
