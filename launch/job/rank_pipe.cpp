#include "job/rank_pipe.h"

#include "wire/pipe_name.h"

namespace catena::launch {

RankPipe RankPipe::make() {
  RankPipe pipe;
  pipe.ends_ = make_pipe();
  return pipe;
}

std::string RankPipe::name() const {
  return ends_.write.open() ? name_pipe(ends_.write.get()) : "";
}

}  // namespace catena::launch
