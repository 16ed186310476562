#include "rank/shared_memory.h"

#include <filesystem>
#include <system_error>

#include "base/text.h"

namespace catena::launch {
namespace {

constexpr double kMebibyte = 1 << 20;
// Open MPI's segment of a rank (btl_vader_segment_size, in version 5 btl_sm_segment_size).
constexpr double kPerRank = 4 * kMebibyte;
// For what is behind the segments, and the status board.
constexpr double kBesides = kMebibyte;

}  // namespace

std::string shared_memory_problem(int ranks) {
  std::error_code error;
  const auto space = std::filesystem::space("/dev/shm", error);
  if (error) return "";
  return shared_memory_problem(static_cast<double>(space.capacity),
                               static_cast<double>(space.available), ranks);
}

std::string shared_memory_problem(double size, double free, int ranks) {
  const bool is_small = size < ranks * kPerRank + kBesides;
  if (!is_small && free >= kPerRank) return "";
  const std::string enlarge =
      "start containers with --shm-size=1g, elsewhere mount -o remount,size=1g /dev/shm";
  return std::string("/dev/shm is ") + (is_small ? "too small" : "full") + ": " + size_text(size) +
         ", " + size_text(free) + " free, where each of " + std::to_string(ranks) +
         " ranks needs " + size_text(kPerRank) + "; " +
         (is_small ? enlarge : "remove what is left there of other programs, or " + enlarge);
}

}  // namespace catena::launch
