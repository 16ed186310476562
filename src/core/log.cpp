#include "catena/core/log.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "catena/core/printable.h"

namespace catena::logging {
namespace {

Level level_from_environment() {
  const char* text = std::getenv("CATENA_LOG");
  if (text == nullptr || *text == '\0') return Level::kWarning;
  if (!std::strcmp(text, "error")) return Level::kError;
  if (!std::strcmp(text, "info")) return Level::kInfo;
  if (!std::strcmp(text, "debug")) return Level::kDebug;
  if (std::strcmp(text, "warning") != 0) {
    std::fprintf(stderr,
                 "catena: CATENA_LOG=%s is none of error, warning, info, debug; using warning\n",
                 printable(text).c_str());
  }
  return Level::kWarning;
}

}  // namespace

bool enabled(Level level) {
  static const Level threshold = level_from_environment();
  return level <= threshold;
}

void write(Level level, std::string_view text) {
  static constexpr const char* kNames[] = {"error", "warning", "info", "debug"};
  // One write, so that lines of several ranks and threads do not mix.
  const std::string line =
      "catena " + std::string(kNames[static_cast<int>(level)]) + ": " + printable(text) + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace catena::logging
