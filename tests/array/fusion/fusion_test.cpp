// Fused chains against the same operations one by one: dtype, shape and every bit.
#include "catena/array/fusion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "array/devices.h"
#include "array/fusion/fusion_graph.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"

namespace catena {
namespace {

const Dtype kDtypes[] = {Dtype::kBool,    Dtype::kInt8,   Dtype::kInt32,   Dtype::kInt64,
                         Dtype::kUInt8,   Dtype::kUInt64, Dtype::kFloat16, Dtype::kBFloat16,
                         Dtype::kFloat32, Dtype::kFloat64};

Array numbers(const Shape& shape, Dtype d, double low = 0.25) {
  const int64_t n = element_count(shape);
  const Array a = add(multiply(arange(0, n, 1, Dtype::kFloat64), 0.375), low);
  return remainder(a, 7.0).reshape(shape).astype(d);
}

void expect_same(const Array& fused, const Array& eager, const std::string& what) {
  ASSERT_EQ(fused.dtype(), eager.dtype()) << what;
  ASSERT_EQ(fused.shape(), eager.shape()) << what;
  const Array x = fused.to("cpu:0").contiguous(), y = eager.to("cpu:0").contiguous();
  EXPECT_EQ(std::memcmp(x.raw_data(), y.raw_data(), size_t(x.nbytes())), 0)
      << what << '\n'
      << (x.size() <= 64 ? x.repr() + '\n' + y.repr() : "");
}

template <class F, class... A>
void check(const std::string& what, const F& f, const A&... arguments) {
  try {
    const auto fused = fuse(f);
    const Array eager = f(arguments...);
    expect_same(fused(arguments...), eager, what);
    expect_same(fused(arguments...), eager, what + ", again");
  } catch (const Error& error) {
    ADD_FAILURE() << what << ": " << error.what();
  }
}

const auto kChain = [](auto x, auto y) { return sqrt(x * x + y * y) * 0.5; };
const auto kMixed = [](auto x, auto y) {
  return where(x > y, x / 2, y.astype(Dtype::kFloat32)) + clip(x, 1, 5) % 3;
};

TEST(Fusion, ChainsOfEveryPairOfDtypes) {
  for (const Dtype a : kDtypes) {
    for (const Dtype b : kDtypes) {
      const Array x = numbers({700}, a), y = numbers({700}, b, 1.5);
      check(
          message("x + y * 2 of ", a, " and ", b), [](auto p, auto q) { return p + q * 2; },
          x.astype(a == Dtype::kBool ? Dtype::kInt8 : a), y);
      check(message("length of ", a, " and ", b), kChain, x, y);
      if (a != Dtype::kBool && b != Dtype::kBool)
        check(message("mixed of ", a, " and ", b), kMixed, x, y);
    }
  }
}

// Every row of the table with a named function, in each dtype it takes.
TEST(Fusion, EveryOperation) {
  for (const Dtype d : kDtypes) {
    const Array x = numbers({333}, d), y = numbers({333}, d, 1.0), c = greater(x, y);
    const auto with = [&](const char* name, const auto& f, const auto&... a) {
      Array eager;
      try {
        eager = f(a...);
      } catch (const DtypeError&) {
        EXPECT_THROW(fuse(f)(a...), DtypeError) << message(name, ' ', d);
        return;
      }
      expect_same(fuse(f)(a...), eager, message(name, ' ', d));
    };
#define CATENA_NAME1(name) \
  with(                    \
      #name, [](auto p) { return name(p); }, x);
#define CATENA_NAME2(name) \
  with(                    \
      #name, [](auto p, auto q) { return name(p, q); }, x, y);
#define CATENA_NAME3(name)                                         \
  with(                                                            \
      #name, [](auto p, auto q, auto r) { return name(p, q, r); }, \
      info(ops::name).first_is_bool() ? c : x, zeros({333}, d), y);
#include "catena/kernels/detail/elementwise_names.def"
  }
}

TEST(Fusion, BroadcastsAndStrides) {
  const Array m = numbers({300, 70}, Dtype::kFloat32), row = numbers({70}, Dtype::kFloat32, 2),
              column = numbers({300, 1}, Dtype::kFloat64, 3), one = numbers({}, Dtype::kFloat32);
  check("row", kChain, m, row);
  check("column, mixed", kChain, m, column);
  check("outer", kChain, row, column);
  check("0-d", kChain, m, one);
  check("0-d only", kChain, one, one);
  check("transposed", kChain, m.T(), numbers({70, 300}, Dtype::kFloat32, 5));
  check("slices", kChain, m(Slice(none, none, -2), Slice(1, none, 3)),
        m(Slice(0, none, 2), Slice(0, 69, 3)));
  check("narrow rows", kChain, numbers({5000, 3}, Dtype::kFloat16), numbers({3}, Dtype::kInt32, 1));
  check("4-d", kChain, numbers({5, 1, 7, 3}, Dtype::kFloat32),
        numbers({6, 1, 3}, Dtype::kFloat32, 1));
  check("empty", kChain, numbers({0, 3}, Dtype::kFloat32), numbers({3}, Dtype::kFloat32));
  check("large transposed", kChain, numbers({700, 400}, Dtype::kFloat32).T(),
        numbers({400, 700}, Dtype::kFloat32, 2));
  check("large", kChain, numbers({1 << 20}, Dtype::kFloat32),
        numbers({1 << 20}, Dtype::kFloat32, 2));
}

TEST(Fusion, NumbersAreWeakArguments) {
  const auto scaled = [](auto x, auto s) { return x * s + 1; };
  for (const Dtype d : {Dtype::kInt8, Dtype::kFloat16, Dtype::kFloat32}) {
    const Array x = numbers({50}, d);
    const auto fused = fuse(scaled);
    for (const double s : {0.5, 2.25, -1.0})
      expect_same(fused(x, s), scaled(x, s), message(d, " times ", s));
    for (const int s : {3, 4}) expect_same(fused(x, s), scaled(x, s), message(d, " times ", s));
    expect_same(fused(x, true), scaled(x, true), message(d, " times true"));
  }
  const Array bytes = numbers({5}, Dtype::kInt8);
  const auto fused = fuse(scaled);
  fused(bytes, 3);
  EXPECT_THROW(fused(bytes, 300), ValueError);
}

// Numbers computed from numbers are as weak as numbers.
TEST(Fusion, NumbersThatMeetNumbersStayWeak) {
  const auto first = [](auto x, auto r) { return x * (1 - r); };
  const auto second = [](auto x, auto r) { return x + -r; };
  const auto third = [](auto x, auto r) { return (x - r * r) * 0.5 + (r > 1); };
  for (const Dtype d : {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    const Array x = numbers({50}, d);
    const auto a = fuse(first);
    const auto b = fuse(second);
    const auto c = fuse(third);
    expect_same(a(x, 0.25), first(x, 0.25), message(d, " * (1 - r)"));
    expect_same(a(x, 2), first(x, 2), message(d, " * (1 - 2)"));
    expect_same(b(x, 3), second(x, 3), message(d, " + -r"));
    expect_same(b(x, 1.5), second(x, 1.5), message(d, " + -r of a float"));
    expect_same(c(x, 1.5), third(x, 1.5), message(d, " and a comparison"));
  }
  // It might not fit: the dtype of the number, and its value.
  const Array bytes = numbers({5}, Dtype::kInt8);
  const Array wide = fuse([](Fused x, Fused r) { return x * 0 + r * 100; })(bytes, 3);
  EXPECT_EQ(wide.dtype(), Dtype::kInt64);
  EXPECT_EQ(wide(0).item<int64_t>(), 300);
}

TEST(Fusion, SeveralResults) {
  const Array x = numbers({40, 30}, Dtype::kFloat32), y = numbers({30}, Dtype::kFloat32, 1);
  const auto two = fuse([](Fused p, Fused q) { return std::make_tuple(p + q, q * 2, p > q, p); });
  const auto [sum_, twice, mask, same] = two(x, y);
  expect_same(sum_, x + y, "sum");
  expect_same(twice, y * 2, "the smaller shape");
  expect_same(mask, x > y, "mask");
  expect_same(same, x, "an argument");
  const auto list = fuse([](Fused p) { return std::vector<Fused>{p + 1, (p + 1) * 2}; });
  const std::vector<Array> results = list(x);
  expect_same(results.at(0), x + 1, "first of a list");
  expect_same(results.at(1), (x + 1) * 2, "second of a list");
  const auto pair = fuse([](Fused p) { return std::make_pair(sum(p * p, 1), p * p); });
  const auto [squares, square_] = pair(x);
  expect_same(squares, sum(x * x, 1), "a reduction beside");
  expect_same(square_, x * x, "an element-wise result");
}

TEST(Fusion, ReductionsAtTheEnd) {
  const Axes axes[] = {{}, {0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}, {0, 1, 2}};
  for (const Dtype d :
       {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kInt32, Dtype::kBool}) {
    for (const Shape& shape : {Shape{7, 300, 5}, Shape{3, 4, 5000}, Shape{2000, 3, 4}}) {
      const Array x = numbers(shape, d), y = numbers({shape[2]}, d, 1);
      for (const Axes& a : axes) {
        for (const bool keep : {false, true}) {
          const ReduceOptions options{.axes = a, .keepdims = keep};
          const std::string what = message(d, ' ', shape, " over ", a);
          check(
              what + " sum", [&](auto p, auto q) { return sum(p * q + p, options); }, x, y);
          check(
              what + " max", [&](auto p, auto q) { return amax(p * q + p, options); }, x, y);
          if (keep) continue;
          check(
              what + " mean", [&](auto p, auto q) { return mean(p * q, options); }, x, y);
          check(
              what + " any", [&](auto p, auto q) { return any(p > q * 2, options); }, x, y);
          check(
              what + " all", [&](auto p, auto q) { return all(p + q, options); }, x, y);
          check(
              what + " min", [&](auto p, auto) { return amin(p, options); }, x, y);
        }
      }
      check(
          "prod", [](auto p) { return prod(p / 4, 1); }, x);
    }
  }
  const Array big = numbers({1 << 20}, Dtype::kFloat32);
  check(
      "all of a large array", [](auto p) { return sum(p * p); }, big);
  const ReduceOptions wide{.axes = 0, .dtype = Dtype::kFloat64};
  check(
      "dtype", [&](auto p) { return sum(p * p, wide); }, big);
  // The loop of a fused sum visits the elements in C order, whatever their order in memory.
  const Array transposed = numbers({300, 40}, dtype::float32).T();
  const auto total = [](auto p) { return sum(exp(p), 0); };
  expect_same(fuse(total)(transposed), total(transposed.copy()), "transposed");
}

TEST(Fusion, MeansAreQuotients) {
  const auto fused = fuse([](auto p) { return mean(p * 1); });
  for (const int64_t n : {49, 98, 103, 107})
    EXPECT_EQ(fused(ones({n})).template item<double>(), 1) << n;
}

TEST(Fusion, Int64AndUint64CompareExactly) {
  const Array a = array<int64_t>({std::numeric_limits<int64_t>::max(), -1, 7, 0}).reshape({4, 1});
  const Array b = array<uint64_t>({uint64_t{1} << 63, ~uint64_t{0}, 7, 0});
  const auto both = [&](const std::string& what, const auto& f) {
    check(what, f, a, b);
    check(what + ", turned", f, b, a);
  };
  both("equal", [](auto x, auto y) { return x == y; });
  both("not equal", [](auto x, auto y) { return x != y; });
  both("less", [](auto x, auto y) { return x < y; });
  both("less or equal", [](auto x, auto y) { return x <= y; });
  both("greater", [](auto x, auto y) { return x > y; });
  both("greater or equal", [](auto x, auto y) { return where(x >= y, x, y); });
}

TEST(Fusion, EmptyReductions) {
  const Array none_left = zeros({0, 3}, Dtype::kFloat32);
  const auto fused = fuse([](Fused x) { return sum(x + 1, 0); });
  expect_same(fused(none_left), zeros({3}, Dtype::kFloat32), "sum of nothing");
  const Array average = fuse([](Fused x) { return mean(x, 0); })(none_left);
  EXPECT_TRUE(all(isnan(average)).item<bool>());
  EXPECT_THROW(fuse([](Fused x) { return amax(x, 0); })(none_left), ValueError);
  EXPECT_EQ(fuse([](Fused x) { return amax(x, 1); })(none_left).shape(), Shape{0});
}

TEST(Fusion, IsRecordedOnceAndByDtype) {
  int calls = 0;
  const auto fused = fuse([&](Fused x) {
    ++calls;
    return x * x + x;
  });
  for (const Dtype d : {Dtype::kFloat32, Dtype::kInt32, Dtype::kFloat32}) {
    const Array x = numbers({10}, d);
    expect_same(fused(x), x * x + x, message(d));
  }
  EXPECT_EQ(calls, 1);
}

TEST(Fusion, FusedFunctionsNest) {
  const auto square_sum = fuse([](auto x, auto y) { return x * x + y * y; });
  const auto length = fuse([&](Fused x, Fused y) { return sqrt(square_sum(x, y)); });
  const Array x = numbers({100}, Dtype::kFloat32), y = numbers({100}, Dtype::kFloat32, 2);
  expect_same(length(x, y), sqrt(x * x + y * y), "nested");
}

TEST(Fusion, LongChains) {
  const auto chain = [](auto x) {
    auto y = x + 0;
    for (int i = 0; i < 300; ++i) y = i % 3 ? y * 1.01 : y + x;
    return y;
  };
  check("300 operations", chain, numbers({5000}, Dtype::kFloat32));
  const auto wide = [](auto x) {  // 40 values alive at once
    std::vector<decltype(x + 1)> list;
    for (int i = 0; i < 40; ++i) list.push_back(x * i);
    auto y = x + 0;
    for (const auto& v : list) y = y + sqrt(abs(v));
    return y;
  };
  check("40 live values", wide, numbers({3000}, Dtype::kFloat64));
}

TEST(Fusion, OneCallFromSeveralThreads) {
  const auto fused = fuse(kChain);
  const Array x = numbers({20000}, Dtype::kFloat32), y = numbers({20000}, Dtype::kFloat64, 1);
  const Array expected = kChain(x, y);
  std::vector<Array> results(4);
  std::vector<std::thread> threads;
  for (Array& result : results) threads.emplace_back([&] { result = fused(x, y); });
  for (std::thread& thread : threads) thread.join();
  for (const Array& result : results) expect_same(result, expected, "a thread's result");
}

template <class E, class F, class... A>
void expect_error(std::initializer_list<std::string> parts, const F& f, const A&... arguments) {
  expect_contains(error_of<E>([&] { fuse(f)(arguments...); }), parts);
}

TEST(Fusion, InPlaceOperatorsBoundsAndIsclose) {
  const Array i = numbers({40}, Dtype::kInt32), f = numbers({40}, Dtype::kFloat32);
  const auto in_place = [](Fused x, Fused y) {
    x %= 7;
    x |= y;
    x ^= 5;
    x &= 12;
    x <<= 3;
    return x >>= 1;
  };
  expect_same(fuse(in_place)(i, 2), right_shift(left_shift((((i % 7) | 2) ^ 5) & 12, 3), 1),
              "in place");
  check(
      "clip", [](auto x) { return clip(x, 0, none) - clip(x, none, 1.5); }, f);
  const double nan = std::nan(""), infinity = HUGE_VAL;
  const Array x = array({1.0, 1.0, nan, infinity, -infinity, 0.0, 1e9}),
              y = array({1.0 + 1e-6, 1.1, nan, infinity, infinity, 1e-9, 1e9 + 1});
  for (const bool equal_nan : {false, true}) {
    const auto close = [=](auto p, auto q) { return isclose(p, q, 1e-5, 1e-8, equal_nan); };
    check("isclose", close, x, y);
    check("isclose of float16", close, x.astype(Dtype::kFloat16), y.astype(Dtype::kFloat16));
    check("isclose of integers", close, i, i + equal(i, 3));
    check("isclose of both", close, i.astype(Dtype::kInt8), f.astype(Dtype::kFloat16));
  }
  check(
      "out of range", [](auto p) { return (p < 300) & (p != -1) & (70000 > p) & (p <= 99); },
      i.astype(Dtype::kUInt8));
  check(
      "isclose of a number", [](auto p) { return isclose(p, 3.00001); }, f);
}

TEST(Fusion, Errors) {
  const Array x = numbers({4}, Dtype::kFloat32);
  expect_error<ValueError>(
      {"condition", "where()"}, [](Fused p) { return p > 0 ? p : p * 2; }, x);
  expect_error<ValueError>(
      {"item()"}, [](Fused p) { return p * p.item<float>(); }, x);
  expect_error<ValueError>(
      {"matmul"}, [](Fused p) { return matmul(p, p); }, x);
  expect_error<ValueError>(
      {"cumsum"}, [](Fused p) { return cumsum(p, 0) + 1; }, x);
  expect_error<ValueError>(
      {"sqrt", "sum", "last step"}, [](Fused p) { return sqrt(sum(p)); }, x);
  expect_error<DtypeError>(
      {"bitwise_and", "float32"}, [](Fused p) { return p & 1; }, x);
  expect_error<ShapeError>(
      {"(4,)", "(3,)"}, [](Fused p, Fused q) { return p + q; }, x, numbers({3}, Dtype::kFloat32));
  expect_error<ValueError>(
      {"undefined"}, [](Fused p) { return p + 1; }, Array());
  expect_error<ValueError>(
      {"never assigned"}, [](Fused p) { return p + Fused(); }, x);
  expect_error<DeviceError>(
      {"cpu:0", "cpu:1"}, [](Fused p, Fused q) { return p + q; }, x,
      zeros({4}, {Dtype::kFloat32, "cpu:1"}));
  expect_error<IndexError>(
      {"sum", "axis"}, [](Fused p) { return sum(p, 3); }, x);

  expect_error<ValueError>(
      {"not computed from"},
      [&](Fused) {
        Fused other;
        fuse([&](Fused q) { return other = q * 2; })(x);
        return other;
      },
      x);
}

// Results lie in memory as operands of one order do, else in C order.
TEST(Fusion, ResultsHaveTheOrderOfTheOperands) {
  const auto both = fuse([](auto x, auto y) { return std::tuple(x * y + 1, x - y); });
  const Shape shape{2, 3, 4, 5};
  const Strides in_c{240, 80, 20, 4}, channels_last{240, 4, 60, 12};
  for (const Device device : testing::devices()) {
    const DeviceScope scope(device);
    const Array first = numbers(shape, Dtype::kFloat32);
    const Array last =
        Array::uninitialized(shape, Dtype::kFloat32, device, MemoryOrder({0, 2, 3, 1}));
    last.assign(first);
    const auto expect = [&](const Array& x, const Array& y, const Strides& strides) {
      const auto [a, b] = both(x, y);
      EXPECT_EQ(a.strides(), strides);
      EXPECT_EQ(b.strides(), strides);
      expect_same(a, x * y + 1, "x * y + 1");
      expect_same(b, x - y, "x - y");
    };
    expect(last, last * 2, channels_last);
    expect(last, first, in_c);
    expect(last, numbers({3, 1, 1}, Dtype::kFloat32), channels_last);
  }
}

}  // namespace
}  // namespace catena
