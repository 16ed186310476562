// The name under which the rank processes of a host find their status board.
#pragma once

#include <cstdlib>
#include <string>

#include "spec/job_spec.h"

namespace catena::launch {

inline constexpr const char* kBoardPrefix = "/catena-board-";

// The job's number is on command lines, which every user can read, and a name that others know
// is one that they can take first. The key goes from catena-run to the rank processes in the
// environment, which they cannot read. Without it, as when mpirun's line is typed by hand, the
// job's number must do.
inline constexpr const char* kBoardKey = "CATENA_BOARD_KEY";

// Gives this process, and what it starts from then on, a new one.
inline void set_new_board_key() {
  const std::string key = new_job_id() + new_job_id() + new_job_id() + new_job_id();
  setenv(kBoardKey, key.c_str(), 1);
}

inline std::string board_name(const std::string& job) {
  const char* key = std::getenv(kBoardKey);
  return kBoardPrefix + (key && *key ? std::string(key) : job);
}

}  // namespace catena::launch
