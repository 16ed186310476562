#include "catena/array/bits.h"

#include <algorithm>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/entry_scope.h"

namespace catena {
namespace {

// The bit of each of eight elements in its byte.
Array places(Device device, BitOrder order) {
  const Array ascending = arange(8, {Dtype::kUInt8, device});
  return order == BitOrder::kLittle ? ascending : flip(ascending).copy();
}

// `a` with the axis moved to the end; without an axis flattened.
Array to_end(const Array& a, OptionalAxis axis) {
  return axis ? moveaxis(a, normalize_axis(*axis, a.ndim()), -1) : a.ravel();
}
Array from_end(const Array& a, OptionalAxis axis) {
  return axis ? moveaxis(a, -1, *axis).contiguous() : a;
}

// Appends zeros along the last axis, up to `length`.
Array lengthened(const Array& a, int64_t length) {
  Shape shape = a.shape();
  shape.back() = length - shape.back();
  return shape.back() == 0 ? a : concatenate({a, zeros(shape, {a.dtype(), a.device()})}, -1);
}

}  // namespace

Array packbits(const Array& a, OptionalAxis axis, BitOrder order) {
  const EntryScope call("packbits");
  CATENA_CHECK(DtypeError, !is_float(a.dtype()), "expected integers or bool, got ", a.dtype());
  const Array lines = not_equal(to_end(a, axis), 0);
  const int64_t bytes = (lines.shape(-1) + 7) / 8;
  Shape shape = lines.shape();
  shape.back() = bytes;
  shape.push_back(8);
  const Array bits = lengthened(lines, bytes * 8).reshape(shape).astype(Dtype::kUInt8);
  return from_end(
      sum(left_shift(bits, places(a.device(), order)), {.axes = -1, .dtype = Dtype::kUInt8}), axis);
}

Array unpackbits(const Array& a, OptionalAxis axis, std::optional<int64_t> count, BitOrder order) {
  const EntryScope call("unpackbits");
  CATENA_CHECK(DtypeError, a.dtype() == Dtype::kUInt8, "expected uint8, got ", a.dtype());
  const Array lines = to_end(a, axis);
  Shape shape = lines.shape();
  shape.back() *= 8;
  const Array bits =
      bitwise_and(right_shift(lines(ellipsis, newaxis), places(a.device(), order)), 1)
          .reshape(shape);
  const int64_t all = shape.back(), wanted = !count ? all : *count < 0 ? all + *count : *count;
  CATENA_CHECK(ValueError, wanted >= 0, "a count of ", count.value_or(0), " leaves ", "none of ",
               all, " bits");
  const Array part = bits(ellipsis, Slice(0, std::min(all, wanted)));
  return from_end(lengthened(part, wanted).contiguous(), axis);
}

Array bitwise_count(const Array& a) {
  const EntryScope call("bitwise_count");
  CATENA_CHECK(DtypeError, !is_float(a.dtype()), "expected integers, got ", a.dtype());
  // Sums of adjacent bits, then pairs, fours and bytes. The magnitude of the lowest number of a
  // signed dtype is right when read as unsigned.
  Array x = (a.dtype() == Dtype::kBool ? a : absolute(a)).astype(Dtype::kUInt64);
  const int64_t bits = 8 * itemsize(a.dtype());
  if (bits < 64) x = bitwise_and(x, (uint64_t{1} << bits) - 1);
  const auto fold = [](const Array& v, uint64_t mask, int shift) {
    return add(bitwise_and(v, mask), bitwise_and(right_shift(v, shift), mask));
  };
  x = fold(x, 0x5555555555555555u, 1);
  x = fold(x, 0x3333333333333333u, 2);
  x = fold(x, 0x0f0f0f0f0f0f0f0fu, 4);
  return right_shift(multiply(x, uint64_t{0x0101010101010101u}), 56).astype(Dtype::kUInt8);
}

}  // namespace catena
