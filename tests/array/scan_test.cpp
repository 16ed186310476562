// Scans, positions of nonzero elements, bincount and histogram against plain definitions.
#include "catena/array/scan.h"

#include <algorithm>

#include "array/sorting_samples.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/sorting.h"
#include "catena/core/config.h"
#include "catena/core/graph.h"
#include "error_text.h"

namespace catena {
namespace {

using namespace test;
using Ints = std::vector<int64_t>;

const Shape kShapes[] = {{1},       {7},         {1000},       {70000}, {5, 7},    {4096},
                         {4097},    {1, 900},    {900, 1},     {0},     {0, 3},    {3, 0},
                         {3, 5, 4}, {2, 600, 3}, {2, 150, 33}, {40, 3}, {3, 70000}};

class Scan : public OnCpuAndGpu {
 protected:
  // Integers wrap, so that any order of additions gives the same bits.
  template <class T, class R>
  void check_integers(const Array& host, std::optional<int64_t> axis, std::optional<Dtype> dtype,
                      int layout) {
    const Array a = in_layout(host.to(device), layout), x = axis ? host : host.ravel();
    const int ax = axis ? normalize_axis("test", *axis, x.ndim()) : 0;
    for (bool product : {false, true}) {
      const Array result = product ? cumprod(a, axis, dtype) : cumsum(a, axis, dtype);
      ASSERT_EQ(result.shape(), x.shape());
      ASSERT_EQ(result.dtype(), dtype_of<R>);
      const auto in = elements<T>(x);
      const auto out = elements<R>(result);
      for_lines(x.shape(), ax, [&](int64_t offset, int64_t step) {
        R sum{};
        for (int64_t i = 0; i < x.shape()[size_t(ax)]; ++i) {
          const R value = static_cast<R>(in[size_t(offset + i * step)]);
          if constexpr (std::is_same_v<R, bool>)
            sum = i == 0 ? value : product ? sum && value : sum || value;
          else
            sum = static_cast<R>(i == 0 ? value : product ? sum * value : sum + value);
          ASSERT_EQ(out[size_t(offset + i * step)], sum)
              << "element " << i << " product " << product;
        }
      });
    }
  }

  // Sums of magnitudes bound the error; n eps of the type that adds up, and rounding of the result.
  template <class T>
  void check_floats(const Array& host, int64_t axis, int layout, double epsilon, double rounding) {
    const Array a = in_layout(host.to(device), layout), result = cumsum(a, axis);
    ASSERT_EQ(result.shape(), host.shape());
    ASSERT_EQ(result.dtype(), host.dtype());
    const auto in = elements<T>(host), out = elements<T>(result);
    const int ax = normalize_axis("test", axis, host.ndim());
    for_lines(host.shape(), ax, [&](int64_t offset, int64_t step) {
      double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < host.shape()[size_t(ax)]; ++i) {
        const double value = double(in[size_t(offset + i * step)]);
        sum += value;
        magnitude += std::abs(value);
        const double got = double(out[size_t(offset + i * step)]);
        const double bound = double(i) * epsilon * magnitude + rounding * (1 + std::abs(sum));
        ASSERT_TRUE(same(got, sum) || std::abs(got - sum) <= bound)
            << "element " << i << ": " << got << " for " << sum;
      }
    });
  }
};

TEST_P(Scan, IntegersOverEveryAxis) {
  for (const Shape& shape : kShapes) {
    for (int i = 0; i < int(Dtype::kFloat16); ++i) {
      const Dtype dtype = static_cast<Dtype>(i);
      const Array a = sample(shape, dtype, i % 2 ? 0 : 5);
      for (int64_t axis = -1; axis <= shape.ndim(); ++axis) {
        SCOPED_TRACE(message(dtype, " ", shape, " axis ", axis));
        const auto along = axis == shape.ndim() ? std::optional<int64_t>() : axis;
        visit_dtype(dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          if constexpr (std::is_integral_v<T>) {
            using Wide = std::conditional_t<std::is_unsigned_v<T> && !std::is_same_v<T, bool>,
                                            uint64_t, int64_t>;
            check_integers<T, Wide>(a, along, {}, (i + int(axis) + 1) % 4);
            check_integers<T, T>(a, along, dtype, 0);
          }
        });
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Scan, OtherDtypesOnRequest) {
  const Array a = array({-3, 200, 7, 100000}, cpu());
  check_integers<int, int8_t>(a, 0, Dtype::kInt8, 0);
  check_integers<int, uint64_t>(a, 0, Dtype::kUInt64, 0);
  check_integers<int, bool>(a, 0, Dtype::kBool, 1);
  EXPECT_EQ(cumsum(array({1.5, 2.}, device), none, Dtype::kInt32).to_vector<int32_t>(),
            (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(cumsum(array({1, 2}, device), none, Dtype::kFloat16).to_vector<float>(),
            (std::vector<float>{1, 3}));
  const Array scalar = scalar_array(3, {Dtype::kInt32, device});
  EXPECT_EQ(cumsum(scalar).to_vector<int64_t>(), Ints{3});
  EXPECT_EQ(cumprod(scalar, 0).shape(), Shape{1});
  EXPECT_ERROR(IndexError, "cumsum: axis 1", cumsum(zeros({3}, {device}), 1));
  EXPECT_ERROR(IndexError, "cumprod: axis -3", cumprod(zeros({3, 2}, {device}), -3));
}

TEST_P(Scan, FloatsOverEveryAxis) {
  const bool before_ = config().deterministic;
  for (bool deterministic : {false, true}) {
    config().deterministic = deterministic;
    for (const Shape& shape : kShapes) {
      for (Dtype dtype : float_dtypes()) {
        // Small enough that float16 does not overflow.
        const Array a = sample(shape, dtype, dtype == Dtype::kFloat16 ? 40 : 0);
        for (int64_t axis = 0; axis < shape.ndim(); ++axis) {
          SCOPED_TRACE(message(dtype, " ", shape, " axis ", axis, " ", deterministic));
          visit_float("test", dtype, [&](auto tag) {
            using T = typename decltype(tag)::type;
            const double eps = dtype == Dtype::kFloat64 ? 0x1p-52 : 0x1p-23;
            check_floats<T>(a, axis, int(axis) % 4, eps, rounding(dtype));
          });
          if (HasFatalFailure()) break;
        }
      }
    }
  }
  config().deterministic = before_;
}

TEST_P(Scan, FloatProductsAndNaN) {
  const double nan = std::nan("");
  const Array a = array({2., -0.5, 4., nan, 3.}, device);
  const std::vector<double> p = cumprod(a).to_vector<double>(), s = cumsum(a).to_vector<double>();
  EXPECT_EQ((std::vector<double>(p.begin(), p.begin() + 3)), (std::vector<double>{2, -1, -4}));
  EXPECT_EQ((std::vector<double>(s.begin(), s.begin() + 3)), (std::vector<double>{2, 1.5, 5.5}));
  EXPECT_TRUE(std::isnan(p[3]) && std::isnan(p[4]) && std::isnan(s[3]) && std::isnan(s[4]));
  const Array twos = full({3, 10}, 2.f, {Dtype::kFloat16, device});
  EXPECT_EQ(cumprod(twos, 1)(1, 9).item<float>(), 1024);
  EXPECT_EQ(cumprod(twos, 0)(2, 5).item<float>(), 8);
}

// The CPU's float64 sums are those of a plain loop, bit for bit.
TEST(ScanOnCpu, Float64AddsInOrder) {
  const Array a = sample({100003}, Dtype::kFloat64), result = cumsum(a);
  double sum = a.data<double>()[0];
  for (int64_t i = 1; i < a.size(); ++i) {
    sum += a.data<double>()[i];
    ASSERT_EQ(result.data<double>()[i], sum);
  }
}

TEST_P(Scan, Diff) {
  const Array a = array({{1, 4, 9}, {2, 2, 7}}, device);
  EXPECT_EQ(diff(a).to_vector<int>(), (std::vector<int>{3, 5, 0, 5}));
  EXPECT_EQ(diff(a, 2).to_vector<int>(), (std::vector<int>{2, 5}));
  EXPECT_EQ(diff(a, 1, 0).to_vector<int>(), (std::vector<int>{1, -2, -2}));
  EXPECT_EQ(diff(a, 3).shape(), (Shape{2, 0}));
  EXPECT_EQ(diff(a, 7).shape(), (Shape{2, 0}));
  EXPECT_EQ(diff(a, 0).to_vector<int>(), a.to_vector<int>());
  const Array zero = scalar_array(0, {Dtype::kInt32, device});
  EXPECT_EQ(diff(a, 1, -1, zero).to_vector<int>(), (std::vector<int>{1, 3, 5, 2, 0, 5}));
  EXPECT_EQ(diff(a, 1, -1, none, array({{1, 2}, {3, 4}}, device)).to_vector<int>(),
            (std::vector<int>{3, 5, -8, 1, 0, 5, -4, 1}));
  EXPECT_EQ(diff(array({true, false, false}, device)).to_vector<bool>(),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(diff(array<uint8_t>({1, 0}, device)).to_vector<uint8_t>(), std::vector<uint8_t>{255});
  EXPECT_ERROR(ValueError, "diff: expected n >= 0, got -1", diff(a, -1));
  EXPECT_ERROR(ShapeError, "diff: expected at least one axis", diff(zero));
  EXPECT_ERROR(IndexError, "diff: axis 2", diff(a, 1, 2));
}

TEST_P(Scan, NonzeroOfEveryDtypeAndShape) {
  for (const Shape& shape : kShapes) {
    for (Dtype dtype : every_dtype()) {
      for (int layout : {0, 1}) {
        SCOPED_TRACE(message(dtype, " ", shape, " layout ", layout));
        const Array host = rough_sample(shape, dtype, 2), a = in_layout(host.to(device), layout);
        std::vector<Ints> expected(size_t(shape.ndim()));
        Ints flat;
        visit_dtype(dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          const auto in = elements<T>(host);
          for (size_t i = 0; i < in.size(); ++i) {
            if (in[i] == 0) continue;
            flat.push_back(int64_t(i));
            int64_t rest = int64_t(i);
            for (int d = shape.ndim() - 1; d >= 0; --d) {
              expected[size_t(d)].push_back(rest % shape[size_t(d)]);
              rest /= shape[size_t(d)];
            }
          }
        });
        const std::vector<Array> found = nonzero(a);
        ASSERT_EQ(found.size(), expected.size());
        const Array table = argwhere(a);
        ASSERT_EQ(table.shape(), (Shape{int64_t(flat.size()), shape.ndim()}));
        for (size_t d = 0; d < found.size(); ++d) {
          ASSERT_EQ(found[d].dtype(), Dtype::kInt64);
          ASSERT_EQ(found[d].to_vector<int64_t>(), expected[d]) << "axis " << d;
          ASSERT_EQ(table(Slice(), int64_t(d)).to_vector<int64_t>(), expected[d]);
        }
        ASSERT_EQ(flatnonzero(a).to_vector<int64_t>(), flat);
      }
    }
  }
  const Array condition = array({false, true, true}, device);
  EXPECT_EQ(where(condition)[0].to_vector<int64_t>(), (Ints{1, 2}));
  const Array three = scalar_array(3, {device});
  EXPECT_EQ(argwhere(three).shape(), (Shape{1, 0}));
  EXPECT_EQ(flatnonzero(three).to_vector<int64_t>(), Ints{0});
  EXPECT_ERROR(ShapeError, "nonzero: expected at least one axis", nonzero(three));
  EXPECT_ERROR(ShapeError, "where: expected a condition of at least one axis", where(three));
}

TEST_P(Scan, Bincount) {
  for (int i = 0; i < int(Dtype::kFloat16); ++i) {
    const Dtype dtype = static_cast<Dtype>(i);
    for (int64_t largest : {int64_t{1}, int64_t{100}, int64_t{9000}}) {
      if (largest > 100 && itemsize(dtype) == 1) continue;
      if (dtype == Dtype::kBool && largest > 1) continue;
      const Array host = whole_numbers({30000}, dtype, 0, int(largest));
      Ints expected(static_cast<size_t>(largest) + 1);
      for (int64_t v : host.astype(Dtype::kInt64).to_vector<int64_t>()) ++expected[size_t(v)];
      while (expected.back() == 0) expected.pop_back();
      SCOPED_TRACE(message(dtype, " to ", largest));
      EXPECT_EQ(bincount(in_layout(host.to(device), 1)).to_vector<int64_t>(), expected);
      expected.resize(size_t(largest) + 10);
      EXPECT_EQ(bincount(host.to(device), none, largest + 10).to_vector<int64_t>(), expected);
    }
  }
  const Array x = array({1, 3, 1}, device);
  const Array sums = bincount(x, array({0.5f, 1.f, 2.f}, device), 5);
  EXPECT_EQ(sums.to_vector<double>(), (std::vector<double>{0, 2.5, 0, 1, 0}));
  EXPECT_EQ(bincount(zeros({0}, {Dtype::kInt32, device}), none, 3).to_vector<int64_t>(),
            (Ints{0, 0, 0}));
  EXPECT_EQ(bincount(zeros({0}, {Dtype::kInt32, device})).shape(), Shape{0});
  EXPECT_ERROR(ValueError, "bincount: expected no negative element, got -1",
               bincount(array({1, -1}, device)));
  EXPECT_ERROR(ValueError, "bincount: expected minlength >= 0, got -2", bincount(x, none, -2));
  EXPECT_ERROR(DtypeError, "bincount: expected integers, got float64",
               bincount(zeros({2}, {device})));
  EXPECT_ERROR(ShapeError, "bincount: expected a 1-d array, got shape (1, 3)",
               bincount(x.reshape({1, 3})));
  EXPECT_ERROR(ShapeError, "weights of shape (2,) for an array of shape (3,)",
               bincount(x, array({1., 2.}, device)));
  const Array far = array({int64_t{1}, int64_t{1} << 60}, device);
  const std::string text =
      message("bincount: the largest element is 1152921504606846976, and ", device,
              " has no memory for a count of each number up to it; unique(x, {.return_counts = "
              "true}) counts the "
              "numbers that occur");
  EXPECT_ERROR(OutOfMemoryError, text.c_str(), bincount(far));
  EXPECT_ERROR(OutOfMemoryError, text.c_str(), bincount(far, array({1., 2.}, device)));
}

Ints count_by_definition(const std::vector<double>& x, const std::vector<double>& edges) {
  Ints counts(edges.size() - 1);
  for (double v : x) {
    for (size_t b = 0; b < counts.size(); ++b) {
      const bool last = b + 1 == counts.size();
      if (v >= edges[b] && (v < edges[b + 1] || (last && v == edges[b + 1]))) {
        ++counts[b];
        break;
      }
    }
  }
  return counts;
}

TEST_P(Scan, HistogramCountsWhatItsEdgesSay) {
  for (Dtype dtype : every_dtype()) {
    for (int64_t kinds : {0, 40}) {
      for (int64_t bins : {1, 7, 64}) {
        SCOPED_TRACE(message(dtype, " kinds ", kinds, " bins ", bins));
        const Array host = sample({20, 100}, dtype, kinds), a = in_layout(host.to(device), 3);
        const auto [counts, edges] = histogram(a, bins);
        ASSERT_EQ(counts.dtype(), Dtype::kInt64);
        ASSERT_EQ(edges.dtype(), is_float(dtype) ? dtype : Dtype::kFloat64);
        ASSERT_EQ(edges.shape(), Shape{bins + 1});
        const auto e = edges.to_vector<double>(), x = host.to_vector<double>();
        EXPECT_EQ(counts.to_vector<int64_t>(), count_by_definition(x, e));
        EXPECT_EQ(sum(counts).item<int64_t>(), 2000);
        const double low = *std::min_element(x.begin(), x.end()),
                     high = *std::max_element(x.begin(), x.end());
        EXPECT_EQ(e.front(), low);
        EXPECT_EQ(e.back(), high);
        for (int64_t i = 0; i <= bins; ++i) {
          const double expected = low + (high - low) * double(i) / double(bins);
          EXPECT_NEAR(e[size_t(i)], expected, 4 * rounding(edges.dtype()) * (high - low));
        }
        // With NaN, infinities and elements outside.
        const Array rough = rough_sample({999}, dtype, 40);
        const auto inner = histogram(rough.to(device), bins, std::pair(-3., 2.25));
        EXPECT_EQ(inner.first.to_vector<int64_t>(),
                  count_by_definition(rough.to_vector<double>(), inner.second.to_vector<double>()));
        const Array given = array({-4., -1.5, 0., 0., 1., 7.}, device);
        const auto uneven = histogram(rough.to(device), given);
        EXPECT_EQ(uneven.first.to_vector<int64_t>(),
                  count_by_definition(rough.to_vector<double>(), given.to_vector<double>()));
      }
    }
  }
}

// Results of numpy.histogram.
TEST_P(Scan, HistogramAtTheEdges) {
  const auto counts_of = [](const std::pair<Array, Array>& h) {
    return h.first.to_vector<int64_t>();
  };
  const auto edges_of = [](const std::pair<Array, Array>& h) {
    return h.second.to_vector<double>();
  };
  using Reals = std::vector<double>;
  const Array x = array({1., 2., 1.}, device);
  EXPECT_EQ(counts_of(histogram(x, array({0, 1, 2, 3}, device))), (Ints{0, 2, 1}));
  EXPECT_EQ(counts_of(histogram(arange(4, {device}), array({0, 1, 2, 3}, device))),
            (Ints{1, 1, 2}));
  EXPECT_EQ(edges_of(histogram(array({1., 1.}, device), 2)), (Reals{0.5, 1, 1.5}));
  EXPECT_EQ(counts_of(histogram(array({1., 1.}, device), 2)), (Ints{0, 2}));
  EXPECT_EQ(edges_of(histogram(zeros({0}, {device}), 2)), (Reals{0, 0.5, 1}));
  EXPECT_EQ(counts_of(histogram(zeros({0}, {device}), 2)), (Ints{0, 0}));
  EXPECT_EQ(counts_of(histogram(array({true, false, true}, device), 2)), (Ints{1, 2}));
  EXPECT_EQ(histogram(x, array({1.}, device)).first.shape(), Shape{0});
  EXPECT_EQ(histogram(x, array({1, 2}, device)).second.dtype(), Dtype::kInt32);
  // Edges that do not fall where a division puts them.
  const Array tenths = divide(arange(11, {device}), 10);
  EXPECT_EQ(counts_of(histogram(tenths, 10, std::pair(0., 1.))),
            count_by_definition(tenths.to_vector<double>(),
                                edges_of(histogram(tenths, 10, std::pair(0., 1.)))));
  const Array most = full({2}, 0xffffffffffffffffu, {Dtype::kUInt64, device});
  EXPECT_EQ(
      counts_of(histogram(most, array({uint64_t{0}, ~uint64_t{0} - 1, ~uint64_t{0}}, device))),
      (Ints{0, 2}));
  EXPECT_ERROR(ValueError, "histogram: expected at least one bin, got 0", histogram(x, 0));
  EXPECT_ERROR(ValueError, "the range [1e+08, 1e+08] has too few numbers of float32",
               histogram(full({3}, 1e8, {Dtype::kFloat32, device}), 4));
  EXPECT_ERROR(ValueError, "expected an ascending range, got [2, 1]",
               histogram(x, 3, std::pair(2., 1.)));
  EXPECT_ERROR(ValueError, "of the elements is not finite",
               histogram(array({1., std::nan("")}, device), 3));
  EXPECT_ERROR(ValueError, "histogram: expected edges that do not decrease",
               histogram(x, array({2., 1.}, device)));
  EXPECT_ERROR(ValueError, "histogram: expected 1-d edges, got shape (1, 2)",
               histogram(x, zeros({1, 2}, {device})));
}

TEST_P(Scan, WhatWaitsIsRefusedInAGraph) {
  if (device.is_cpu()) GTEST_SKIP() << "SKIPPED: graphs are captured on GPUs";
  const Array a = arange(10, {Dtype::kInt32, device});
  const auto captured = [&](const std::function<void()>& step) {
    return thrown_text<Error>([&] { cuda::Graph::capture(device, step); });
  };
  expect_contains(captured([&] { nonzero(a); }), {"nonzero: the host waits"});
  expect_contains(captured([&] { bincount(a); }), {"bincount: the host waits"});
  expect_contains(captured([&] { histogram(a); }), {"histogram: the host waits"});
  expect_contains(captured([&] { unique(a); }), {"unique: the host waits"});
  expect_contains(captured([&] { digitize(a, a); }), {"digitize: the host waits"});
  Array sums, sorted;
  cuda::Graph graph = cuda::Graph::capture(device, [&] {
    sums = cumsum(a);
    sorted = sort(a(Slice(none, none, -1)));
  });
  graph.launch();
  expect_equal(sorted, a, "sort in a graph");
  EXPECT_EQ(sums.to_vector<int64_t>(), (Ints{0, 1, 3, 6, 10, 15, 21, 28, 36, 45}));
}

CATENA_ON_DEVICES(Scan);

}  // namespace
}  // namespace catena
