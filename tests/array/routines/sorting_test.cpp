// Sorts of every size against a stable sort, and the edges of searches and order statistics, whose
// values tests/oracle compares with NumPy's.
#include "catena/array/sorting.h"

#include <algorithm>
#include <numeric>

#include "array/sorting_samples.h"
#include "catena/array/math.h"
#include "error_text.h"

namespace catena {
namespace {

using namespace test;

class Sorting : public OnCpuAndGpu {
 protected:
  template <class T>
  void check_along(const Array& host, std::optional<int64_t> axis, int layout) {
    const Array a = in_layout(host.to(device), layout);
    const Array sorted = sort(a, axis), order = argsort(a, axis);
    const Array x = axis ? host : host.ravel();
    ASSERT_EQ(sorted.shape(), x.shape());
    ASSERT_EQ(order.shape(), x.shape());
    ASSERT_EQ(sorted.dtype(), host.dtype());
    ASSERT_EQ(order.dtype(), Dtype::kInt64);
    ASSERT_TRUE(sorted.is_contiguous() && order.is_contiguous());
    ASSERT_EQ(sorted.device(), device);
    const auto in = elements<T>(x), out = elements<T>(sorted);
    const auto positions = elements<int64_t>(order);
    const int ax = axis ? normalize_axis("test", *axis, x.ndim()) : 0;
    for_lines(x.shape(), ax, [&](int64_t offset, int64_t step) {
      std::vector<int64_t> expected(size_t(x.shape()[size_t(ax)]));
      std::iota(expected.begin(), expected.end(), 0);
      const auto at = [&](int64_t i) { return in[size_t(offset + i * step)]; };
      std::stable_sort(expected.begin(), expected.end(),
                       [&](int64_t i, int64_t j) { return before(at(i), at(j)); });
      for (size_t i = 0; i < expected.size(); ++i) {
        const auto place = size_t(offset + int64_t(i) * step);
        ASSERT_EQ(positions[place], expected[i]) << "place " << i;
        ASSERT_TRUE(same(out[place], at(expected[i]))) << "place " << i;
      }
    });
  }
};

TEST_P(Sorting, EveryDtypeSizeAndKindOfNumbers) {
  for (Dtype dtype : every_dtype()) {
    for (int64_t n : {1, 2, 7, 64, 65, 300, 1025, 2048, 2049, 5000, 40000}) {
      for (int64_t kinds : {0, 5, 300}) {
        SCOPED_TRACE(message(dtype, " n=", n, " kinds=", kinds));
        const Array a = rough_sample({n}, dtype, kinds);
        visit_dtype(dtype, [&](auto tag) { check_along<typename decltype(tag)::type>(a, -1, 0); });
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Sorting, EveryAxisAndLayout) {
  const Shape shapes[] = {{5, 7}, {1, 9},   {9, 1},   {3, 70, 5}, {2, 3, 4, 5}, {0, 3},
                          {3, 0}, {130, 6}, {6, 130}, {3, 5000},  {999, 33}};
  for (const Shape& shape : shapes) {
    for (Dtype dtype : {Dtype::kFloat32, Dtype::kInt64, Dtype::kFloat16, Dtype::kInt8,
                        Dtype::kFloat64, Dtype::kBool}) {
      const Array a = rough_sample(shape, dtype, 40);
      for (int layout = 0; layout < 4; ++layout) {
        for (int64_t axis = -shape.ndim(); axis <= shape.ndim(); ++axis) {
          SCOPED_TRACE(message(shape, " ", dtype, " layout ", layout, " axis ", axis));
          const bool flat = axis == shape.ndim();
          visit_dtype(dtype, [&](auto tag) {
            check_along<typename decltype(tag)::type>(
                a, flat ? std::optional<int64_t>() : std::optional<int64_t>(axis), layout);
          });
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(Sorting, LongArraysOfEqualAndOrderedElements) {
  const int64_t n = 300000;
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kInt64, Dtype::kUInt16}) {
    const Array ramp = arange(n).astype(dtype);
    for (const Array& a : {ramp, flip(ramp).copy(), zeros({n}, dtype), sample({n}, dtype, 3)}) {
      SCOPED_TRACE(message(dtype, " ", a.repr()));
      visit_dtype(dtype, [&](auto tag) { check_along<typename decltype(tag)::type>(a, 0, 0); });
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Sorting, ZeroDimensions) {
  const Array a = scalar_array(3, {Dtype::kInt32, device});
  EXPECT_EQ(sort(a, none).to_vector<int32_t>(), std::vector<int32_t>{3});
  EXPECT_EQ(argsort(a).to_vector<int64_t>(), std::vector<int64_t>{0});
  EXPECT_ERROR(IndexError, "sort: axis -1", sort(a));
  EXPECT_ERROR(IndexError, "sort: axis 2 is out of range for an array of 2 dimensions",
               sort(zeros({2, 2}, {device}), 2));
  EXPECT_ERROR(IndexError, "argsort: axis -3", argsort(zeros({2, 2}, {device}), -3));
}

TEST_P(Sorting, TopKIsTheHeadOfAStableOrder) {
  for (Dtype dtype : every_dtype()) {
    for (const Shape& shape : {Shape{1000}, Shape{3, 50}, Shape{2, 9, 3}}) {
      const Array host = rough_sample(shape, dtype, 20);
      for (int64_t axis = 0; axis < shape.ndim(); ++axis) {
        const int64_t n = shape[size_t(axis)];
        for (int64_t k : {int64_t{0}, int64_t{1}, n / 20, n / 3, n}) {
          for (bool largest : {true, false}) {
            SCOPED_TRACE(message(dtype, " ", shape, " axis ", axis, " k=", k, " ", largest));
            const auto [values, positions] = topk(host.to(device), k, axis, largest);
            Shape expected_shape = shape;
            expected_shape[size_t(axis)] = k;
            ASSERT_EQ(values.shape(), expected_shape);
            ASSERT_EQ(positions.shape(), expected_shape);
            const Array v = moveaxis(values, axis, -1), p = moveaxis(positions, axis, -1);
            const Array x = moveaxis(host, axis, -1);
            visit_dtype(dtype, [&](auto tag) {
              using T = typename decltype(tag)::type;
              const auto in = elements<T>(x), out = elements<T>(v);
              const auto at = elements<int64_t>(p);
              for (int64_t r = 0; r < host.size() / n; ++r) {
                std::vector<int64_t> order(static_cast<size_t>(n));
                std::iota(order.begin(), order.end(), 0);
                std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
                  const auto a = in[size_t(r * n + i)], b = in[size_t(r * n + j)];
                  return largest ? before(b, a) : before(a, b);
                });
                for (int64_t j = 0; j < k; ++j) {
                  ASSERT_EQ(at[size_t(r * k + j)], order[size_t(j)]) << "row " << r << " " << j;
                  ASSERT_TRUE(same(out[size_t(r * k + j)], in[size_t(r * n + order[size_t(j)])]));
                }
              }
            });
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
  EXPECT_ERROR(ValueError, "topk: expected k of 0 to 3", topk(zeros({2, 3}, {device}), 4));
  EXPECT_ERROR(ValueError, "got -1", topk(zeros({2, 3}, {device}), -1));
}

TEST_P(Sorting, SearchsortedPromotes) {
  const Array sorted = array({1, 2, 3}, device);
  EXPECT_EQ(searchsorted(sorted, 2).item<int64_t>(), 1);
  EXPECT_EQ(searchsorted(sorted, 2, true).item<int64_t>(), 2);
  EXPECT_EQ(searchsorted(sorted, 2.5).item<int64_t>(), 2);
  EXPECT_EQ(searchsorted(flip(array({3., 2., 1.}, device)), array({2.5f, 0.f}, device))
                .to_vector<int64_t>(),
            (std::vector<int64_t>{2, 0}));
  EXPECT_ERROR(ShapeError, "searchsorted: expected the sorted array to be 1-d, got shape (2, 2)",
               searchsorted(zeros({2, 2}, {device}), 1));
}

TEST_P(Sorting, OrderStatisticsAtTheEdges) {
  EXPECT_TRUE(std::isnan(median(zeros({0}, {device})).item<double>()));
  EXPECT_EQ(median(zeros({0, 3}, {device}), {0}).shape(), Shape{3});
  EXPECT_EQ(median(zeros({3, 0}, {device}), {0}).shape(), Shape{0});
  EXPECT_EQ(percentile(zeros({3, 0}, {device}), 50, {0}).shape(), Shape{0});
  EXPECT_EQ(median(scalar_array(3, {device})).item<double>(), 3);
  EXPECT_EQ(percentile(scalar_array(3, {device}), 20).item<double>(), 3);
  EXPECT_EQ(percentile(arange(5, {Dtype::kInt8, device}), 30).item<double>(), 1.2);
  EXPECT_EQ(quantile(arange(5, {Dtype::kFloat32, device}), 0.5).dtype(), Dtype::kFloat32);
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(median(array({inf, inf}, device)).item<double>(), inf);
  EXPECT_TRUE(std::isnan(percentile(array({1., inf}, device), 0).item<double>()));
  // The result goes where it is told to.
  const Array out = zeros({2}, {Dtype::kFloat32, device});
  const ReduceOptions options{.axes = 1, .out = out};
  median(array({{1., 2., 9.}, {4., 4., 5.}}, device), options);
  EXPECT_EQ(out.to_vector<float>(), (std::vector<float>{2, 4}));
  EXPECT_ERROR(ShapeError, "median: the output has shape (2,), the result has (3,)",
               median(zeros({3, 2}, {device}), options));
  EXPECT_ERROR(ValueError, "percentile: expected q of 0 to 100, got 101",
               percentile(arange(3, {device}), 101));
  EXPECT_ERROR(ValueError, "got nan", quantile(arange(3, {device}), std::nan("")));
  EXPECT_ERROR(ValueError, "quantile: no elements along the reduced axes of shape (0, 3)",
               quantile(zeros({0, 3}, {device}), 0.5, {0}));
  EXPECT_FALSE(unique(zeros({3}, {device})).counts.defined());
  EXPECT_ERROR(DtypeError, "cannot be interpolated",
               quantile(zeros({3}, {Dtype::kBool, device}), 0.5));
  EXPECT_ERROR(IndexError, "median: axis 2", median(zeros({3}, {device}), {2}));
}

CATENA_ON_DEVICES(Sorting);

}  // namespace
}  // namespace catena
