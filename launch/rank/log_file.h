// The file that --log-dir asks for: what a terminal would have kept of a rank's output.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/process.h"
#include "wire/output_frames.h"

namespace catena::launch {

// Lines are written as they end. Of a line in which a progress bar was drawn, only what stood there
// last is written.
class LogFile {
 public:
  // Throws UserError when the file cannot be made, or another job writes it.
  void open(const std::string& path, const std::string& host);
  bool is_open() const { return file_.open(); }
  void add(Stream stream, std::string_view bytes);
  // Writes lines without an end, too.
  void finish();
  // Why the log ends early, "" when it does not.
  const std::string& problem() const { return problem_; }

 private:
  void write(std::string_view bytes);

  std::string path_;
  Descriptor file_;
  std::array<std::string, 2> unfinished_;  // of standard output, of standard error
  std::string problem_;
};

}  // namespace catena::launch
