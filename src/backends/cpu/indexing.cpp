// Concatenation and gather / scatter along one axis.
#include "catena/array/indexing.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loops/tables.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/positions.h"

namespace catena::host {

namespace {

template <class Item, class I>
void take_items(const char* source, const I* indices, int64_t count, int64_t extent,
                OutOfRange mode, char* output) {
  const Item* from = reinterpret_cast<const Item*>(source);
  Item* to = reinterpret_cast<Item*>(output);
  for (int64_t j = 0; j < count; ++j) to[j] = from[resolve(indices[j], extent, mode)];
}

// `count` slices of `bytes` bytes each.
template <class I>
void take_slices(const char* source, const I* indices, int64_t count, int64_t extent, int64_t bytes,
                 OutOfRange mode, char* output) {
  switch (bytes) {
    case 1:
      return take_items<uint8_t>(source, indices, count, extent, mode, output);
    case 2:
      return take_items<uint16_t>(source, indices, count, extent, mode, output);
    case 4:
      return take_items<uint32_t>(source, indices, count, extent, mode, output);
    case 8:
      return take_items<uint64_t>(source, indices, count, extent, mode, output);
  }
  for (int64_t j = 0; j < count; ++j) {
    std::memcpy(output + j * bytes, source + resolve(indices[j], extent, mode) * bytes,
                size_t(bytes));
  }
}

}  // namespace

void concatenate(const std::vector<Array>& inputs, int axis, const Array& output) {
  int64_t outer = 1, inner = output.itemsize();
  for (int d = 0; d < axis; ++d) outer *= output.shape()[size_t(d)];
  for (int d = axis + 1; d < output.ndim(); ++d) inner *= output.shape()[size_t(d)];
  const int64_t row = output.shape()[size_t(axis)] * inner;
  char* begin = static_cast<char*>(output.raw_data());
  for (const Array& input : inputs) {
    const int64_t extent = input.shape()[size_t(axis)], bytes = extent * inner;
    if (input.size() == 0) continue;
    if (input.is_contiguous()) {
      const char* from = static_cast<const char*>(input.raw_data());
      parallel_ranges(outer, 1, threads_for(input.nbytes() / 8), [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i)
          std::memcpy(begin + i * row, from + i * bytes, size_t(bytes));
      });
    } else {
      // A view of the output where this input goes.
      const int64_t offset = begin - static_cast<char*>(output.storage()->data);
      copy(input, Array::from_storage(output.storage(), offset, input.shape(), output.strides(),
                                      output.dtype()));
    }
    begin += bytes;
  }
}

void take(const Array& source, const Array& indices, uint8_t mode, const Array& output) {
  if (output.size() == 0) return;
  const int64_t outer = source.shape()[0], extent = source.shape()[1];
  const int64_t bytes = source.shape()[2] * source.itemsize(), count = indices.size();
  const char* from = static_cast<const char*>(source.raw_data());
  char* to = static_cast<char*>(output.raw_data());
  with_indices(indices, [&](const auto* positions) {
    // Flat over (outer, position), so that a single long list is shared out too.
    parallel_ranges(outer * count, 256, threads_for(outer * count * (1 + bytes / 8)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t at = begin; at < end;) {
                        const int64_t i = at / count, first = at % count,
                                      n = std::min(count - first, end - at);
                        take_slices(from + i * extent * bytes, positions + first, n, extent, bytes,
                                    static_cast<OutOfRange>(mode), to + at * bytes);
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
