// The windows of a convolution as a matrix, and their sums added back into the image. Both are
// plain copies and additions in the memory order of the patches. See catena/kernels/convolution.h.
#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>

#include "backends/common/family.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/direct_convolution.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/core/dtype_info.h"
#include "catena/kernels/convolution.h"

namespace catena::host {
namespace {

// Strides and extents of a call, in elements.
struct Layout {
  int64_t n, channels, height, width;  // of the image
  int64_t kernel[2], out[2];           // of the patches
  int64_t in[4], at[6];                // strides of image and patches
  int64_t stride[2], pad[2], dilation[2];

  Layout(const Array& image, const Array& patches, const Window& window) {
    const Shape& i = image.shape();
    const Shape& p = patches.shape();
    n = i[0], channels = i[1], height = i[2], width = i[3];
    for (size_t k = 0; k < 4; ++k) in[k] = image.strides()[k] / image.itemsize();
    for (size_t k = 0; k < 6; ++k) at[k] = patches.strides()[k] / patches.itemsize();
    for (size_t k = 0; k < 2; ++k) {
      kernel[k] = p[2 + k], out[k] = p[4 + k];
      stride[k] = window.stride[k], pad[k] = window.pad[k], dilation[k] = window.dilation[k];
    }
  }
  int64_t row(int64_t i, int64_t y) const { return y * stride[0] - pad[0] + i * dilation[0]; }
  // The positions [begin, end) of a result row that read columns of the image at tap j.
  void inside(int64_t j, int64_t& begin, int64_t& end) const {
    const int64_t shift = j * dilation[1] - pad[1];  // column = x * stride + shift
    begin = shift >= 0 ? 0 : std::min(out[1], (-shift + stride[1] - 1) / stride[1]);
    end = shift >= width ? 0 : std::min(out[1], (width - 1 - shift) / stride[1] + 1);
    end = std::max(begin, end);
  }
  bool channels_last() const { return channels > 1 && at[1] == 1; }
};

template <class T>
void copy_line(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t count) {
  if (from_step == 1 && to_step == 1) {
    std::memcpy(to, from, size_t(count) * sizeof(T));
    return;
  }
  constexpr Dtype kBits = sizeof(T) == 2   ? Dtype::kUInt16
                          : sizeof(T) == 4 ? Dtype::kUInt32
                          : sizeof(T) == 8 ? Dtype::kUInt64
                                           : Dtype::kUInt8;
  constexpr int64_t kItem = sizeof(T);
  cast_of(kBits, kBits)(reinterpret_cast<const char*>(from), from_step * kItem,
                        reinterpret_cast<char*>(to), to_step * kItem, count);
}
template <class T>
void zero_line(T* to, int64_t step, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i * step] = T{};
}

// Row y of the result at tap (i, j) of channel c, along the columns.
template <class T>
void gather_row(const Layout& l, const T* image, T* patches, int64_t i, int64_t j, int64_t y) {
  T* const to = patches + i * l.at[2] + j * l.at[3] + y * l.at[4];
  const int64_t row = l.row(i, y);
  int64_t begin = 0, end = 0;
  if (row >= 0 && row < l.height) l.inside(j, begin, end);
  zero_line(to, l.at[5], begin);
  const int64_t column = begin * l.stride[1] - l.pad[1] + j * l.dilation[1];
  if (begin < end)
    copy_line(image + row * l.in[2] + column * l.in[3], l.stride[1] * l.in[3], to + begin * l.at[5],
              l.at[5], end - begin);
  zero_line(to + end * l.at[5], l.at[5], l.out[1] - end);
}

// All channels that position (y, x) reads at each tap, along the channels.
template <class T>
void gather_position(const Layout& l, const T* image, T* patches, int64_t y, int64_t x) {
  for (int64_t i = 0; i < l.kernel[0]; ++i) {
    for (int64_t j = 0; j < l.kernel[1]; ++j) {
      T* const to = patches + i * l.at[2] + j * l.at[3] + y * l.at[4] + x * l.at[5];
      const int64_t row = l.row(i, y), column = x * l.stride[1] - l.pad[1] + j * l.dilation[1];
      if (row < 0 || row >= l.height || column < 0 || column >= l.width)
        zero_line(to, l.at[1], l.channels);
      else
        copy_line(image + row * l.in[2] + column * l.in[3], l.in[1], to, l.at[1], l.channels);
    }
  }
}

template <class T>
void gather(const Layout& l, const T* image, T* patches) {
  const int64_t taps = l.kernel[0] * l.kernel[1], work = l.channels * taps * l.out[1];
  if (l.channels_last()) {
    parallel_for(l.n * l.out[0], threads_for(l.n * l.out[0] * work / 4), [&](int64_t at) {
      const int64_t n = at / l.out[0], y = at % l.out[0];
      for (int64_t x = 0; x < l.out[1]; ++x)
        gather_position(l, image + n * l.in[0], patches + n * l.at[0], y, x);
    });
    return;
  }
  parallel_for(l.n * l.channels, threads_for(l.n * l.out[0] * work / 4), [&](int64_t at) {
    const int64_t n = at / l.channels, c = at % l.channels;
    for (int64_t i = 0; i < l.kernel[0]; ++i)
      for (int64_t j = 0; j < l.kernel[1]; ++j)
        for (int64_t y = 0; y < l.out[0]; ++y)
          gather_row(l, image + n * l.in[0] + c * l.in[1], patches + n * l.at[0] + c * l.at[1], i,
                     j, y);
  });
}

// `lines` lines of `count` sums that are side by side.
template <class T, class Sum>
void add_lines(const T* from, int64_t from_step, int64_t from_channel, Sum* to, int64_t to_step,
               int64_t lines, int64_t count) {
  if constexpr (std::is_same_v<T, Sum>)
    if (from_channel == 1)
      return loops_of<DirectConvolutionTables, Sum>().add_lines(from, from_step, to, to_step, lines,
                                                                count);
  for (int64_t l = 0; l < lines; ++l, from += from_step, to += to_step)
    for (int64_t c = 0; c < count; ++c) to[c] += Sum(from[c * from_channel]);
}

// `count` sums that are `to_step` apart.
template <class T, class Sum>
void add_apart(const T* from, int64_t from_step, Sum* to, int64_t to_step, int64_t count) {
  if constexpr (std::is_same_v<T, Sum>)
    if (from_step == 1)
      return loops_of<DirectConvolutionTables, Sum>().add_apart(from, to, to_step, count);
  for (int64_t i = 0; i < count; ++i) to[i * to_step] += Sum(from[i * from_step]);
}

// Adds the patches of one image to its sums, in the compute type: `count` channels side by side,
// columns next to each other.
template <class T, class Sum>
void add_patches(const Layout& l, const T* patches, int64_t count, Sum* sums) {
  const int64_t step = l.stride[1] * count;
  for (int64_t i = 0; i < l.kernel[0]; ++i) {
    for (int64_t j = 0; j < l.kernel[1]; ++j) {
      int64_t begin = 0, end = 0;
      l.inside(j, begin, end);
      if (begin == end) continue;
      for (int64_t y = 0; y < l.out[0]; ++y) {
        const int64_t row = l.row(i, y);
        if (row < 0 || row >= l.height) continue;
        const T* from = patches + i * l.at[2] + j * l.at[3] + y * l.at[4] + begin * l.at[5];
        const int64_t column = begin * l.stride[1] - l.pad[1] + j * l.dilation[1];
        Sum* to = sums + (row * l.width + column) * count;
        if (count == 1 && step == 1)
          add_lines(from, 0, l.at[5], to, 0, 1, end - begin);
        else if (count == 1)
          add_apart(from, l.at[5], to, step, end - begin);
        else
          add_lines(from, l.at[5], l.at[1], to, step, end - begin, count);
      }
    }
  }
}

template <class T, class Sum>
void store_sums(const Layout& l, const Sum* sums, T* image, int64_t count, bool accumulate) {
  for (int64_t c = 0; c < count; ++c)
    for (int64_t h = 0; h < l.height; ++h)
      for (int64_t w = 0; w < l.width; ++w) {
        T& to = image[c * l.in[1] + h * l.in[2] + w * l.in[3]];
        const Sum sum = sums[(h * l.width + w) * count + c];
        to = T(accumulate ? Sum(to) + sum : sum);
      }
}

// Whether `count` channels of an image are in memory as their sums are.
bool is_dense(const Layout& l, int64_t count) {
  return (count == 1 || l.in[1] == 1) && (l.width == 1 || l.in[3] == count) &&
         (l.height == 1 || l.in[2] == l.width * count);
}

// Adjacent channels are added together; otherwise each channel is a separate piece.
template <class T, class Sum>
void scatter(const Layout& l, const T* patches, T* image, bool accumulate) {
  const int64_t together = l.channels_last() ? l.channels : 1;
  const int64_t pieces = l.n * (l.channels / together);
  const int64_t work = l.channels * l.kernel[0] * l.kernel[1] * l.out[0] * l.out[1];
  parallel_for(pieces, threads_for(l.n * work / 2), [&](int64_t at) {
    const int64_t n = at / (l.channels / together), c = at % (l.channels / together);
    const int64_t size = l.height * l.width * together;
    if constexpr (std::is_same_v<T, Sum>)
      if (is_dense(l, together)) {
        Sum* const sums = image + n * l.in[0] + c * l.in[1];
        if (!accumulate) std::fill_n(sums, size, Sum(0));
        return add_patches(l, patches + n * l.at[0] + c * l.at[1], together, sums);
      }
    const std::unique_ptr<Sum[]> sums(new Sum[size_t(size)]());
    add_patches(l, patches + n * l.at[0] + c * l.at[1], together, sums.get());
    store_sums(l, sums.get(), image + n * l.in[0] + c * l.in[1], together, accumulate);
  });
}

void patches(const PatchesCall& call) {
  const Layout layout(*call.image, *call.patches, call.window);
  const void* from = call.image->raw_data();
  void* to = call.patches->raw_data();
  switch (call.image->itemsize()) {
    case 2: return gather(layout, static_cast<const uint16_t*>(from), static_cast<uint16_t*>(to));
    case 4: return gather(layout, static_cast<const uint32_t*>(from), static_cast<uint32_t*>(to));
    case 8: return gather(layout, static_cast<const uint64_t*>(from), static_cast<uint64_t*>(to));
    default: return gather(layout, static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to));
  }
}

void patch_sums(const PatchSumsCall& call) {
  const Layout layout(*call.image, *call.patches, call.window);
  const void* from = call.patches->raw_data();
  void* to = call.image->raw_data();
  visit_dtype(call.image->dtype(), [&]<class T>(TypeTag<T>) {
    using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float> ||
                  std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      scatter<T, Sum>(layout, static_cast<const T*>(from), static_cast<T*>(to), call.accumulate);
    else
      fail<DtypeError>("patch_sums: no kernel for ", dtype_of<T>);
  });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, patches) {
  kernels::patches.provide<&host::patches>(DeviceType::kCpu, "cpu");
  kernels::patch_sums.provide<&host::patch_sums>(DeviceType::kCpu, "cpu");
}
