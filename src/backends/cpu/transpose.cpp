// Blocks of 4 x 4 are transposed in registers into a buffer of the destination's layout; its rows
// of kColumns elements are then written at once. Reading whole lines of few source rows and writing
// long pieces past the caches came out best of the tile shapes that were measured.
#include "backends/cpu/transpose.h"

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace catena::host {

namespace {

constexpr int64_t kColumns = 64;
constexpr int64_t kWord = 4;

typedef uint32_t Words __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint32_t Order __attribute__((vector_size(16)));

struct Buffer {
  alignas(64) uint32_t words[kTransposeRows][kColumns];
};

void transpose_block(const char* from, int64_t from_row, uint32_t (*to)[kColumns], int64_t column) {
  const auto load = [&](int64_t row) {
    return *reinterpret_cast<const Words*>(from + row * from_row);
  };
  const Words a = load(0), b = load(1), c = load(2), d = load(3);
  const Order low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, first = {0, 1, 4, 5}, second = {2, 3, 6, 7};
  const Words ab_low = __builtin_shuffle(a, b, low), ab_high = __builtin_shuffle(a, b, high);
  const Words cd_low = __builtin_shuffle(c, d, low), cd_high = __builtin_shuffle(c, d, high);
  const auto store = [&](int64_t row, Words value) {
    *reinterpret_cast<Words*>(&to[row][column]) = value;
  };
  store(0, __builtin_shuffle(ab_low, cd_low, first));
  store(1, __builtin_shuffle(ab_low, cd_low, second));
  store(2, __builtin_shuffle(ab_high, cd_high, first));
  store(3, __builtin_shuffle(ab_high, cd_high, second));
}

void transpose_edge(const char* from, int64_t from_row, Buffer& buffer, int64_t row_begin,
                    int64_t row_end, int64_t column_begin, int64_t column_end) {
  for (int64_t j = column_begin; j < column_end; ++j) {
    for (int64_t i = row_begin; i < row_end; ++i) {
      std::memcpy(&buffer.words[i][j], from + j * from_row + i * kWord, kWord);
    }
  }
}

void write_row(char* to, const uint32_t* words, int64_t n, bool stream) {
#ifdef __SSE2__
  if (stream && n == kColumns && reinterpret_cast<uintptr_t>(to) % 16 == 0) {
    for (int64_t k = 0; k < kColumns; k += 4) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + k * kWord),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(words + k)));
    }
    return;
  }
#endif
  std::memcpy(to, words, size_t(n * kWord));
}

}  // namespace

void transpose_words(const char* from, int64_t from_row, char* to, int64_t to_row, int64_t rows,
                     int64_t columns, bool stream) {
  Buffer buffer;
  const int64_t whole_rows = rows / 4 * 4;
  for (int64_t begin = 0; begin < columns; begin += kColumns) {
    const char* source = from + begin * from_row;
    const int64_t n = std::min(kColumns, columns - begin), whole = n / 4 * 4;
    for (int64_t j = 0; j < whole; j += 4) {
      for (int64_t i = 0; i < whole_rows; i += 4) {
        transpose_block(source + j * from_row + i * kWord, from_row, &buffer.words[i], j);
      }
    }
    transpose_edge(source, from_row, buffer, whole_rows, rows, 0, whole);
    transpose_edge(source, from_row, buffer, 0, rows, whole, n);
    for (int64_t i = 0; i < rows; ++i) {
      write_row(to + i * to_row + begin * kWord, buffer.words[i], n, stream);
    }
  }
#ifdef __SSE2__
  if (stream) _mm_sfence();
#endif
}

}  // namespace catena::host
