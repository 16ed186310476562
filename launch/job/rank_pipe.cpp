#include "job/rank_pipe.h"

#include <unistd.h>

namespace catena::launch {

RankPipe RankPipe::make() {
  RankPipe pipe;
  pipe.ends_ = make_pipe();
  return pipe;
}

std::string RankPipe::path() const {
  if (!ends_.write.open()) return "";
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends_.write.get());
}

}  // namespace catena::launch
