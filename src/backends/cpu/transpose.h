// Transposition of matrices of 4-byte elements.
#pragma once

#include <cstdint>

namespace catena::host {

inline constexpr int64_t kTransposeRows = 16;  // the most that one call takes

// Row i, column j of `to` becomes row j, column i of `from`; the elements of a row lie together in
// both, rows lie from_row and to_row bytes apart. At most kTransposeRows rows of `to`. With
// `stream` results go past the caches, which is faster when they are too large to stay there.
void transpose_words(const char* from, int64_t from_row, char* to, int64_t to_row, int64_t rows,
                     int64_t columns, bool stream);

}  // namespace catena::host
