// Rows of sorting routines, distributed over threads.
#pragma once

#include <algorithm>

#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"

namespace catena::host {

inline constexpr int64_t kFewItems = 64;  // sorted by comparisons
// Threads share a row from this length on. A shared sort has two barriers for each byte of the
// keys, which does not pay for shorter rows; of these each thread takes its own.
inline constexpr int64_t kLongRow = int64_t{1} << 21;

// Calls f(row, scratch, threads) for all rows, with `bytes` of scratch memory each.
template <class F>
void for_rows(Device device, int64_t rows, int64_t n, int64_t bytes, const F& f) {
  const bool shared = n >= kLongRow;
  const int threads = threads_for(rows * n * 8), parts = shared ? 1 : threads;
  bytes = (bytes + 63) / 64 * 64;
  const StoragePtr memory = allocate(device, size_t(bytes * std::max(parts, 1)));
  char* base = static_cast<char*>(memory->data);
  if (parts <= 1) {
    for (int64_t r = 0; r < rows; ++r) f(r, base, shared ? threads : 1);
    return;
  }
  parallel_for(parts, parts, [&](int64_t part) {
    for (int64_t r = rows * part / parts; r < rows * (part + 1) / parts; ++r)
      f(r, base + part * bytes, 1);
  });
}

// Sorts each row of `input` in ascending order into `values`.
void sort_values(const Array& input, const Array& values);

}  // namespace catena::host
