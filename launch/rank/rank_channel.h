// The way of a rank process to the launcher: blocks (wire/output_frames.h) in the launcher's pipe,
// or on standard error, which the starter hands on.
#pragma once

#include <string>
#include <string_view>

#include "base/process.h"
#include "wire/output_frames.h"

namespace catena::launch {

class RankChannel {
 public:
  // `pipe` as JobSpec::rank_pipe; standard error when it is "" or cannot be opened. The process
  // gets /dev/null as standard error in any case, so that no stray message falls between the
  // blocks.
  explicit RankChannel(const std::string& pipe);
  void set_sender(std::string job, int rank);

  void send(Stream stream, std::string_view bytes);
  // Writes what can be written without waiting.
  void flush();
  // Waits until all was written and the starter, if it is on the way, has taken it; at most
  // `seconds`. Whether that is so.
  bool drain(double seconds);

  bool direct() const { return direct_; }
  int fd() const { return out_.get(); }
  bool pending() const { return !queue_.empty(); }
  // More output of the program should not be read for now.
  bool full() const { return queue_.size() > 256 * 1024; }

 private:
  std::string job_;
  int rank_ = 0;
  Descriptor out_;
  bool direct_;  // into the launcher's pipe
  std::string queue_;
};

}  // namespace catena::launch
