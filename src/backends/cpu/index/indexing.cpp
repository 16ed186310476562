// Gather along one axis.
#include "catena/array/indexing.h"
#include "backends/common/family.h"
#include "backends/cpu/index/positions.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/index.h"

namespace catena::host {

namespace {

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
    case 1: return take_items<uint8_t>(source, positions, count, output);
    case 2: return take_items<uint16_t>(source, positions, count, output);
    case 4: return take_items<uint32_t>(source, positions, count, output);
    case 8: return take_items<uint64_t>(source, positions, count, output);
  }
  for (int64_t j = 0; j < count; ++j) {
    std::memcpy(output + j * bytes, source + positions[j] * bytes, size_t(bytes));
  }
}

// Rows of a table by strict ids.
void look_up(const TakeCall& call) {
  const Array &source = call.source, &output = call.output;
  const int64_t outer = source.shape()[0], extent = source.shape()[1], count = call.indices.size();
  const size_t bytes = size_t(source.shape()[2] * source.itemsize());
  const char* from = static_cast<const char*>(source.raw_data());
  char* to = static_cast<char*>(output.raw_data());
  const int threads = threads_for(outer * count * (1 + int64_t(bytes) / 8));
  with_indices(call.indices, [&](const auto* ids) {
    parallel_ranges(outer * count, 16, threads, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t id = ids[at % count];
        char* row = to + size_t(at) * bytes;
        if (is_row(id, extent, call.ids))
          std::memcpy(row, from + size_t(at / count * extent + id) * bytes, bytes);
        else
          std::memset(row, id == call.ids.ignored ? 0 : 0xff, bytes);
      }
    });
  });
}

void take(const TakeCall& call) {
  const auto& [source, indices, mode, output, ids] = call;
  if (output.size() == 0) return;
  if (ids.strict) return look_up(call);
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

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, indexing) { kernels::take.provide<&host::take>(DeviceType::kCpu, "cpu"); }
