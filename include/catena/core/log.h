// Log lines on standard error, chosen by CATENA_LOG=error|warning|info|debug (default warning).
#pragma once

#include <string_view>

#include "catena/core/error.h"

namespace catena::logging {

enum class Level : int { kError, kWarning, kInfo, kDebug };

bool enabled(Level level);
void write(Level level, std::string_view text);

template <class... Parts>
void error(const Parts&... p) {
  if (enabled(Level::kError)) write(Level::kError, message(p...));
}
template <class... Parts>
void warning(const Parts&... p) {
  if (enabled(Level::kWarning)) write(Level::kWarning, message(p...));
}
template <class... Parts>
void info(const Parts&... p) {
  if (enabled(Level::kInfo)) write(Level::kInfo, message(p...));
}
template <class... Parts>
void debug(const Parts&... p) {
  if (enabled(Level::kDebug)) write(Level::kDebug, message(p...));
}

}  // namespace catena::logging
