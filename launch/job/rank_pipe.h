// The pipe into which the rank processes of this machine write their output and their reports.
//
// mpirun hands nothing on while it is stopped, while a stranger's connection keeps it busy, and
// from the moment on in which it ends a job. What ranks print while they save, and how they ended,
// must not depend on it. The pipe has no name: rank processes open it through /proc, as the
// launcher's descriptor. Those of other machines write to their standard error.
#pragma once

#include <string>
#include <utility>

#include "base/process.h"
#include "wire/pipe_name.h"

namespace catena::launch {

class RankPipe {
 public:
  RankPipe() = default;  // none
  // Makes one.
  static RankPipe make() { return RankPipe(make_pipe()); }

  // By which rank processes open it (wire/pipe_name.h), "" for none.
  std::string name() const { return ends_.write.open() ? name_pipe(ends_.write.get()) : ""; }
  // From here on reading ends when the last rank process has closed its end.
  void close_for_new_writers() { ends_.write.reset(); }

  bool open() const { return ends_.read.open(); }
  Descriptor& reader() { return ends_.read; }

 private:
  explicit RankPipe(Pipe ends) : ends_(std::move(ends)) {}
  Pipe ends_;
};

}  // namespace catena::launch
