// Gather and scatter along one axis.
#include "catena/array/indexing.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loops/tables.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/positions.h"

namespace catena::host {

namespace {

constexpr int64_t kTakePiece = 512;    // positions resolved at a time
constexpr int64_t kTakeBlock = 65536;  // positions worth keeping for the next row

// Resolves n positions into `places`; returns these, or the positions where all are fine as they
// are. The sign of position | (extent - 1 - position) tells whether one is not.
template <class I>
const int64_t* resolve_all(const I* positions, int64_t n, int64_t extent, OutOfRange mode,
                           int64_t* places) {
  int64_t outside = 0;
  for (int64_t j = 0; j < n; ++j)
    outside |= int64_t(positions[j]) | (extent - 1 - int64_t(positions[j]));
  if (outside < 0) {
    for (int64_t j = 0; j < n; ++j) places[j] = resolve(positions[j], extent, mode);
    return places;
  }
  if constexpr (sizeof(I) == sizeof(int64_t)) return positions;
  std::copy_n(positions, n, places);
  return places;
}

// to[j] = from[positions[j]], positions inside the extent.
template <class Item>
void take_items(const char* source, const int64_t* positions, int64_t count, char* output) {
  const Item* from = reinterpret_cast<const Item*>(source);
  Item* to = reinterpret_cast<Item*>(output);
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    const Item a = from[positions[j]], b = from[positions[j + 1]], c = from[positions[j + 2]],
               d = from[positions[j + 3]];
    to[j] = a;
    to[j + 1] = b;
    to[j + 2] = c;
    to[j + 3] = d;
  }
  for (; j < count; ++j) to[j] = from[positions[j]];
}

// `count` slices of `bytes` bytes each.
void take_slices(const char* source, const int64_t* positions, int64_t count, int64_t bytes,
                 char* output) {
  switch (bytes) {
    case 1:
      return take_items<uint8_t>(source, positions, count, output);
    case 2:
      return take_items<uint16_t>(source, positions, count, output);
    case 4:
      return take_items<uint32_t>(source, positions, count, output);
    case 8:
      return take_items<uint64_t>(source, positions, count, output);
  }
  for (int64_t j = 0; j < count; ++j) {
    std::memcpy(output + j * bytes, source + positions[j] * bytes, size_t(bytes));
  }
}

}  // namespace

void take(const Array& source, const Array& indices, uint8_t mode, const Array& output) {
  if (output.size() == 0) return;
  const int64_t outer = source.shape()[0], extent = source.shape()[1];
  const int64_t bytes = source.shape()[2] * source.itemsize(), count = indices.size();
  const char* from = static_cast<const char*>(source.raw_data());
  char* to = static_cast<char*>(output.raw_data());
  const OutOfRange rule = static_cast<OutOfRange>(mode);
  const int threads = threads_for(outer * count * (1 + bytes / 8));
  // A short list that is used often is resolved once, a long one piece by piece.
  std::vector<int64_t> resolved(outer > 1 && count <= kTakeBlock ? size_t(count) : 0);
  with_indices(indices, [&](const auto* positions) {
    if (!resolved.empty()) {
      const int64_t* places = resolve_all(positions, count, extent, rule, resolved.data());
      if (places != resolved.data()) std::copy_n(places, count, resolved.data());
    }
    // Flat over (outer, position), so that a single long list is shared out too.
    parallel_ranges(outer * count, 256, threads, [&](int64_t begin, int64_t end) {
      int64_t block[kTakePiece];
      for (int64_t at = begin; at < end;) {
        const int64_t i = at / count, first = at % count;
        int64_t n = std::min(count - first, end - at);
        const int64_t* places = resolved.data() + first;
        if (resolved.empty()) {
          n = std::min(n, kTakePiece);
          places = resolve_all(positions + first, n, extent, rule, block);
        }
        take_slices(from + i * extent * bytes, places, n, bytes, to + at * bytes);
        at += n;
      }
    });
  });
}

void scatter_add(const Array& target, const Array& indices, const Array& values) {
  if (values.size() == 0) return;
  const int64_t outer = target.shape()[0], extent = target.shape()[1], inner = target.shape()[2];
  const int64_t count = indices.size();
  visit_dtype(target.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    T* to = target.data<T>();
    const T* from = values.data<T>();
    with_indices(indices, [&](const auto* positions) {
      // Threads share out the columns of the slices: no two write one element, and repeated
      // positions add up in the order of the indices.
      const int threads = threads_for(values.size() * 2);
      const int64_t strip = std::max<int64_t>(16, (inner + threads - 1) / threads);
      const int64_t strips = (inner + strip - 1) / strip;
      parallel_for(outer * strips, threads, [&](int64_t unit) {
        const int64_t i = unit / strips, begin = unit % strips * strip,
                      end = std::min(inner, begin + strip);
        for (int64_t j = 0; j < count; ++j) {
          T* row = to + (i * extent + resolve(positions[j], extent, OutOfRange::kWrap)) * inner;
          const T* value = from + (i * count + j) * inner;
          for (int64_t k = begin; k < end; ++k) row[k] = T(C(row[k]) + C(value[k]));
        }
      });
    });
  });
}

}  // namespace catena::host
