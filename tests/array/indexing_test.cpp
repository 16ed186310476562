#include "catena/array/indexing.h"

#include <array>
#include <random>

#include "array/devices.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/config.h"

namespace catena {
namespace {

using namespace test;
using I = std::vector<int64_t>;

class AnyIndexing : public OnDevice {
 protected:
  Array mask(const std::vector<bool>& list, const Shape& shape) const {
    const Array a = zeros({int64_t(list.size())}, {Dtype::kBool, cpu()});
    for (size_t i = 0; i < list.size(); ++i) a.data<bool>()[i] = list[i];
    return on(a.reshape(shape));
  }
};

// Shapes NumPy 2.4 gives for arrays of shape (2, 3, 4).
TEST_P(AnyIndexing, AxesOfTheResultAreNumPys) {
  const Array b = counting({2, 3, 4}), i = ints({0, 1});
  EXPECT_EQ(b(i, ellipsis, 0, i).shape(), (Shape{2}));
  EXPECT_EQ(b(0, ellipsis, i).shape(), (Shape{2, 3}));
  EXPECT_EQ(b(ellipsis, 0, i).shape(), (Shape{2, 2}));
  EXPECT_EQ(b(i, newaxis, i).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(b(newaxis, i, Slice(), i).shape(), (Shape{2, 1, 3}));
  EXPECT_EQ(b(0, Slice(), i).shape(), (Shape{2, 3}));
  EXPECT_EQ(b(Slice(), 0, i).shape(), (Shape{2, 2}));
  EXPECT_EQ(b(Slice(), i, 0).shape(), (Shape{2, 2}));
  EXPECT_EQ(b(0, newaxis, i).shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(b(mask({true}, {})).shape(), (Shape{1, 2, 3, 4}));
  EXPECT_EQ(b(mask({true}, {}), i).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(b(Slice(), mask({false}, {})).shape(), (Shape{2, 0, 3, 4}));
  EXPECT_EQ(b(Slice(), ints({1}).reshape({})).shape(), (Shape{2, 4}));
  EXPECT_EQ(b(ints({1}).reshape({}), Slice(), ints({0}).reshape({})).shape(), (Shape{3}));
  EXPECT_EQ(b(ellipsis, ints({0}).reshape({}), Slice()).shape(), (Shape{2, 4}));
  EXPECT_EQ(b(ints({})).shape(), (Shape{0, 3, 4}));
  EXPECT_EQ(b(mask({1, 1, 1, 1, 1, 1}, {2, 3}), ints({0})).shape(), (Shape{6}));
}

TEST_P(AnyIndexing, BasicIndicesStayViews) {
  const Array a = counting({3, 4});
  EXPECT_TRUE(a(1, Slice(0, 2)).shares_memory_with(a));
  EXPECT_FALSE(a(ints({1})).shares_memory_with(a));
}

TEST_P(AnyIndexing, PicksElementsRowsAndColumns) {
  const Array a = counting({3, 4}, Dtype::kInt16);
  EXPECT_EQ(values(a(ints({2, 0, -1}))), (V{8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(values(a(Slice(), ints({3, -4}))), (V{3, 0, 7, 4, 11, 8}));
  EXPECT_EQ(values(a(ints({0, 1, 2}), ints({1, 1, 3}))), (V{1, 5, 11}));
  EXPECT_EQ(values(a(ints({0, 2}).reshape({2, 1}), ints({1, 3}))), (V{1, 3, 9, 11}));
  EXPECT_EQ(values(a(I{2, 0}, 1)), (V{9, 1}));
  EXPECT_EQ(a(ints({1})).dtype(), Dtype::kInt16);
  // int8 and uint64 positions, transposed and reversed sources.
  EXPECT_EQ(values(a.T()(ints({1}).astype(Dtype::kInt8))), (V{1, 5, 9}));
  EXPECT_EQ(values(flip(a)(ints({0}).astype(Dtype::kUInt64), Slice(none, none, 2))), (V{11, 9}));
}

TEST_P(AnyIndexing, Masks) {
  const Array a = counting({2, 3});
  EXPECT_EQ(values(a(greater(a, 2.5))), (V{3, 4, 5}));
  EXPECT_EQ(values(a(mask({false, true}, {2}))), (V{3, 4, 5}));
  EXPECT_EQ(values(a(Slice(), mask({true, false, true}, {3}))), (V{0, 2, 3, 5}));
  EXPECT_EQ(values(a.T()(greater(a.T(), 2.5))), (V{3, 4, 5}));
  EXPECT_EQ(values(a.T()(less(a, 9).T())), (V{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(a(less(a, -1)).shape(), (Shape{0}));
  const Array cube = counting({2, 3, 4});
  // A mask over axes that do not lie together in memory.
  const Array picked =
      cube(Slice(), Slice(), Slice(0, 2))(Slice(), mask({1, 0, 0, 1, 1, 0}, {3, 2}));
  EXPECT_EQ(picked.shape(), (Shape{2, 3}));
  EXPECT_EQ(values(picked), (V{0, 5, 8, 12, 17, 20}));
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
  said = error_of<Error>([&] { a(mask({true, false}, {2})); });
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

TEST_P(AnyIndexing, AddCountsRepeatedPositions) {
  for (Dtype d : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kInt32, Dtype::kFloat16, Dtype::kUInt8,
                  Dtype::kBFloat16, Dtype::kInt64}) {
    const Array a = zeros({4}, {d, GetParam()});
    a.add_at({ints({1, 1, 3, -1, 1})}, 2);
    EXPECT_EQ(values(a), (V{0, 6, 0, 4})) << name(d);
    const Array b = zeros({2, 3}, {d, GetParam()});
    b.add_at({ints({0, 0, 1}), ints({2, -1, 0})}, ints({1, 2, 3}));
    EXPECT_EQ(values(b), (V{0, 0, 3, 3, 0, 0})) << name(d);
    b.T().add_at({ints({0, 0})}, 1);  // not contiguous
    EXPECT_EQ(values(b), (V{2, 0, 3, 5, 0, 0})) << name(d);
  }
  const Array c = zeros({2, 3, 2}, GetParam());
  c.add_at({ints({1, 1}), Slice(), ints({0, 0})},
           on(array({{1., 2., 3.}, {10., 20., 30.}}, cpu())));
  EXPECT_EQ(values(c[1]), (V{11, 0, 22, 0, 33, 0}));
  c.add_at({0}, 1);
  EXPECT_EQ(values(c[0]), (V(6, 1)));
  c.add_at({greater(c, 5)}, 1);
  EXPECT_EQ(values(c[1]), (V{12, 0, 23, 0, 34, 0}));
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

// Against one element at a time, for random shapes, layouts and entries.
class Reference {
 public:
  Reference(const Array& a, const std::vector<AnyIndex>& entries) : a_(a), entries_(entries) {}

  // Index of `a` for each element of the result: only integer arrays and slices, arrays adjacent or
  // not, as NumPy's documentation of the axis order says.
  std::vector<std::vector<int64_t>> run(Shape& shape) {
    std::vector<int> arrays;
    Shape joint;
    for (size_t d = 0; d < entries_.size(); ++d) {
      if (!entries_[d].is_array()) continue;
      arrays.push_back(int(d));
      joint = broadcast_shapes("reference", joint, entries_[d].array().shape());
    }
    const bool adjacent = arrays.back() - arrays.front() + 1 == int(arrays.size());
    const int place = adjacent ? arrays.front() : 0;
    std::vector<int> source;  // of each result axis: axis of a, or -1 - (axis of joint)
    for (int d = 0; d <= int(entries_.size()); ++d) {
      if (int(source.size()) == place) {
        for (int j = 0; j < joint.ndim(); ++j) source.push_back(-1 - j);
        if (d < int(entries_.size()) && joint.ndim() == 0 && entries_[size_t(d)].is_array())
          continue;
      }
      if (d == int(entries_.size())) break;
      if (!entries_[size_t(d)].is_array()) source.push_back(d);
    }
    shape.clear();
    for (int s : source) shape.push_back(s < 0 ? joint[size_t(-1 - s)] : a_.shape()[size_t(s)]);
    std::vector<std::vector<int64_t>> result;
    for (int64_t i = 0; i < element_count(shape); ++i)
      result.push_back(locate(i, shape, source, joint));
    return result;
  }

 private:
  std::vector<int64_t> locate(int64_t i, const Shape& shape, const std::vector<int>& source,
                              const Shape& joint) {
    std::vector<int64_t> at(size_t(a_.ndim())), j(size_t(joint.ndim()));
    for (int d = shape.ndim() - 1; d >= 0; --d) {
      const int64_t p = i % shape[size_t(d)];
      i /= shape[size_t(d)];
      (source[size_t(d)] < 0 ? j[size_t(-1 - source[size_t(d)])] : at[size_t(source[size_t(d)])]) =
          p;
    }
    for (size_t d = 0; d < entries_.size(); ++d) {
      if (!entries_[d].is_array()) continue;
      const Array spread = entries_[d].array().to_cpu().broadcast_to(joint);
      std::vector<Index> where(j.begin(), j.end());
      int64_t p = spread.at(std::span<const Index>(where)).item<int64_t>();
      at[d] = p < 0 ? p + a_.shape()[d] : p;
    }
    return at;
  }
  const Array& a_;
  const std::vector<AnyIndex>& entries_;
};

TEST_P(AnyIndexing, AgreesWithOneElementAtATime) {
  std::mt19937 engine(5);
  auto between = [&](int low, int high) { return low + int(engine() % unsigned(high - low + 1)); };
  for (int round = 0; round < 150; ++round) {
    const int ndim = between(1, 5);
    Shape shape;
    for (int d = 0; d < ndim; ++d) shape.push_back(between(1, 4));
    const Dtype dtype = std::array{Dtype::kUInt8, Dtype::kInt16, Dtype::kFloat32,
                                   Dtype::kFloat64}[size_t(between(0, 3))];
    Array a = counting(shape, dtype);
    if (round % 3 == 1) a = testing::transposed_layout(a);
    if (round % 3 == 2) a = testing::reversed_layout(a);
    const Shape joint = between(0, 1) ? Shape{between(1, 5)} : Shape{between(1, 3), between(1, 3)};
    std::vector<AnyIndex> entries;
    const int forced = between(0, ndim - 1);
    for (int d = 0; d < ndim; ++d) {
      if (d != forced && between(0, 1)) {
        entries.emplace_back(Slice());
        continue;
      }
      Shape own = joint;
      if (between(0, 2) == 0) own[0] = 1;
      const int64_t extent = shape[size_t(d)];
      I list(size_t(element_count(own)));
      for (auto& p : list) p = between(-int(extent), int(extent) - 1);
      Array p = on(array(list, own, cpu()).astype(between(0, 1) ? Dtype::kInt64 : Dtype::kInt32));
      if (between(0, 3) == 0) p = testing::transposed_layout(p);
      entries.emplace_back(p);
    }
    Shape expected_shape;
    const auto where = Reference(a, entries).run(expected_shape);
    const Array got = index_get(a, std::span<const AnyIndex>(entries));
    ASSERT_EQ(got.shape(), expected_shape) << "round " << round;
    const Array host = a.to_cpu(), sums = a.to_cpu().copy();
    const Array added = a.copy(), written = a.copy();
    index_add(added, std::span<const AnyIndex>(entries), 1);
    index_put(written, std::span<const AnyIndex>(entries), got);
    V expected;
    for (const auto& at : where) {
      std::vector<Index> one(at.begin(), at.end());
      expected.push_back(host.at(std::span<const Index>(one)).item<double>());
      sums.at(std::span<const Index>(one)) += 1;
    }
    ASSERT_EQ(values(got), expected) << "round " << round;
    ASSERT_EQ(values(added), values(sums)) << "round " << round;
    ASSERT_EQ(values(written), values(a)) << "round " << round;
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
  EXPECT_EQ(values(compress(mask({false, true}, {2}), a, 1)), (V{1, 4}));
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
