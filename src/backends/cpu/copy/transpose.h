// Transposition of matrices of elements of 1, 2, 4 or 8 bytes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace catena::host {

// The most rows that one call takes: as many as use whole cache lines of the source.
constexpr int64_t transpose_rows(int64_t itemsize) { return std::max<int64_t>(16, 64 / itemsize); }

// Row i, column j of `to` becomes row j, column i of `from`. The elements of a row are contiguous
// in both arrays; the rows are from_row and to_row bytes apart. Takes at most
// transpose_rows(itemsize) rows of `to`. `stream` uses non-temporal stores, which are faster for
// results larger than the caches.
void transpose(int64_t itemsize, const char* from, int64_t from_row, char* to, int64_t to_row,
               int64_t rows, int64_t columns, bool stream);

}  // namespace catena::host
