// Square blocks, as many rows as a vector has elements, are transposed in registers into a buffer
// with the destination's layout. The rows of the buffer are then written in long runs, with
// non-temporal stores on request.
#include "backends/cpu/copy/transpose.h"

#include <cstring>
#include <utility>

#include "backends/cpu/common/past_caches.h"

namespace catena::host {

namespace {

template <class W>
struct Block {
  static constexpr int kSide = int(16 / sizeof(W));
  typedef W Vector __attribute__((vector_size(16)));
  typedef W Unaligned __attribute__((vector_size(16), aligned(1), may_alias));
};

// The lanes of two vectors alternately, from the first or the second halves of both.
template <class W, int... kLane>
inline typename Block<W>::Vector interleave(typename Block<W>::Vector a,
                                            typename Block<W>::Vector b, bool second,
                                            std::integer_sequence<int, kLane...>) {
  constexpr int n = Block<W>::kSide;
  return second ? __builtin_shufflevector(a, b, ((kLane + n) / 2 + kLane % 2 * n)...)
                : __builtin_shufflevector(a, b, (kLane / 2 + kLane % 2 * n)...);
}

template <class W>
struct Buffer {
  static constexpr int64_t kRows = transpose_rows(sizeof(W));
  static constexpr int64_t kColumns = std::min<int64_t>(256, 1024 / sizeof(W));
  alignas(64) W words[kRows][kColumns];
};

// Interleaving rows i and i + half, log2(rows) times, is a transposition.
template <class W>
inline void transpose_block(const char* from, int64_t from_row, Buffer<W>& to, int64_t row,
                            int64_t column) {
  constexpr int n = Block<W>::kSide;
  constexpr auto lanes = std::make_integer_sequence<int, n>();
  typename Block<W>::Vector v[n], next[n];
  for (int k = 0; k < n; ++k)
    v[k] = *reinterpret_cast<const typename Block<W>::Unaligned*>(from + k * from_row);
  for (int step = 1; step < n; step *= 2) {
    for (int k = 0; k < n / 2; ++k) {
      next[2 * k] = interleave<W>(v[k], v[k + n / 2], false, lanes);
      next[2 * k + 1] = interleave<W>(v[k], v[k + n / 2], true, lanes);
    }
    for (int k = 0; k < n; ++k) v[k] = next[k];
  }
  for (int k = 0; k < n; ++k)
    *reinterpret_cast<typename Block<W>::Unaligned*>(&to.words[row + k][column]) = v[k];
}

template <class W>
void transpose_edge(const char* from, int64_t from_row, Buffer<W>& buffer, int64_t row_begin,
                    int64_t row_end, int64_t column_begin, int64_t column_end) {
  for (int64_t j = column_begin; j < column_end; ++j) {
    for (int64_t i = row_begin; i < row_end; ++i) {
      std::memcpy(&buffer.words[i][j], from + j * from_row + i * int64_t(sizeof(W)), sizeof(W));
    }
  }
}

template <class W>
void transpose_words(const char* from, int64_t from_row, char* to, int64_t to_row, int64_t rows,
                     int64_t columns, bool stream) {
  constexpr int64_t size = sizeof(W), side = Block<W>::kSide;
  // Unaligned rows would fill few cache lines completely.
  stream &= to_row % 16 == 0;
  Buffer<W> buffer;
  const int64_t whole_rows = rows / side * side;
  for (int64_t begin = 0; begin < columns; begin += buffer.kColumns) {
    const char* source = from + begin * from_row;
    const int64_t n = std::min(buffer.kColumns, columns - begin), whole = n / side * side;
    for (int64_t j = 0; j < whole; j += side) {
      for (int64_t i = 0; i < whole_rows; i += side)
        transpose_block<W>(source + j * from_row + i * size, from_row, buffer, i, j);
    }
    transpose_edge<W>(source, from_row, buffer, whole_rows, rows, 0, whole);
    transpose_edge<W>(source, from_row, buffer, 0, rows, whole, n);
    for (int64_t i = 0; i < rows; ++i) {
      char* row = to + i * to_row + begin * size;
      const auto words = reinterpret_cast<const char*>(buffer.words[i]);
      if (stream)
        store_past_caches(row, words, n * size);
      else
        std::memcpy(row, words, size_t(n * size));
    }
  }
  if (stream) finish_past_caches();
}

}  // namespace

void transpose(int64_t itemsize, const char* from, int64_t from_row, char* to, int64_t to_row,
               int64_t rows, int64_t columns, bool stream) {
  const auto run = itemsize == 1   ? &transpose_words<uint8_t>
                   : itemsize == 2 ? &transpose_words<uint16_t>
                   : itemsize == 4 ? &transpose_words<uint32_t>
                                   : &transpose_words<uint64_t>;
  run(from, from_row, to, to_row, rows, columns, stream);
}

}  // namespace catena::host
