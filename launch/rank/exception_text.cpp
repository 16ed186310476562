#include "rank/exception_text.h"

namespace catena::launch {

std::string exception_text(const std::string& standard_error) {
  const std::string mark = "terminate called after throwing an instance of '";
  const std::size_t at = standard_error.rfind(mark);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + mark.size();
  const std::size_t end = standard_error.find("'\n", begin);
  if (end == std::string::npos) return "";
  const std::string type = standard_error.substr(begin, end - begin);
  const std::string what = "  what():  ";
  if (standard_error.compare(end + 2, what.size(), what) != 0) return type;
  const std::size_t text = end + 2 + what.size();
  return type + ": " + standard_error.substr(text, standard_error.find('\n', text) - text);
}

}  // namespace catena::launch
