// Log lines on standard error, chosen by CATENA_LOG=error|warning|info|debug (default warning).
#pragma once

#include <string_view>

#include "catena/core/error.h"

namespace catena::logging {

// How important a line is; a level includes those before it.
enum class Level : int { kError, kWarning, kInfo, kDebug };

// Whether lines of the level are written, and writing one (a line break is added). Thread safe.
bool enabled(Level level);
void write(Level level, std::string_view text);

// Writes a line made of the parts if kError is enabled. Parts are formatted only then.
template <class... Parts>
void error(const Parts&... p) {
  if (enabled(Level::kError)) write(Level::kError, message(p...));
}
// As error, for the level kWarning.
template <class... Parts>
void warning(const Parts&... p) {
  if (enabled(Level::kWarning)) write(Level::kWarning, message(p...));
}
// As error, for the level kInfo.
template <class... Parts>
void info(const Parts&... p) {
  if (enabled(Level::kInfo)) write(Level::kInfo, message(p...));
}
// As error, for the level kDebug.
template <class... Parts>
void debug(const Parts&... p) {
  if (enabled(Level::kDebug)) write(Level::kDebug, message(p...));
}

}  // namespace catena::logging
