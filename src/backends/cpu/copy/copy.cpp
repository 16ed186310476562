// Copies with casts, fills and ranges.
#include "backends/cpu/copy/copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "array/iteration.h"
#include "backends/common/family.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/common/past_caches.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/copy.h"

namespace catena::host {

namespace {

// Transposition of matrices of elements of 1, 2, 4 or 8 bytes ------------------------------------

// Square blocks, as many rows as a vector has elements, are transposed in registers into a buffer
// with the destination's layout. The rows of the buffer are then written in long runs, with
// non-temporal stores on request.

// The most rows that one call takes: as many as use whole cache lines of the source.
constexpr int64_t transpose_rows(int64_t itemsize) { return std::max<int64_t>(16, 64 / itemsize); }

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

// Row i, column j of `to` becomes row j, column i of `from`. The elements of a row are contiguous
// in both arrays; the rows are from_row and to_row bytes apart. Takes at most
// transpose_rows(itemsize) rows of `to`. `stream` uses non-temporal stores, which are faster for
// results larger than the caches.
void transpose(int64_t itemsize, const char* from, int64_t from_row, char* to, int64_t to_row,
               int64_t rows, int64_t columns, bool stream) {
  const auto run = itemsize == 1   ? &transpose_words<uint8_t>
                   : itemsize == 2 ? &transpose_words<uint16_t>
                   : itemsize == 4 ? &transpose_words<uint32_t>
                                   : &transpose_words<uint64_t>;
  run(from, from_row, to, to_row, rows, columns, stream);
}

// Copies ----------------------------------------------------------------------------------------

constexpr int64_t kTile = 64;             // elements along both sides of a transposition's tile
constexpr int64_t kFetchedColumns = 256;  // of tiles that are first read into the cache

struct CopyJob {
  LoopPlan plan;  // operand 0: destination, 1: source
  CastLoop cast;
  CastLoop move;  // within the destination's dtype
  int64_t item;   // bytes of an element of the destination
  bool same;      // the dtypes are equal
  char* destination;
  const char* source;
};

// The fastest dimension of the source in memory, if the destination has another one; otherwise -1.
int transposed_dimension(const LoopPlan& plan) {
  int best = -1;
  int64_t stride = std::abs(plan.inner_stride(1));
  for (int d = 0; d < plan.ndim - 1; ++d) {
    const int64_t other = std::abs(plan.strides[1][d]);
    if (other != 0 && other < stride && plan.shape[d] >= 4) {
      best = d;
      stride = other;
    }
  }
  return plan.inner() >= 4 ? best : -1;
}

// Makes dimension d the last but one. A copy may visit the other dimensions in any order.
void move_before_inner(LoopPlan& plan, int d) {
  const int last = plan.ndim - 2;
  std::swap(plan.shape[d], plan.shape[last]);
  for (int k = 0; k < plan.operands; ++k) std::swap(plan.strides[k][d], plan.strides[k][last]);
}

// Tiles of the two last dimensions go through a buffer. The source is read along its fast dimension
// and the destination is written along its own, so each cache line is used as a whole.
void copy_tile(const CopyJob& job, const char* from, char* to, int64_t rows, int64_t columns) {
  const int d = job.plan.ndim - 2;
  const int64_t pitch = kTile * job.item;
  alignas(64) char buffer[kTile * kTile * 8];
  for (int64_t j = 0; j < columns; ++j) {
    job.cast(from + j * job.plan.inner_stride(1), job.plan.strides[1][d], buffer + j * job.item,
             pitch, rows);
  }
  for (int64_t i = 0; i < rows; ++i) {
    job.move(buffer + i * pitch, job.item, to + i * job.plan.strides[0][d],
             job.plan.inner_stride(0), columns);
  }
}

// Whether the two last dimensions are a plain transposition, without gaps between elements.
bool only_transposes(const CopyJob& job) {
  return job.same && job.plan.inner_stride(0) == job.item &&
         job.plan.strides[1][job.plan.ndim - 2] == job.item;
}

// Brings a tile, `columns` runs of `bytes` bytes each, into the cache in memory order. A
// transposition reads one cache line of each run in turn, which takes more than twice as long when
// the lines come from memory.
void fetch_tile(const char* from, int64_t distance, int64_t columns, int64_t bytes) {
  for (int64_t j = 0; j < columns; ++j, from += distance) {
    for (int64_t k = 0; k < bytes; k += 64) {
      char line = from[k];
      asm volatile("" : "+r"(line));  // keeps the read
    }
  }
}

void copy_transposed(const CopyJob& job) {
  constexpr int64_t kStrips = 8;  // that share a tile
  const LoopPlan& plan = job.plan;
  const int d = plan.ndim - 2;
  const int64_t rows = plan.shape[d], columns = plan.inner();
  const int64_t to_row = plan.strides[0][d], from_row = plan.inner_stride(1);
  const bool large = plan.size * job.item >= kPastCoreCaches;
  const int64_t strip = transpose_rows(job.item), high = large ? kStrips * strip : strip;
  const int64_t wide = large ? kFetchedColumns : columns;
  const int64_t down = (rows + high - 1) / high, across = (columns + wide - 1) / wide;
  const int64_t outer = plan.size / (rows * columns);
  parallel_for(outer * down * across, threads_for(plan.size), [&](int64_t unit) {
    const int64_t j = unit / down % across * wide, i = unit % down * high;
    const int64_t n = std::min(wide, columns - j), end = std::min(i + high, rows);
    const LoopCursor cursor(plan, unit / (down * across) * rows);
    const char* from = job.source + cursor.offset(1) + j * from_row;
    char* to = job.destination + cursor.offset(0) + j * job.item;
    if (large) fetch_tile(from + i * job.item, from_row, n, (end - i) * job.item);
    for (int64_t at = i; at < end; at += strip) {
      transpose(job.item, from + at * job.item, from_row, to + at * to_row, to_row,
                std::min(strip, end - at), n, large);
    }
  });
}

void copy_tiled(const CopyJob& job) {
  const LoopPlan& plan = job.plan;
  const int d = plan.ndim - 2;
  const int64_t rows = plan.shape[d], columns = plan.inner(), step = plan.strides[1][d];
  const int64_t strips = (rows + kTile - 1) / kTile, outer = plan.size / (rows * columns);
  const bool fetch = plan.size * job.item >= kPastCoreCaches && step > 0 && step <= 8;
  parallel_for(outer * strips, threads_for(plan.size), [&](int64_t unit) {
    const int64_t begin = unit % strips * kTile, count = std::min(kTile, rows - begin);
    const LoopCursor cursor(plan, unit / strips * rows);
    char* to = job.destination + cursor.offset(0) + begin * plan.strides[0][d];
    const char* from = job.source + cursor.offset(1) + begin * step;
    for (int64_t j = 0; j < columns; j += kTile) {
      const int64_t n = std::min(kTile, columns - j);
      const char* tile = from + j * plan.inner_stride(1);
      if (fetch) fetch_tile(tile, plan.inner_stride(1), n, count * step);
      copy_tile(job, tile, to + j * plan.inner_stride(0), count, n);
    }
  });
}

// Rows of a constant number of 16-byte words and a remainder, `distance` bytes apart.
template <int kPieces>
void move_rows(const char* from, int64_t from_distance, char* to, int64_t to_distance, int64_t rows,
               int64_t bytes) {
  const int64_t last = bytes - 16;  // the last word overlaps the one before it
  for (int64_t i = 0; i < rows; ++i, from += from_distance, to += to_distance) {
    for (int k = 0; k < kPieces; ++k) std::memcpy(to + 16 * k, from + 16 * k, 16);
    std::memcpy(to + last, from + last, 16);
  }
}
using MoveRows = void (*)(const char*, int64_t, char*, int64_t, int64_t, int64_t);
constexpr int64_t kShortRow = 256;
// The loop for rows of `bytes` bytes; null where calling memcpy for each row is cheap enough.
MoveRows short_row_loop(int64_t bytes) {
  static constexpr MoveRows kLoops[] = {
      &move_rows<0>,  &move_rows<1>,  &move_rows<2>,  &move_rows<3>, &move_rows<4>,  &move_rows<5>,
      &move_rows<6>,  &move_rows<7>,  &move_rows<8>,  &move_rows<9>, &move_rows<10>, &move_rows<11>,
      &move_rows<12>, &move_rows<13>, &move_rows<14>, &move_rows<15>};
  return bytes >= 16 && bytes <= kShortRow ? kLoops[(bytes - 1) / 16] : nullptr;
}

// Copies short rows without gaps and without a cast. Returns false for anything else.
bool copy_short_rows(const CopyJob& job) {
  const LoopPlan& plan = job.plan;
  const int64_t inner = plan.inner(), bytes = inner * job.item;
  if (!job.same || plan.ndim < 2 || plan.inner_stride(0) != job.item ||
      plan.inner_stride(1) != job.item) {
    return false;
  }
  const MoveRows move = short_row_loop(bytes);
  if (move == nullptr) return false;
  const int d = plan.ndim - 2;
  const int64_t together = plan.shape[d];
  parallel_ranges(plan.size / inner, 1, threads_for(plan.size), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end;) {
      const int64_t count = std::min(end - row, together - row % together);
      const LoopCursor cursor(plan, row);
      move(job.source + cursor.offset(1), plan.strides[1][d], job.destination + cursor.offset(0),
           plan.strides[0][d], count, bytes);
      row += count;
    }
  });
  return true;
}

void copy_rows(const CopyJob& job) {
  const LoopPlan& plan = job.plan;
  parallel_ranges(plan.size, 1024, threads_for(plan.size), [&](int64_t begin, int64_t end) {
    const int64_t inner = plan.inner();
    int64_t row = begin / inner;
    LoopCursor cursor(plan, row);
    for (int64_t at = begin; at < end; ++row, cursor.next_row()) {
      const int64_t first = at - row * inner, last = std::min(inner, end - row * inner);
      job.cast(job.source + cursor.offset(1) + first * plan.inner_stride(1), plan.inner_stride(1),
               job.destination + cursor.offset(0) + first * plan.inner_stride(0),
               plan.inner_stride(0), last - first);
      at += last - first;
    }
  });
}

void copy_planned(const LoopOperand (&operands)[2], char* destination, Dtype to, const char* source,
                  Dtype from) {
  CopyJob job{plan_loop(operands), cast_of(from, to), cast_of(to, to), int64_t(itemsize(to)),
              from == to,          destination,       source};
  const int transposed = transposed_dimension(job.plan);
  if (transposed >= 0) {
    move_before_inner(job.plan, transposed);
    if (only_transposes(job))
      copy_transposed(job);
    else
      copy_tiled(job);
  } else if (!copy_short_rows(job)) {
    copy_rows(job);
  }
}

void arange(const ArangeCall& call) {
  const auto& [destination, start, step] = call;
  const int64_t n = destination.size();
  visit_dtype(destination.dtype(), [&]<class T>(TypeTag<T>) {
    T* out = destination.data<T>();
    if constexpr (is_float(dtype_of<T>)) {
      const double first = start.to_double(), delta = step.to_double();
      for (int64_t i = 0; i < n; ++i) out[i] = T(first + double(i) * delta);
    } else {
      // Unsigned, because the difference of two numbers may exceed the largest int64.
      const uint64_t first = start.to<uint64_t>(), delta = step.to<uint64_t>();
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(first + uint64_t(i) * delta);
    }
  });
}

}  // namespace

void copy(const CopyCall& call) {
  const auto& [source, destination] = call;
  if (destination.size() == 0 ||
      (source.raw_data() == destination.raw_data() && source.dtype() == destination.dtype() &&
       source.strides() == destination.strides())) {
    return;
  }
  const CastLoop cast = cast_of(source.dtype(), destination.dtype());
  char* to = static_cast<char*>(destination.raw_data());
  const char* from = static_cast<const char*>(source.raw_data());
  if (source.is_contiguous() && destination.is_contiguous()) {
    const int64_t n = destination.size(), in = source.itemsize(), out = destination.itemsize();
    const bool large = n * out >= kPastCaches && source.dtype() != destination.dtype();
    parallel_ranges(n, 1024, threads_for(n), [&](int64_t begin, int64_t end) {
      if (large) {
        return compute_past_caches(to, out, begin, end, [&](char* buffer, int64_t at, int64_t m) {
          cast(from + at * in, in, buffer, out, m);
        });
      }
      cast(from + begin * in, in, to + begin * out, out, end - begin);
    });
    return;
  }
  copy_planned(
      {{&destination.shape(), &destination.strides()}, {&source.shape(), &source.strides()}}, to,
      destination.dtype(), from, source.dtype());
}

void fill(const FillCall& call) {
  const auto& [destination, value] = call;
  alignas(8) char bits[8];
  visit_dtype(destination.dtype(), [&]<class T>(TypeTag<T>) {
    const T element = value.to<T>();
    std::memcpy(bits, &element, sizeof(T));
  });
  static const Shape no_shape;
  copy_planned({{&destination.shape(), &destination.strides()}, {&no_shape, &no_shape}},
               static_cast<char*>(destination.raw_data()), destination.dtype(), bits,
               destination.dtype());
}

}  // namespace catena::host

CATENA_FAMILY(cpu, copy) {
  kernels::copy.provide<&host::copy>(DeviceType::kCpu, "cpu");
  kernels::fill.provide<&host::fill>(DeviceType::kCpu, "cpu");
  kernels::arange.provide<&host::arange>(DeviceType::kCpu, "cpu");
}
