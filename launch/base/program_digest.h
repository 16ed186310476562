// What must be the same on all hosts of a job for its ranks to be one program.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace catena::launch {

// Digests of the files that `program` (a name and its arguments) runs: "train=44680-f68... ",
// libcatena and its plug-ins when it is linked with them, and the script when the program is an
// interpreter. Names are without folders. Files that cannot be found are left out.
std::string program_digest(const std::vector<std::string>& program);

// "libcatena.so.0 differs between hosts: nodea has ..., nodeb has ..." for the digests of two
// hosts; empty when they agree.
std::optional<std::string> describe_difference(const std::string& host, const std::string& digest,
                                               const std::string& other_host,
                                               const std::string& other_digest);

}  // namespace catena::launch
