// Sorting, searching, distinct elements and order statistics against plain definitions.
#include "catena/array/sorting.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "array/sorting_samples.h"
#include "catena/array/math.h"
#include "catena/core/graph.h"

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

TEST_P(Sorting, SearchsortedCountsWhatIsLess) {
  for (Dtype dtype : every_dtype()) {
    for (int64_t n : {0, 1, 2, 33, 1000}) {
      const Array sorted = sort(rough_sample({n}, dtype, 50)),
                  values = rough_sample({9, 31}, dtype, 60);
      for (bool right : {false, true}) {
        SCOPED_TRACE(message(dtype, " n=", n, right ? " right" : " left"));
        const Array places =
            searchsorted(sorted.to(device), in_layout(values.to(device), 3), right);
        ASSERT_EQ(places.shape(), values.shape());
        visit_dtype(dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          const auto table = elements<T>(sorted), wanted = elements<T>(values);
          const auto got = elements<int64_t>(places);
          for (size_t i = 0; i < wanted.size(); ++i) {
            const auto expected = std::count_if(table.begin(), table.end(), [&](auto x) {
              return right ? !before(wanted[i], x) : before(x, wanted[i]);
            });
            ASSERT_EQ(got[i], expected) << double(wanted[i]);
          }
        });
        if (HasFatalFailure()) return;
      }
    }
  }
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

// What numpy.digitize documents.
TEST_P(Sorting, Digitize) {
  const Array x = array({0.2, 6.4, 3.0, 1.6, 10., -1.}, device);
  const Array bins = array({0., 1., 2.5, 4., 10.}, device);
  using V = std::vector<int64_t>;
  EXPECT_EQ(digitize(x, bins).to_vector<int64_t>(), (V{1, 4, 3, 2, 5, 0}));
  EXPECT_EQ(digitize(x, bins, true).to_vector<int64_t>(), (V{1, 4, 3, 2, 4, 0}));
  EXPECT_EQ(digitize(array({1., 2., 3.}, device), array({2, 1}, device)).to_vector<int64_t>(),
            (V{1, 0, 0}));
  EXPECT_EQ(digitize(array({1., 2., 3.}, device), array({2, 1}, device), true).to_vector<int64_t>(),
            (V{2, 1, 0}));
  const Array one = array({3.}, device);
  EXPECT_EQ(digitize(x, one).to_vector<int64_t>(), (V{0, 1, 1, 0, 1, 0}));
  EXPECT_EQ(digitize(x, one, true).to_vector<int64_t>(), (V{0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(digitize(x, zeros({0}, {device})).to_vector<int64_t>(), V(6, 0));
  EXPECT_ERROR(ValueError, "digitize: expected bins that increase or decrease monotonically",
               digitize(x, array({2., 1., 3.}, device)));
}

TEST_P(Sorting, UniqueEveryDtype) {
  for (Dtype dtype : every_dtype()) {
    for (const Shape& shape : {Shape{0}, Shape{1}, Shape{40, 50}, Shape{3, 0}}) {
      for (int layout : {0, 1, 3}) {
        SCOPED_TRACE(message(dtype, " ", shape, " layout ", layout));
        const Array host = rough_sample(shape, dtype, 30);
        const Unique u = unique(in_layout(host.to(device), layout), {true, true, true});
        ASSERT_EQ(u.inverse.shape(), shape);
        ASSERT_EQ(u.values.dtype(), dtype);
        visit_dtype(dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          using C = compute_t<T>;
          const auto in = elements<T>(host), values = elements<T>(u.values);
          struct Before {
            bool operator()(C a, C b) const { return before(a, b); }
          };
          std::map<C, std::pair<int64_t, int64_t>, Before> expected;  // first position, count
          for (size_t i = 0; i < in.size(); ++i)
            ++expected.try_emplace(in[i], int64_t(i), 0).first->second.second;
          ASSERT_EQ(values.size(), expected.size());
          const auto index = elements<int64_t>(u.index), counts = elements<int64_t>(u.counts),
                     inverse = elements<int64_t>(u.inverse);
          size_t j = 0;
          for (const auto& [value, where] : expected) {
            ASSERT_TRUE(same(values[j], value));
            ASSERT_EQ(index[j], where.first);
            ASSERT_EQ(counts[j], where.second);
            ++j;
          }
          for (size_t i = 0; i < in.size(); ++i)
            ASSERT_TRUE(same(values[size_t(inverse[i])], in[i]));
          EXPECT_EQ(unique(host.to(device)).values.to_vector<double>().size(), values.size());
        });
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_FALSE(unique(zeros({3}, {device})).counts.defined());
}

// NumPy's formulas over sorted doubles.
double median_of(std::vector<double> row) {
  if (row.empty()) return std::nan("");
  std::sort(row.begin(), row.end(), before<double>);
  if (std::isnan(row.back())) return row.back();
  const size_t n = row.size();
  return n % 2 ? row[n / 2] : (row[n / 2 - 1] + row[n / 2]) / 2;
}
double quantile_of(std::vector<double> row, double q) {
  std::sort(row.begin(), row.end(), before<double>);
  if (std::isnan(row.back())) return row.back();
  const double position = q * double(row.size() - 1);
  const auto i = std::min(size_t(position), row.size() - 1), j = std::min(i + 1, row.size() - 1);
  const double t = position - double(i), step = row[j] - row[i];
  return t < 0.5 ? row[i] + step * t : row[j] - step * (1 - t);
}

TEST_P(Sorting, MedianAndQuantilesOverAxes) {
  const Shape shape{4, 5, 6};
  for (Dtype dtype : every_dtype()) {
    Array host = sample(shape, dtype, 60);
    if (is_float(dtype)) host(1, 2, 3).fill(std::nan(""));
    for (const Axes& axes : {Axes{}, Axes{0}, Axes{-1}, Axes{0, 2}, Axes{1, 2}}) {
      for (bool keepdims : {false, true}) {
        SCOPED_TRACE(message(dtype, " axes ", axes));
        const ReduceOptions options{.axes = axes, .keepdims = keepdims};
        const Array a = in_layout(host.to(device), 1), m = median(a, options);
        const Array reference = sum(host, options);
        ASSERT_EQ(m.shape(), reference.shape());
        ASSERT_EQ(m.dtype(), is_float(dtype) ? dtype : Dtype::kFloat64);
        // Rows of the reduced elements.
        const Axes all = normalize_axes("test", axes, 3);
        Axes order;
        for (int64_t i = 0; i < 3; ++i) {
          if (std::find(all.begin(), all.end(), i) == all.end()) order.push_back(i);
        }
        order.insert(order.end(), all.begin(), all.end());
        const auto x = host.transpose(order).copy().to_vector<double>(),
                   got = m.to_vector<double>();
        const size_t n = x.size() / got.size();
        const double tolerance = rounding(m.dtype());
        for (size_t r = 0; r < got.size(); ++r) {
          const std::vector<double> row(x.begin() + long(r * n), x.begin() + long((r + 1) * n));
          const double expected = median_of(row);
          ASSERT_TRUE(same(got[r], expected) || std::abs(got[r] - expected) <= tolerance * 16);
        }
        if (dtype == Dtype::kBool) continue;
        const std::vector<double> q{0, 0.3, 0.5, 0.77, 1};
        const auto table = quantile(a, q, options);
        ASSERT_EQ(table.shape()[0], 5);
        ASSERT_EQ(table[0].shape(), reference.shape());
        const auto values = table.to_vector<double>();
        const auto one = percentile(a, 77, options).to_vector<double>();
        for (size_t k = 0; k < q.size(); ++k) {
          for (size_t r = 0; r < got.size(); ++r) {
            const std::vector<double> row(x.begin() + long(r * n), x.begin() + long((r + 1) * n));
            const double expected = quantile_of(row, q[k]), value = values[k * got.size() + r];
            ASSERT_TRUE(same(value, expected) || std::abs(value - expected) <= tolerance * 64)
                << q[k] << ": " << value << " for " << expected;
            if (k != 3) continue;
            ASSERT_TRUE(same(one[r], value) || std::abs(one[r] - value) <= tolerance * 64);
          }
        }
      }
    }
  }
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
  EXPECT_ERROR(DtypeError, "cannot be interpolated",
               quantile(zeros({3}, {Dtype::kBool, device}), 0.5));
  EXPECT_ERROR(IndexError, "median: axis 2", median(zeros({3}, {device}), {2}));
}

TEST_P(Sorting, WhatWaitsIsRefusedInAGraph) {
  if (device.is_cpu()) GTEST_SKIP() << "SKIPPED: graphs are captured on GPUs";
  const Array a = arange(10, {Dtype::kFloat32, device});
  const auto captured = [&](const std::function<void()>& step) {
    return thrown_text<Error>([&] { cuda::Graph::capture(device, step); });
  };
  EXPECT_NE(captured([&] { unique(a); }).find("unique: the host waits"), std::string::npos);
  EXPECT_NE(captured([&] { digitize(a, a); }).find("digitize: the host waits"), std::string::npos);
  Array sorted;
  cuda::Graph graph = cuda::Graph::capture(device, [&] { sorted = sort(flip(a)); });
  graph.launch();
  expect_equal(sorted, a, "sort in a graph");
}

CATENA_ON_DEVICES(Sorting);

}  // namespace
}  // namespace catena
