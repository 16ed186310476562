// The way of a rank process to the launcher: blocks on its standard error, see
// wire/output_frames.h.
#pragma once

#include <string>
#include <string_view>

#include "base/process.h"
#include "wire/output_frames.h"

namespace catena::launch {

class RankChannel {
 public:
  // Takes standard error over and gives the process /dev/null instead, so that no stray message
  // can fall between the blocks.
  RankChannel();
  void set_sender(std::string job, int rank);

  void send(Stream stream, std::string_view bytes);
  // Writes what can be written without waiting.
  void flush();
  // Waits until all was written and mpirun has taken it, at most `seconds`.
  void drain(double seconds);

  int fd() const { return out_.get(); }
  bool pending() const { return !queue_.empty(); }
  // More output of the program should not be read for now.
  bool full() const { return queue_.size() > 256 * 1024; }

 private:
  std::string job_;
  int rank_ = 0;
  Descriptor out_;
  std::string queue_;
};

}  // namespace catena::launch
