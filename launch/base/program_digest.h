// Digest of what must be the same on all hosts of a job for its ranks to be one program.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace catena::launch {

// By the names of files, without folders: "size-hash" of their contents.
using Digests = std::map<std::string, std::string>;

// Of the files that `program` (a name and its arguments) runs: its own,
// libcatena and its plug-ins when it is linked with them, and the script when the program is an
// interpreter. Files that cannot be found are left out.
Digests program_digests(const std::vector<std::string>& program);

// A file that two hosts do not have alike.
struct FileDifference {
  std::string file;
  std::string host, digest;  // "none": it is not there
  std::string other_host, other_digest;
};
// The first difference; empty when the hosts agree.
std::optional<FileDifference> find_difference(const std::string& host, const Digests& digests,
                                              const std::string& other_host,
                                              const Digests& other_digests);

}  // namespace catena::launch
