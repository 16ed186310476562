// The report on a job: every text about its end is made here and in job/report_hosts.cpp.
#pragma once

#include <string>
#include <vector>

#include "job/verdict.h"

namespace catena::launch {

struct Report {
  int exit_code = 0;
  std::string text;  // lines, "" when all went well
};
Report make_report(const JobOutcome& job);

// "nothing was heard of it for 16 s", where "it" is the rank or the host of the hang.
std::string describe_hang(const Hang& hang, const StarterTerms& terms);

// "0, 2-5, 7"
std::string format_ranks(const std::vector<int>& ranks);
// "rank 0", "ranks 2-5, 7"
std::string name_ranks(const std::vector<int>& ranks);

}  // namespace catena::launch
