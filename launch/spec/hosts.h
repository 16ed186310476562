// Host lists: "-H h1:4,h2:4" and hostfiles.
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace catena::launch {

struct Host {
  std::string name;
  int slots = 1;
  bool operator==(const Host&) const = default;
};

// "h1:4,h2" (no number: one slot). A host named twice gets the sum. Throws UserError.
std::vector<Host> parse_host_list(const std::string& text);

// Lines "name", "name slots=N" (also count=, max-slots= as Open MPI), "name:N"; '#' starts a
// comment. Throws UserError with `file_name` and the line number.
std::vector<Host> parse_hostfile(std::istream& lines, const std::string& file_name);
std::vector<Host> read_hostfile(const std::string& path);

int total_slots(const std::vector<Host>& hosts);

// Ranks of each host when the slots are filled in order.
std::vector<int> ranks_per_host(const std::vector<Host>& hosts, int ranks);
// The same as the name of each rank's host; empty without hosts.
std::vector<std::string> host_of_each_rank(const std::vector<Host>& hosts, int ranks);

}  // namespace catena::launch
