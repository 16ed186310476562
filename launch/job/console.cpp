#include "job/console.h"

#include "base/text.h"

namespace catena::launch {
namespace {

// A longer line is printed in pieces.
constexpr std::size_t kLongLine = 64 * 1024;

}  // namespace

void Console::add(int rank, Stream stream, std::string_view bytes) {
  const bool rank0_output = rank == 0 && stream == Stream::output;
  if (rank0_output && terminal_) return add_raw(bytes);
  std::string& rest = unfinished_[{rank, stream}];
  for (const std::string& line : take_lines(rest, bytes)) print_line(rank, stream, line);
  if (rest.size() < kLongLine) return;
  if (rank0_output)
    write_(Stream::output, rest);
  else
    print_line(rank, stream, rest);
  rest.clear();
}

void Console::add_raw(std::string_view bytes) {
  if (bytes.empty()) return;
  write_(Stream::output, bytes);
  const std::size_t line = bytes.rfind('\n');
  const std::string_view last = line == std::string_view::npos ? bytes : bytes.substr(line + 1);
  const bool same_line = line == std::string_view::npos && mid_line_;
  bar_ = last.find('\r') != std::string_view::npos || (same_line && bar_);
  mid_line_ = same_line || !last.empty();
}

// The bar is drawn again by its next update; other text must not be lost.
void Console::clear_bar() {
  if (mid_line_) write_(Stream::output, bar_ ? "\r\x1b[K" : "\n");
  mid_line_ = bar_ = false;
}

void Console::print_line(int rank, Stream stream, std::string_view line) {
  clear_bar();
  if (rank == 0 && stream == Stream::output) return write_(stream, std::string(line) + "\n");
  std::string tagged = "[";
  tagged.append(std::to_string(rank)).append("] ").append(shown_of_line(line)).append("\n");
  write_(stream, tagged);
}

void Console::add_line(std::string_view line) {
  clear_bar();
  write_(Stream::error, std::string(line) + "\n");
}

void Console::finish() {
  for (auto& [source, rest] : unfinished_) {
    if (rest.empty() || (source.first == 0 && source.second == Stream::output)) continue;
    print_line(source.first, source.second, rest);
    rest.clear();
  }
  // Byte for byte, also without a last line end, so it comes last.
  std::string& last = unfinished_[{0, Stream::output}];
  write_(Stream::output, std::exchange(last, ""));
  if (mid_line_) write_(Stream::output, "\n");
  mid_line_ = bar_ = false;
}

}  // namespace catena::launch
