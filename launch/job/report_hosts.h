// Lines of the report about hosts and the ranks on them.
#pragma once

#include <string>
#include <vector>

#include "job/outcome.h"

namespace catena::launch {

// "host node2 (ranks 4-7)"
std::string name_host(const JobOutcome& job, const std::string& host);

// The endings of a verdict that name a host; without "catena-run: " and line end.
std::string describe_silent_host(const JobOutcome& job, const std::string& host,
                                 const std::string& time);
std::string describe_lost_host(const JobOutcome& job, const std::string& host);
std::string describe_unaccounted_host(const JobOutcome& job, const std::string& host);
std::string describe_missing_launcher(const JobOutcome& job, const std::string& host);
// With line ends; `ended` says how the starter did.
std::string describe_unreached(const JobOutcome& job, const std::vector<std::string>& hosts,
                               const std::string& ended);

// The ranks that had not joined when the start timeout was over.
std::string describe_missing(const JobOutcome& job);
// The hosts whose files differ.
std::string describe_difference(const FileDifference& difference);

// When ranks did not get to meet each other: the networks that they were to use, as a line; else
// "".
std::string describe_network(const JobOutcome& job);

// When MPI did not connect the ranks: what is wrong with /dev/shm, and the user's settings that
// choose how ranks reach each other, as lines; else "".
std::string describe_transports(const JobOutcome& job);

// A line for each rank whose log is not complete.
std::string describe_logs(const JobOutcome& job);

}  // namespace catena::launch
