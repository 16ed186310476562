// The elements of an array as nested std::vectors.
#pragma once

#include <vector>

#include "catena/array/array.h"

namespace catena {

namespace detail {

template <class T, int N>
struct Nested {
  using type = std::vector<typename Nested<T, N - 1>::type>;
};
template <class T>
struct Nested<T, 0> {
  using type = T;
};

// The last N axes of `shape`, from element `at` on, which it moves behind them.
template <class T, int N>
typename Nested<T, N>::type nest(const std::vector<T>& elements, const Shape& shape, size_t& at) {
  if constexpr (N == 0) {
    return elements[at++];
  } else {
    typename Nested<T, N>::type result;
    const int64_t extent = shape[shape.size() - N];
    result.reserve(static_cast<size_t>(extent));
    for (int64_t i = 0; i < extent; ++i) result.push_back(nest<T, N - 1>(elements, shape, at));
    return result;
  }
}

}  // namespace detail

// NumPy's tolist: tolist<double, 2>(a) is a std::vector<std::vector<double>>, tolist<float, 0>(a) a
// float. Waits for the device; values are cast as astype does. ShapeError when N is not the number
// of axes. array(lists) in creation.h is the way back.
template <class T, int N>
typename detail::Nested<T, N>::type tolist(const Array& a) {
  CATENA_CHECK(ShapeError, a.ndim() == N, "tolist: asked for lists of depth ", N,
               ", the array has shape ", a.shape());
  const std::vector<T> elements = a.to_vector<T>();
  size_t at = 0;
  return detail::nest<T, N>(elements, a.shape(), at);
}

}  // namespace catena
