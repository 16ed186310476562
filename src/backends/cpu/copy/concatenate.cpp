// Joining along one axis.
#include <cstring>

#include "backends/common/family.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/copy/copy.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/copy.h"

namespace catena::host {

namespace {

// The part of an output row that each input fills: `bytes` each, `pitch` apart.
struct Joined {
  const std::vector<Array>* inputs;
  int64_t rows, pitch;
  char* output;
};

constexpr int64_t kSmall = 8;            // bytes of a piece that is moved as one number
constexpr int64_t kRowsTogether = 2048;  // rows that all inputs fill before the next rows begin

// Row by row from kCount inputs of one element each. The compiler turns this interleaving into
// shuffles.
template <class Item, int kCount>
void interleave(const char* const* inputs, char* output, int64_t begin, int64_t end) {
  const Item* from[kCount];
  for (int k = 0; k < kCount; ++k) from[k] = reinterpret_cast<const Item*>(inputs[k]);
  Item* to = reinterpret_cast<Item*>(output);
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    for (int k = 0; k < kCount; ++k) to[i * kCount + k] = from[k][i];
  }
}
using Interleave = void (*)(const char* const*, char*, int64_t, int64_t);
template <int kCount>
Interleave interleave_of(int64_t item) {
  switch (item) {
    case 1: return &interleave<uint8_t, kCount>;
    case 2: return &interleave<uint16_t, kCount>;
    case 4: return &interleave<uint32_t, kCount>;
    default: return &interleave<uint64_t, kCount>;
  }
}

bool all_contiguous(const std::vector<Array>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const Array& x) { return x.is_contiguous(); });
}

// Contiguous inputs with pieces of one element (stack along the last axis).
bool join_elements(const Joined& job, int axis) {
  const std::vector<Array>& inputs = *job.inputs;
  const int64_t item = inputs.front().itemsize(), count = int64_t(inputs.size());
  if (job.pitch != count * item || !all_contiguous(inputs)) return false;
  for (const Array& x : inputs) {
    if (x.shape()[size_t(axis)] != 1) return false;
  }
  std::vector<const char*> from;
  for (const Array& x : inputs) from.push_back(static_cast<const char*>(x.raw_data()));
  const Interleave together = count == 2   ? interleave_of<2>(item)
                              : count == 3 ? interleave_of<3>(item)
                              : count == 4 ? interleave_of<4>(item)
                                           : nullptr;
  const CastLoop move = cast_of(inputs.front().dtype(), inputs.front().dtype());
  parallel_ranges(job.rows, 1024, threads_for(job.rows * count), [&](int64_t begin, int64_t end) {
    if (together) return together(from.data(), job.output, begin, end);
    for (int64_t row = begin; row < end; row += kRowsTogether) {
      const int64_t n = std::min(kRowsTogether, end - row);
      for (int64_t k = 0; k < count; ++k) {
        move(from[size_t(k)] + row * item, item, job.output + row * job.pitch + k * item, job.pitch,
             n);
      }
    }
  });
  return true;
}

// memcpy of a few bytes without the function call.
inline void copy_piece(char* to, const char* from, int64_t bytes) {
  if (bytes > 64) {
    std::memcpy(to, from, size_t(bytes));
    return;
  }
  for (; bytes >= kSmall; bytes -= kSmall, to += kSmall, from += kSmall) {
    std::memcpy(to, from, size_t(kSmall));
  }
  for (; bytes > 0; --bytes) *to++ = *from++;
}

void concatenate(const ConcatenateCall& call) {
  const auto& [inputs, axis, output] = call;
  int64_t outer = 1, inner = output.itemsize();
  for (int d = 0; d < axis; ++d) outer *= output.shape()[size_t(d)];
  for (int d = axis + 1; d < output.ndim(); ++d) inner *= output.shape()[size_t(d)];
  const int64_t row = output.shape()[size_t(axis)] * inner;
  char* begin = static_cast<char*>(output.raw_data());
  if (inner == output.itemsize() && join_elements({&inputs, outer, row, begin}, axis)) return;
  for (const Array& input : inputs) {
    const int64_t extent = input.shape()[size_t(axis)], bytes = extent * inner;
    if (input.size() == 0) continue;
    if (input.is_contiguous()) {
      const char* from = static_cast<const char*>(input.raw_data());
      parallel_ranges(outer, 1, threads_for(input.nbytes() / 8 + outer),
                      [&](int64_t first, int64_t last) {
                        for (int64_t i = first; i < last; ++i)
                          copy_piece(begin + i * row, from + i * bytes, bytes);
                      });
    } else {
      // A view of the part of the output that this input fills.
      const int64_t offset = begin - static_cast<char*>(output.storage()->data);
      copy({input, Array::from_storage(output.storage(), offset, input.shape(), output.strides(),
                                       output.dtype())});
    }
    begin += bytes;
  }
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, concatenate) {
  kernels::concatenate.provide<&host::concatenate>(DeviceType::kCpu, "cpu");
}
