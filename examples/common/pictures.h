// Pictures as files.
#pragma once

#include <string>

#include "catena/array/array.h"

namespace examples {

// Writes n gray images, (n, height, width) of numbers from 0 (black) to 1, side by side in rows of
// `columns`, as a portable graymap (.pgm), which most programs for pictures read. Rows that are not
// full end in black. ShapeError, and IoError where the file cannot be written.
void write_pictures(const std::string& path, const catena::Array& images, int64_t columns);

}  // namespace examples
