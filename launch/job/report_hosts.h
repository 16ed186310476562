// What the report says when not a rank but a host is at fault.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "job/report.h"

namespace catena::launch {

// "host node2 (ranks 4-7)"
std::string name_host(const JobOutcome& job, const std::string& host);

// The other host that stopped answering before anything else went wrong; `first_failure` is when a
// rank failed of its own accord (wall clock, ns; 0: none did).
std::optional<std::string> describe_silent_host(const JobOutcome& job, std::uint64_t first_failure);

// The host whose daemon ended, or whose connection did, in the middle of the job.
std::optional<std::string> describe_lost_host(const JobOutcome& job);
// The only host that fell silent and none of whose ranks said how it ended.
std::optional<std::string> describe_unaccounted_host(const JobOutcome& job);

// The ranks that are not there when the start timeout is over.
std::string describe_missing(const JobOutcome& job, double start_timeout);

// When ranks did not get to meet each other: the networks that they were to use, as a line; else
// "".
std::string describe_network(const JobOutcome& job);

// A line for each rank whose log is not complete.
std::string describe_logs(const JobOutcome& job);

}  // namespace catena::launch
