// What the CPU does differently for large operands: results past the caches, tiles that are read
// first. The same bits as for small ones.
#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"

namespace catena {
namespace {

// Prime, and 36 MB of float32.
constexpr int64_t kLarge = 9000011;

Array samples(const Shape& shape, Dtype dtype) {
  return random::uniform(shape, -100, 100, Dtype::kFloat32).astype(dtype);
}

Array part(const Array& x, int64_t begin, int64_t end) { return x(Slice(begin, end)); }

// Whether `whole` is what `of(begin, end)` gives for ranges of its first axis, which are small.
template <class F>
void expect_same_in_parts(const Array& whole, const F& of, const char* what) {
  const int64_t n = whole.shape()[0], step = (n + 12) / 13;
  for (int64_t begin = 0; begin < n; begin += step) {
    const int64_t end = std::min(n, begin + step);
    const Array wrong = not_equal(part(whole, begin, end), of(begin, end));
    ASSERT_FALSE(any(wrong).item<bool>()) << what << " in [" << begin << ", " << end << ")";
  }
}

TEST(CpuLarge, ElementwiseResults) {
  // One element off the beginning of memory, so that lines are met in their middle.
  const Array a = samples({kLarge + 1}, Dtype::kFloat32)(Slice(1, none));
  const Array b = samples({kLarge}, Dtype::kFloat32);
  expect_same_in_parts(
      add(a, b), [&](int64_t i, int64_t j) { return add(part(a, i, j), part(b, i, j)); }, "add");
  expect_same_in_parts(
      multiply(a, 3.0f), [&](int64_t i, int64_t j) { return multiply(part(a, i, j), 3.0f); },
      "a number");
  const Array shifted = zeros({kLarge + 3}, Dtype::kFloat32);
  subtract(a, b, shifted(Slice(3, none)));
  expect_same_in_parts(
      shifted(Slice(3, none)),
      [&](int64_t i, int64_t j) { return subtract(part(a, i, j), part(b, i, j)); }, "out");
  EXPECT_EQ(shifted(Slice(0, 3)).any().item<bool>(), false);
  const Array in_place = a.copy();
  in_place += b;
  expect_same_in_parts(
      in_place, [&](int64_t i, int64_t j) { return add(part(a, i, j), part(b, i, j)); },
      "in place");
}

TEST(CpuLarge, StridedAndBroadcastOperands) {
  const Array a = samples({2000, 9002}, Dtype::kFloat32), column = samples({2000, 1}, a.dtype());
  const Array half = a(ellipsis, Slice(none, none, 2));
  expect_same_in_parts(
      add(a, column), [&](int64_t i, int64_t j) { return add(part(a, i, j), part(column, i, j)); },
      "column");
  expect_same_in_parts(
      multiply(half, half),
      [&](int64_t i, int64_t j) { return multiply(part(half, i, j), part(half, i, j)); },
      "every other");
}

TEST(CpuLarge, Casts) {
  const Array a = samples({kLarge}, Dtype::kFloat32);
  for (const Dtype to : {Dtype::kFloat64, Dtype::kInt32, Dtype::kInt64}) {
    expect_same_in_parts(
        a.astype(to), [&](int64_t i, int64_t j) { return a(Slice(i, j)).astype(to); }, name(to));
  }
}

template <class T>
void expect_transposed(const Shape& shape) {
  const Array a = samples(shape, dtype_of<T>), copy = a.transpose({0, 2, 1}).copy();
  ASSERT_EQ(copy.shape(), (Shape{shape[0], shape[2], shape[1]}));
  const T *from = a.data<T>(), *to = copy.data<T>();
  int64_t wrong = 0;
  for (int64_t k = 0; k < shape[0]; ++k, from += shape[1] * shape[2], to += shape[1] * shape[2]) {
    for (int64_t i = 0; i < shape[1]; ++i)
      for (int64_t j = 0; j < shape[2]; ++j)
        wrong += from[i * shape[2] + j] != to[j * shape[1] + i];
  }
  EXPECT_EQ(wrong, 0) << name(dtype_of<T>) << " " << shape;
}

// Below and above the size from which tiles are read first; widths around those of the tiles.
TEST(CpuLarge, TransposedCopies) {
  for (const Shape& shape :
       {Shape{1, 4, 4}, Shape{3, 17, 31}, Shape{2, 64, 130}, Shape{1, 255, 257},
        Shape{2, 1031, 2061}, Shape{300, 129, 128}, Shape{1, 9, 500009}}) {
    expect_transposed<uint8_t>(shape);
    expect_transposed<int16_t>(shape);
    expect_transposed<float>(shape);
    expect_transposed<double>(shape);
  }
}

// Contiguous 16-bit floats are computed in registers, others by blocks: the same bits.
TEST(CpuLarge, SixteenBitFloats) {
  for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
    for (const int64_t n : {1, 15, 16, 17, 1000, 40001}) {
      const Array a = samples({n, 2}, dtype), x = a(ellipsis, 0), y = a(ellipsis, 1);
      const Array p = x.copy(), q = y.copy();
      const auto same = [&](const Array& blocks, const Array& registers, const char* what) {
        EXPECT_TRUE(array_equal(blocks, registers, true)) << what << " " << name(dtype) << " " << n;
      };
      same(add(x, y), add(p, q), "add");
      same(divide(x, y), divide(p, q), "divide");
      same(multiply(x, 1.5), multiply(p, 1.5), "a number");
      same(subtract(1.5, x), subtract(1.5, p), "a number first");
      same(maximum(x, y), maximum(p, q), "maximum");
      same(negative(x), negative(p), "negative");
      same(clip(x, y, absolute(y)), clip(p, q, absolute(q)), "clip");
      same(sum(x), sum(p), "sum");
    }
  }
}

}  // namespace
}  // namespace catena
