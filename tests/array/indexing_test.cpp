#include "catena/array/indexing.h"

#include "array/devices.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/config.h"

namespace catena {
namespace {

using namespace test;
using I = std::vector<int64_t>;

class AnyIndexing : public OnDevice {};

TEST_P(AnyIndexing, BasicIndicesStayViews) {
  const Array a = counting({3, 4});
  EXPECT_TRUE(a(1, Slice(0, 2)).shares_memory_with(a));
  EXPECT_FALSE(a(ints({1})).shares_memory_with(a));
}

// Elements that arrays of positions and masks select are cases of tests/oracle.
TEST_P(AnyIndexing, ListsAreArraysOfPositions) {
  const Array a = counting({3, 4});
  EXPECT_EQ(values(a(I{2, 0}, 1)), (V{9, 1}));
  a.set_at({I{2, 0}, 1}, -1);
  a.add_at({I{2, 0, 2}, 1}, 1);
  EXPECT_EQ(values(a(Slice(), 1)), (V{0, 5, 1}));
}

TEST_P(AnyIndexing, ErrorsCarryTheValues) {
  const Array a = counting({3, 4});
  auto has = [](const std::string& s, const char* part) { return s.find(part) != s.npos; };
  std::string said = error_of<Error>([&] { a(Slice(), ints({0, 4})); });
  EXPECT_TRUE(has(said, "position 4 is out of bounds for axis 1 of extent 4")) << said;
  said = error_of<Error>([&] { a(ints({-4}), ints({0})); });
  EXPECT_TRUE(has(said, "position -4 is out of bounds for axis 0 of extent 3")) << said;
  said = error_of<Error>([&] { a(I{0, 7}); });
  EXPECT_TRUE(has(said, "position 7 is out of bounds for axis 0")) << said;
  said = error_of<Error>([&] { a(on(array({true, false}))); });
  EXPECT_TRUE(has(said, "a mask of shape (2,) does not match axis 0")) << said;
  said = error_of<Error>([&] { a(ints({0, 1}), ints({0, 1, 2})); });
  EXPECT_TRUE(has(said, "(2,)") && has(said, "(3,)")) << said;
  said = error_of<Error>([&] { a(on(array({0.5}, cpu()))); });
  EXPECT_TRUE(has(said, "float64")) << said;
  EXPECT_THROW(a(ints({0}), 0, 0), IndexError);
  EXPECT_THROW(a(3, ints({0})), IndexError);
  EXPECT_THROW(zeros({0}, GetParam())(ints({0})), IndexError);
  EXPECT_THROW(a(array(I{0}, cpu(3))), DeviceError);
  EXPECT_THROW(a.set_at({ints({0, 1})}, counting({3})), ShapeError);
  EXPECT_THROW(a.set_at({ints({5})}, 0), IndexError);
  EXPECT_EQ(values(a), values(counting({3, 4})));  // nothing was written
}

TEST_P(AnyIndexing, PutBroadcastsAndCasts) {
  const Array a = zeros({3, 4}, {Dtype::kInt32, GetParam()});
  a.set_at({ints({0, 2}), Slice(1, 3)}, on(array({1.9, 2.9}, cpu())));
  EXPECT_EQ(values(a), (V{0, 1, 2, 0, 0, 0, 0, 0, 0, 1, 2, 0}));
  a.set_at({equal(a, 0)}, -1);
  EXPECT_EQ(values(a), (V{-1, 1, 2, -1, -1, -1, -1, -1, -1, 1, 2, -1}));
  a.set_at({less(a, 0)}, counting({8}));
  EXPECT_EQ(values(a), (V{0, 1, 2, 1, 2, 3, 4, 5, 6, 1, 2, 7}));
  a.set_at({1, Slice()}, 9);  // no array: a plain assignment
  EXPECT_EQ(values(a[1]), (V{9, 9, 9, 9}));
  // Source, positions and target in one storage.
  const Array p = ints({2, 0, 1});
  p.set_at({p}, p);
  EXPECT_EQ(values(p), (V{0, 1, 2}));
}

TEST_P(AnyIndexing, PutKeepsTheLastOfSeveralValues) {
  const bool before = config().deterministic;
  config().deterministic = true;
  for (const Shape& shape : {Shape{5, 3}, Shape{3, 5}}) {
    const bool rows = shape[0] == 5;
    const Array a = zeros(shape, GetParam()), p = ints({4, 1, 4, 1, -1});
    const Array v = counting({5});
    if (rows)
      a.set_at({p}, v.expand_dims(1));
    else
      a.set_at({Slice(), p}, v);
    const Array line = rows ? a(Slice(), 2) : a(2);
    EXPECT_EQ(values(line), (V{0, 3, 0, 0, 4}));
  }
  const Array grid = zeros({2, 2}, GetParam());
  grid.set_at({ints({0, 1, 0}), ints({1, 0, -1})}, counting({3}));
  EXPECT_EQ(values(grid), (V{0, 2, 1, 0}));
  config().deterministic = before;
}

TEST_P(AnyIndexing, AddTakesIndicesWithoutArrays) {
  const Array c = zeros({2, 3, 2}, GetParam());
  c.add_at({0}, 1);
  EXPECT_EQ(values(c), (V{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}));
}

TEST_P(AnyIndexing, ModesWrapAndClip) {
  const Array a = counting({4});
  const Array p = ints({-6, -1, 2, 5});
  EXPECT_EQ(values(index_get(a, {p}, OutOfRange::kWrap)), (V{2, 3, 2, 1}));
  EXPECT_EQ(values(index_get(a, {p}, OutOfRange::kClip)), (V{0, 0, 2, 3}));
  EXPECT_EQ(values(take(a, p, 0, OutOfRange::kClip)), (V{0, 0, 2, 3}));
  EXPECT_EQ(values(take(a, p, {}, OutOfRange::kWrap)), (V{2, 3, 2, 1}));
  const Array sums = zeros({4}, GetParam());
  index_add(sums, {p}, 1, OutOfRange::kClip);
  EXPECT_EQ(values(sums), (V{2, 0, 1, 1}));
  scatter_add(sums, p, 1, 0, OutOfRange::kClip);
  EXPECT_EQ(values(sums), (V{4, 0, 2, 2}));
  scatter_add(sums, p, 1, 0, OutOfRange::kWrap);
  EXPECT_EQ(values(sums), (V{4, 1, 4, 3}));
  EXPECT_THROW(scatter_add(sums, p, 1), IndexError);
}

// More positions than are resolved at a time, of which a later one counts from the end.
TEST_P(AnyIndexing, ManyPositions) {
  constexpr int64_t kCount = 2000;
  for (Dtype d : {Dtype::kInt32, Dtype::kInt64}) {
    for (Dtype item : {Dtype::kInt8, Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64}) {
      const Array order =
          remainder(multiply(arange(kCount, {Dtype::kInt64, GetParam()}), 7), kCount);
      const Array p = order.astype(d);
      p(Slice(600, 601)) -= kCount;
      const Array v = remainder(arange(kCount, {Dtype::kInt64, GetParam()}), 60).astype(item);
      const auto in_place = [&](const Array& written) {  // what went to order[j] is v[j]
        return all(equal(take(written, order, 0), v)).item<bool>();
      };
      const Array line = zeros({kCount}, {item, GetParam()});
      put(line, p, v);
      EXPECT_TRUE(in_place(line)) << "put " << item << " by " << d;
      const Array column = zeros({kCount, 3}, {item, GetParam()})(Slice(), 1);
      column.set_at({p}, v);
      EXPECT_TRUE(in_place(column.copy())) << "set_at " << item << " by " << d;
      EXPECT_TRUE(all(equal(column(p), v)).item<bool>()) << "index_get " << item << " by " << d;
      scatter_add(line, p, v);
      EXPECT_TRUE(in_place((line.astype(Dtype::kFloat64) / 2).astype(item)))
          << "scatter_add " << item;
    }
  }
}

// Large enough for threads and for every width of copying.
TEST_P(AnyIndexing, LargeSelections) {
  const int64_t n = 200000;
  for (Dtype d : {Dtype::kInt8, Dtype::kFloat16, Dtype::kFloat32, Dtype::kInt64}) {
    const Array a = remainder(arange(n, {Dtype::kInt64, GetParam()}), 101).astype(d);
    const Array p = remainder(multiply(arange(n, {Dtype::kInt64, GetParam()}), 7919), n);
    EXPECT_TRUE(all(equal(a(p), remainder(p, 101).astype(d))).item<bool>()) << name(d);
    const Array m = equal(remainder(a.astype(Dtype::kInt64), 2), 1);
    EXPECT_EQ(a(m).size(), count_nonzero(m));
    EXPECT_EQ(sum(a(m).astype(Dtype::kInt64)).item<int64_t>(),
              sum(multiply(a.astype(Dtype::kInt64), m)).item<int64_t>());
    const Array wide = a.reshape({1000, 200})(Slice(), Slice(0, 192));  // rows with gaps
    const Array rows = p(Slice(0, 500)) % 1000;
    EXPECT_TRUE(all(equal(wide(rows), take(wide.copy(), rows, 0))).item<bool>()) << name(d);
    const Array back = zeros({1000, 200}, {d, GetParam()})(Slice(), Slice(0, 192));
    const Array order = remainder(multiply(arange(1000, {Dtype::kInt64, GetParam()}), 7), 1000);
    back.set_at({order}, wide(order));
    EXPECT_TRUE(all(equal(back, wide)).item<bool>()) << name(d);
  }
}

TEST_P(AnyIndexing, TakeWithOutAndOnePosition) {
  const Array a = counting({2, 3});
  EXPECT_EQ(take(a, 1, 0).shape(), (Shape{3}));
  EXPECT_EQ(values(take(a, -1)), (V{5}));
  EXPECT_EQ(values(take(a, 7, {}, OutOfRange::kClip)), (V{5}));
  const Array out = zeros({2, 2}, GetParam());
  take(a, ints({2, 0}), 1, OutOfRange::kRaise, out);
  EXPECT_EQ(values(out), (V{2, 0, 5, 3}));
  const Array t = out.T();
  take(a, ints({2, 0}), 1, OutOfRange::kRaise, t);
  EXPECT_EQ(values(out), (V{2, 5, 0, 3}));
  EXPECT_THROW(take(a, ints({0}), 1, OutOfRange::kRaise, out), ShapeError);
  const Array wrong = zeros({2, 2}, {Dtype::kInt32, GetParam()});
  EXPECT_THROW(take(a, ints({0, 1}), 1, OutOfRange::kRaise, wrong), DtypeError);
  EXPECT_THROW(take(a, 3, 1), IndexError);
}

TEST_P(AnyIndexing, PutCompressExtract) {
  const Array a = counting({2, 3});
  put(a, ints({0, -1, 2}), ints({10, 20}));
  EXPECT_EQ(values(a), (V{10, 1, 10, 3, 4, 20}));
  put(a.T(), ints({1}), ints({-5}));  // second element of the transposed array
  EXPECT_EQ(values(a), (V{10, 1, 10, -5, 4, 20}));
  EXPECT_EQ(values(compress(on(array({false, true})), a, 1)), (V{1, 4}));
  EXPECT_EQ(values(compress(ints({1, 0, 0, 1}), a)), (V{10, -5}));
  EXPECT_THROW(compress(ints({1, 0, 0, 1}), a, 0), IndexError);
  EXPECT_EQ(values(extract(greater(a, 5), a)), (V{10, 10, 20}));
}

TEST_P(AnyIndexing, RavelAndUnravel) {
  const Array p = ints({22, 41, 37});
  const auto parts = unravel_index(p, {7, 6});
  EXPECT_EQ(values(parts[0]), (V{3, 6, 6}));
  EXPECT_EQ(values(parts[1]), (V{4, 5, 1}));
  EXPECT_EQ(values(ravel_multi_index(parts, {7, 6})), (V{22, 41, 37}));
  EXPECT_EQ(values(ravel_multi_index(std::vector{ints({-1, 9}), ints({0, 7})}, {4, 6},
                                     OutOfRange::kClip)),
            (V{0, 23}));
  EXPECT_THROW(unravel_index(ints({42}), {7, 6}), IndexError);
  EXPECT_THROW(ravel_multi_index(std::vector{ints({7}), ints({0})}, {7, 6}), IndexError);
}

CATENA_ON_DEVICES(AnyIndexing);

}  // namespace
}  // namespace catena
