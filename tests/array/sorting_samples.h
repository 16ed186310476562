// Arrays for the tests of sorting, scans and counting: every dtype, few distinct values, NaNs of
// both signs, zeros of both signs, infinities, and layouts that are not contiguous; on every
// device.
#pragma once

#include <cmath>
#include <functional>
#include <limits>

#include "catena/array/manipulation.h"
#include "cuda/gpu.h"

namespace catena::test {

inline std::vector<Dtype> every_dtype() {
  std::vector<Dtype> all;
  for (int i = 0; i < kDtypeCount; ++i) all.push_back(static_cast<Dtype>(i));
  return all;
}

// The CPU and, if there is one, the first GPU: tests say that they skip it.
class OnCpuAndGpu : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "cuda:0") CATENA_NEEDS_GPUS(1);
    device = Device(GetParam());
  }
  Device device;
};
#define CATENA_ON_DEVICES(suite)                                                                 \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::Values("cpu:0", "cuda:0"), [](const auto& info) { \
    std::string name = info.param;                                                               \
    name.erase(name.find(':'), 1);                                                               \
    return name;                                                                                 \
  })

// `kinds` distinct numbers around 0 (0: the whole range of the dtype), on cpu:0.
inline Array sample(const Shape& shape, Dtype dtype, int64_t kinds = 0) {
  const auto n = static_cast<size_t>(element_count(shape));
  Array result = empty(shape, {dtype, cpu()});
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = result.data<T>();
    for (size_t i = 0; i < n; ++i) {
      const uint64_t bits = kinds ? 0 : generator()();
      const int64_t small = kinds ? between(-kinds / 2, kinds / 2) : 0;
      if constexpr (std::is_same_v<T, bool>) {
        out[i] = (kinds ? uint64_t(small) : bits) & 1;
      } else if constexpr (std::is_integral_v<T>) {
        out[i] = kinds ? static_cast<T>(small) : static_cast<T>(bits);
      } else {
        using C = compute_t<T>;
        const double value =
            kinds ? double(small) / 4 : (double(bits >> 11) * 0x1p-53 - 0.5) * 2000;
        out[i] = T(C(value));
      }
    }
  });
  return result;
}

// The same with NaNs, zeros and infinities in between, where the dtype has them.
inline Array rough_sample(const Shape& shape, Dtype dtype, int64_t kinds = 0) {
  Array a = sample(shape, dtype, kinds);
  if (!is_float(dtype)) return a;
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const double special[] = {nan, -nan, inf, -inf, 0.0, -0.0};
  const Array flat = a.reshape({-1});
  for (int64_t i = 0; i < flat.size(); ++i) {
    if (between(0, 3) != 0) continue;
    const double value = special[between(0, 5)];
    visit_float("sample", dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      flat.data<T>()[i] = T(compute_t<T>(value));
    });
  }
  return a;
}

// The same elements in another layout: 0 contiguous, 1 reversed strides, 2 every second element of
// a larger array, 3 axes stored in reverse order.
inline Array in_layout(const Array& a, int layout) {
  if (layout == 1) return flip(flip(a).copy());
  if (layout == 2) {
    Shape larger = a.shape();
    std::vector<Index> second;
    for (int64_t& extent : larger) {
      extent *= 2;
      second.emplace_back(Slice(0, none, 2));
    }
    const Array view = zeros(larger, {a.dtype(), a.device()}).at(std::span<const Index>(second));
    view.assign(a);
    return view;
  }
  return layout == 3 ? a.transpose().copy().transpose() : a;
}

// Elements in C order in the type they are compared in.
template <class T>
std::vector<compute_t<T>> elements(const Array& a) {
  const Array host = a.to_cpu().contiguous();
  std::vector<compute_t<T>> result;
  for (int64_t i = 0; i < host.size(); ++i) result.push_back(compute_t<T>(host.data<T>()[i]));
  return result;
}

// Whether x comes before y: NaN last.
template <class C>
bool before(C x, C y) {
  return x < y || (x == x && y != y);
}
template <class C>
bool same(C x, C y) {
  return x == y || (x != x && y != y);
}

// Calls f(row, offset, step) for each row of a C-contiguous shape along an axis: element i of the
// row lies at offset + i * step.
inline void for_lines(const Shape& shape, int axis,
                      const std::function<void(int64_t, int64_t)>& f) {
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= shape[size_t(i)];
  for (int i = axis + 1; i < shape.ndim(); ++i) inner *= shape[size_t(i)];
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) f(o * shape[size_t(axis)] * inner + i, inner);
  }
}

template <class E>
std::string thrown_text(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another exception: ") + e.what();
  }
  return "no exception";
}
#define EXPECT_ERROR(type, text, ...)                                                      \
  EXPECT_NE(thrown_text<type>([&] { (void)(__VA_ARGS__); }).find(text), std::string::npos) \
      << thrown_text<type>([&] { (void)(__VA_ARGS__); })

}  // namespace catena::test
