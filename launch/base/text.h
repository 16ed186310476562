// Small string helpers of the launcher.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace catena::launch {

// Something the user can put right; printed as "catena-run: <text>". The default exit code is the
// shell's for wrong usage.
class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& text, int exit_code = 2)
      : std::runtime_error(text), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

std::vector<std::string> split(std::string_view text, char separator);
std::vector<std::string> split_words(std::string_view text);  // at any run of blanks
// Adds bytes to `rest` and takes its whole lines off, which come without their ends.
std::vector<std::string> take_lines(std::string& rest, std::string_view bytes);
std::string_view trim(std::string_view text);
bool contains_any(const std::string& text, std::span<const char* const> phrases);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// "64 KiB", "1.5 MiB", "125.0 GiB".
std::string size_text(double bytes);

// A whole decimal number without sign; empty when it is anything else.
std::optional<int> parse_number(std::string_view text);

// A number of seconds above 0, whatever the locale; empty when it is anything else.
std::optional<double> parse_seconds(std::string_view text);

// Seconds as "%g" writes them: "60", "2.5".
std::string format_seconds(double seconds);

// As a POSIX shell would need it to be written.
std::string shell_quote(const std::string& text);
std::string shell_quote(const std::vector<std::string>& words);

// What a terminal would show of a line in which a progress bar was drawn: the text after the last
// '\r' that something follows, without the codes (ESC [ K) that clear the line.
std::string shown_of_line(std::string_view line);

// The end of a text, in whole lines where one fits into so many bytes.
std::string last_lines_of(const std::string& text, std::size_t most);

// What the C++ run-time library says of an uncaught exception: "std::runtime_error: boom" from the
// lines
//   terminate called after throwing an instance of 'std::runtime_error'
//     what():  boom
// "" when they are not there.
std::string exception_text(const std::string& standard_error);

// Bytes of the host name of this machine.
std::string host_name();

}  // namespace catena::launch
