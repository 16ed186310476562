// Gather and scatter along one axis.
#include "catena/array/indexing.h"
#include "backends/common/family.h"
#include "backends/cpu/index/positions.h"
#include "backends/cpu/loops/tables.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/elementwise_ops.h"
#include "catena/kernels/index.h"

namespace catena::host {

namespace {

constexpr int64_t kShortStrip = 8;     // elements for which calling a loop does not pay
constexpr int64_t kTakeBlock = 65536;  // positions that are kept for the next row

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

void take(const TakeCall& call) {
  const auto& [source, indices, mode, output] = call;
  if (output.size() == 0) return;
  const int64_t outer = source.shape()[0], extent = source.shape()[1];
  const int64_t bytes = source.shape()[2] * source.itemsize(), count = indices.size();
  const char* from = static_cast<const char*>(source.raw_data());
  char* to = static_cast<char*>(output.raw_data());
  const OutOfRange rule = static_cast<OutOfRange>(mode);
  const int threads = threads_for(outer * count * (1 + bytes / 8));
  // A short list that is used often is resolved once, a long one in pieces.
  std::vector<int64_t> resolved(outer > 1 && count <= kTakeBlock ? size_t(count) : 0);
  with_indices(indices, [&](const auto* positions) {
    if (!resolved.empty()) {
      const int64_t* places = resolve_all(positions, count, extent, rule, resolved.data());
      if (places != resolved.data()) std::copy_n(places, count, resolved.data());
    }
    // Flat over (outer, position), so that threads also share a single long list.
    parallel_ranges(outer * count, 256, threads, [&](int64_t begin, int64_t end) {
      int64_t block[kPositionPiece];
      for (int64_t at = begin; at < end;) {
        const int64_t i = at / count, first = at % count;
        int64_t n = std::min(count - first, end - at);
        const int64_t* places = resolved.data() + first;
        if (resolved.empty()) {
          n = std::min(n, kPositionPiece);
          places = resolve_all(positions + first, n, extent, rule, block);
        }
        take_slices(from + i * extent * bytes, places, n, bytes, to + at * bytes);
        at += n;
      }
    });
  });
}

namespace {

// One strip of the slices, position by position: to[p, k] += from[j, k].
template <class T, class I>
void add_slices(T* to, const I* positions, int64_t count, int64_t extent, const T* from,
                int64_t inner, int64_t begin, int64_t end) {
  using C = compute_t<T>;
  const Loop add = tables().loops[static_cast<int>(ops::add)][static_cast<int>(dtype_of<T>)].loop;
  int64_t block[kPositionPiece];
  for (int64_t first = 0; first < count; first += kPositionPiece) {
    const int64_t n = std::min(count - first, kPositionPiece);
    const int64_t* places = resolve_all(positions + first, n, extent, OutOfRange::kWrap, block);
    const T* values = from + first * inner;
    if (inner == 1) {
      for (int64_t j = 0; j < n; ++j) to[places[j]] = T(C(to[places[j]]) + C(values[j]));
    } else if (end - begin < kShortStrip || add == nullptr) {
      for (int64_t j = 0; j < n; ++j) {
        T* row = to + places[j] * inner;
        const T* value = values + j * inner;
        for (int64_t k = begin; k < end; ++k) row[k] = T(C(row[k]) + C(value[k]));
      }
    } else {
      constexpr int64_t kStrides[] = {sizeof(T), sizeof(T), sizeof(T)};
      for (int64_t j = 0; j < n; ++j) {
        char* row = reinterpret_cast<char*>(to + places[j] * inner + begin);
        const T* value = values + j * inner + begin;
        char* const pointers[] = {row, row, reinterpret_cast<char*>(const_cast<T*>(value))};
        add(pointers, kStrides, end - begin);
      }
    }
  }
}

}  // namespace

void scatter_add(const ScatterAddCall& call) {
  const auto& [target, indices, values] = call;
  if (values.size() == 0) return;
  const int64_t outer = target.shape()[0], extent = target.shape()[1], inner = target.shape()[2];
  const int64_t count = indices.size();
  visit_dtype(target.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = target.data<T>();
    const T* from = values.data<T>();
    with_indices(indices, [&](const auto* positions) {
      // Threads share the columns of the slices. No two threads write one element, and repeated
      // positions are added in the order of the indices.
      const int threads = threads_for(values.size() * 2);
      const int64_t strip = std::max<int64_t>(16, (inner + threads - 1) / threads);
      const int64_t strips = (inner + strip - 1) / strip;
      parallel_for(outer * strips, threads, [&](int64_t unit) {
        const int64_t i = unit / strips, begin = unit % strips * strip;
        add_slices(to + i * extent * inner, positions, count, extent, from + i * count * inner,
                   inner, begin, std::min(inner, begin + strip));
      });
    });
  });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, indexing) {
  kernels::take.provide<&host::take>(DeviceType::kCpu, "cpu");
  kernels::scatter_add.provide<&host::scatter_add>(DeviceType::kCpu, "cpu");
}
