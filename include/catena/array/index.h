// The entries of a basic index: integers, slices, newaxis and ellipsis.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <variant>

namespace catena {

// One dimension of a slice: start:stop:step as in Python, where bounds may be left out.
struct Slice {
  std::optional<int64_t> start, stop;
  int64_t step = 1;

  Slice() = default;
  Slice(std::optional<int64_t> begin, std::optional<int64_t> end, int64_t stride = 1)
      : start(begin), stop(end), step(stride) {}
};
// In an index: an axis of extent 1 that the array does not have.
struct NewAxis {};
inline constexpr NewAxis newaxis{};
// In an index, once: as many full slices as there are axes left.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis{};

// One entry of a basic index: an integer, a slice, newaxis or ellipsis.
class Index : public std::variant<int64_t, Slice, NewAxis, Ellipsis> {
 public:
  template <std::integral T>
  requires(!std::same_as<T, bool>) Index(T value) : variant(static_cast<int64_t>(value)) {}
  Index(const Slice& slice) : variant(slice) {}
  Index(NewAxis axis) : variant(axis) {}
  Index(Ellipsis rest) : variant(rest) {}
};

}  // namespace catena
