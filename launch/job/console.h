// Puts the output of all ranks onto catena-run's own standard output and standard error.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "wire/output_frames.h"

namespace catena::launch {

// Lines of rank N begin with "[N] ", except those that rank 0 writes to its standard output, which
// pass as they are. Only whole lines of different ranks follow each other. On a terminal rank 0's
// standard output is not held back for its line end, so that it can draw a progress bar.
class Console {
 public:
  using Write = std::function<void(Stream stream, std::string_view bytes)>;

  Console(bool terminal, Write write) : terminal_(terminal), write_(std::move(write)) {}

  void add(int rank, Stream stream, std::string_view bytes);
  // A line that is not a rank's.
  void add_line(std::string_view line);
  // Prints what has no line end yet; leaves the cursor at the start of a line.
  void finish();

 private:
  void add_raw(std::string_view bytes);
  void print_line(int rank, Stream stream, std::string_view line);
  void clear_bar();

  bool terminal_;
  Write write_;
  std::map<std::pair<int, Stream>, std::string> unfinished_;
  bool mid_line_ = false;  // rank 0 left the terminal's cursor inside a line
  bool bar_ = false;       // and that line has been redrawn with '\r'
};

}  // namespace catena::launch
