// The name under which the rank processes of a host find their status board.
#pragma once

#include <string>

namespace catena::launch {

inline constexpr const char* kBoardPrefix = "/catena-board-";

inline std::string board_name(const std::string& job) { return kBoardPrefix + job; }

}  // namespace catena::launch
