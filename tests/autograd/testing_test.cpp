#include "catena/testing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/core/dtype_info.h"
#include "catena/testing_gtest.h"
#include "environment_scope.h"
#include "error_text.h"

namespace catena {
namespace {

using namespace testing;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = HUGE_VAL;

template <class F>
std::string failure_of(F f) {
  try {
    f();
  } catch (const ValueError& e) {
    return e.what();
  }
  return "";
}

// The marker in the place of a test's body: false when it skipped.
bool runs_when_marked(int gpus) {
  bool ran = false;
  ::testing::TestPartResultArray results;
  const ::testing::ScopedFakeTestPartResultReporter reporter(
      ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
  [&] {
    CATENA_NEEDS_GPUS(gpus);
    ran = true;
  }();
  return ran;
}

TEST(TestingMarkers, TUT_43_MarkedTestsAreLeftOutWithoutGpus) {
  {
    const EnvironmentScope no_gpu("CATENA_TEST_DEVICES", "cpu:0,cpu:1");  // Chainer: --attr='!gpu'
    EXPECT_EQ(missing_test_gpus(1), "needs 1 GPU(s), CATENA_TEST_DEVICES=cpu:0,cpu:1 names none");
    EXPECT_NE(missing_test_gpus(2), "");
    EXPECT_EQ(missing_test_gpus(0), "");
    EXPECT_FALSE(runs_when_marked(1));
    EXPECT_TRUE(runs_when_marked(0));
  }
  const EnvironmentScope all("CATENA_TEST_DEVICES", "cpu:0,cuda:0");
  const int present = device_count(DeviceType::kCuda);
  EXPECT_EQ(runs_when_marked(1), present >= 1);
  EXPECT_EQ(missing_test_gpus(present), "");
  EXPECT_NE(missing_test_gpus(present + 1).find(message("this machine has ", present)),
            std::string::npos);
}

TEST(TestingTrials, RepeatUntilTheResultIsKnown) {
  struct Case {
    int times, min_success, failing_first, runs;
    bool passes;
  };
  for (const Case& c : {Case{5, 1, 0, 1, true}, Case{5, 1, 4, 5, true}, Case{5, 1, 5, 5, false},
                        Case{5, 5, 0, 5, true}, Case{5, 5, 1, 1, false}, Case{5, 3, 2, 5, true},
                        Case{5, 3, 3, 3, false}, Case{5, 0, 5, 0, true}}) {
    int runs = 0;
    const std::string text = failure_of([&] {
      repeat_with_success_at_least(c.times, c.min_success, [&] {
        if (runs++ < c.failing_first) throw ValueError(message("bad luck ", runs));
      });
    });
    EXPECT_EQ(text.empty(), c.passes) << text;
    EXPECT_EQ(runs, c.runs);
  }
  EXPECT_EQ(failure_of([] { retry(2, [] { throw ValueError("no"); }); }),
            "2 of 2 trials failed, where 1 of 2 must pass\ntrial 1: no\ntrial 2: no");
  EXPECT_EQ(failure_of([] { repeat(3, [] { throw 5; }); }),
            "1 of 1 trials failed, where 3 of 3 must pass\n"
            "trial 1: an exception that is not a std::exception");
  EXPECT_THROW(repeat_with_success_at_least(2, 3, [] {}), ValueError);
  EXPECT_THROW(retry(0, [] {}), ValueError);
}

TEST(TestingTrials, EachTrialIsSetUpAndTornDown) {
  std::string log;
  const auto note = [&](char c) { return [&log, c] { log += c; }; };
  repeat(2, Trial(note('u'), note('b'), note('d')));
  EXPECT_EQ(log, "ubdubd");
  log.clear();
  int runs = 0;
  retry(3, Trial(
               note('u'),
               [&] {
                 if (++runs < 3) throw ValueError("");
               },
               note('d')));
  EXPECT_EQ(log, "ududud");
  EXPECT_EQ(failure_of([] { retry(1, Trial([] { throw ValueError("up"); }, [] {})); }),
            "1 of 1 trials failed, where 1 of 1 must pass\ntrial 1: up");
}

TEST(TestingTrials, ExpectationsOfATrialAreItsOwn) {
  int runs = 0;
  retry(3, expectations([&] { EXPECT_EQ(++runs, 3) << "not yet"; }));
  EXPECT_EQ(runs, 3);
  const std::string text = failure_of([] { retry(1, expectations([] { ASSERT_TRUE(false); })); });
  EXPECT_NE(text.find("Value of: false"), std::string::npos) << text;
}

TEST(TestingDtypes, Lists) {
  EXPECT_EQ(all_dtypes().size(), size_t(kDtypeCount));
  EXPECT_EQ(all_dtypes(true, true).size(), size_t(kDtypeCount) - 3);
  EXPECT_EQ(float_dtypes(true), (std::vector<Dtype>{Dtype::kFloat32, Dtype::kFloat64}));
  EXPECT_EQ(float_dtypes().size(), 4u);
  EXPECT_EQ(signed_dtypes().size(), 4u);
  EXPECT_EQ(unsigned_dtypes().size(), 4u);
  EXPECT_EQ(int_dtypes().size(), 9u);
  EXPECT_EQ(int_dtypes(true).size(), 8u);
}

TEST(TestingDtypes, BodiesRunOnEachAndErrorsNameIt) {
  std::vector<Dtype> seen;
  for_dtypes(all_dtypes(), [&](Dtype d) { seen.push_back(d); });
  EXPECT_EQ(seen, all_dtypes());
  EXPECT_EQ(failure_of([] {
              for_dtypes(all_dtypes(), [](Dtype d) {
                if (d == Dtype::kUInt16) throw IndexError("bad");
              });
            }),
            "with dtype uint16: bad");
  const auto pairs_of = [](const std::vector<Dtype>& dtypes) {
    std::vector<std::vector<Dtype>> rows;
    for_dtypes_combination(dtypes, 2, [&](const auto& row) { rows.push_back(row); });
    return rows;
  };
  const auto rows = pairs_of(all_dtypes());
  ASSERT_EQ(rows.size(), size_t(kDtypeCount));
  for (size_t place : {0, 1}) {
    std::set<Dtype> here;
    for (const auto& row : rows) here.insert(row.at(place));
    EXPECT_EQ(here.size(), size_t(kDtypeCount));
  }
  const EnvironmentScope full("CATENA_TEST_FULL_COMBINATION", "1");
  const auto all = pairs_of(float_dtypes());
  EXPECT_EQ((std::set<std::vector<Dtype>>(all.begin(), all.end()).size()), 16u);
}

TEST(TestingDevices, ResultsAndErrorsAreCompared) {
  const EnvironmentScope devices("CATENA_TEST_DEVICES", "cpu:0,cpu:1");
  const auto ramp = [](Device d) { return testing::counting_array({3}, Dtype::kFloat32, d); };
  EXPECT_NO_THROW(assert_same_on_devices(ramp));
  EXPECT_EQ(failure_of([&] {
              assert_same_on_devices([&](Device d) { return d == cpu(1) ? ramp(d) + 1 : ramp(d); });
            }),
            "on cpu:1 and on cpu:0: assert_array_equal: 3 of 3 elements are not equal; first at "
            "(0,): 1 against 0");
  EXPECT_NO_THROW(assert_same_on_devices(
      [&](Device d) { return d == cpu(1) ? ramp(d) + 1e-7 : ramp(d); },
      [](const Array& a, const Array& b) { assert_array_almost_equal(a, b); }));
  EXPECT_EQ(failure_of([&] {
              assert_same_on_devices([&](Device d) {
                return ramp(d).astype(d == cpu(1) ? dtype::int8 : dtype::int16);
              });
            }),
            "on cpu:1 and on cpu:0: dtypes int8 and int16 differ");
  const auto refuse = [](Device) { throw ShapeError("no"); };
  EXPECT_NO_THROW(assert_same_error_on_devices(refuse));
  EXPECT_EQ(failure_of([&] {
              assert_same_error_on_devices([&](Device d) {
                if (d == cpu(1)) throw IndexError("yes");
                refuse(d);
              });
            }),
            "errors of different types on cpu:1 (yes) and on cpu:0 (no)");
  EXPECT_EQ(failure_of([] { assert_same_error_on_devices([](Device) {}); }),
            "on cpu:0: expected an error, there was none");
}

TEST(TestingArrays, ChainersMakers) {
  EXPECT_EQ(shaped_arange({2, 2}).to_vector<double>(), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(shaped_arange({2}).dtype(), Dtype::kFloat32);
  EXPECT_EQ(shaped_reverse_arange({3}, Dtype::kInt8, cpu(1)).to_vector<double>(),
            (std::vector<double>{3, 2, 1}));
  EXPECT_EQ(shaped_reverse_arange({3}, Dtype::kInt8, cpu(1)).device(), cpu(1));
  EXPECT_EQ(shaped_arange({3}, Dtype::kBool).to_vector<double>(), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(shaped_reverse_arange({2}, Dtype::kBool).to_vector<double>(),
            (std::vector<double>{1, 0}));
  const std::vector<double> random = shaped_random({100}, Dtype::kFloat64).to_vector<double>();
  EXPECT_LT(*std::max_element(random.begin(), random.end()), 10);
  EXPECT_GT(*std::max_element(random.begin(), random.end()), 9);
}

TEST(TestingAssertions, EqualToTheLastBit) {
  EXPECT_NO_THROW(
      assert_array_equal(array({1.0, kNan, kInf}), array({1.f, float(kNan), float(kInf)})));
  EXPECT_NO_THROW(assert_array_equal(full({2, 2}, 3), array(3)));
  EXPECT_EQ(failure_of([] {
              assert_array_equal(array({{1, 2}, {3, 4}}), array({{1, 2}, {5, 6}}));
            }),
            "assert_array_equal: 2 of 4 elements are not equal; first at (1, 0): 3 against 5");
  // Not in doubles, which cannot tell these from each other.
  const int64_t large = (int64_t(1) << 62) + 1;
  EXPECT_NE(failure_of([&] { assert_array_equal(array({large}), array({large - 1})); }), "");
  EXPECT_NE(failure_of([] { assert_array_equal(array({~uint64_t(0)}), array({int64_t(-1)})); }),
            "");
  EXPECT_THROW(assert_array_equal(array({1.0}), array({1.0, 1.0})), ValueError);
  EXPECT_THROW(assert_array_equal(Array(), array({1.0})), ValueError);
  EXPECT_THROW(assert_array_equal(array({kNan}), array({1.0})), ValueError);
  const std::vector<Array> one{array({1.0})}, two{array({1.0}), array({2.0})},
      other{array({1.0}), array({3.0})};
  EXPECT_NO_THROW(assert_array_list_equal(two, two));
  EXPECT_THROW(assert_array_list_equal(one, two), ValueError);
  EXPECT_NE(failure_of([&] { assert_array_list_equal(two, other); }).find("arrays 1"),
            std::string::npos);
}

TEST(TestingAssertions, AlmostEqual) {
  const Array x = array({1.0, kInf, kNan});
  EXPECT_NO_THROW(assert_array_almost_equal(x, x + 1.4e-6));
  EXPECT_THROW(assert_array_almost_equal(x, x + 1.6e-6), ValueError);
  EXPECT_NO_THROW(assert_array_almost_equal(x, x + 0.014, 2));
  EXPECT_THROW(assert_array_almost_equal(x, array({1.0, -kInf, kNan})), ValueError);
}

TEST(TestingAssertions, UnitsInTheLastPlace) {
  for (Dtype d : float_dtypes()) {
    const FloatInfo info = finfo(d);
    const double eps = info.eps, tiny = info.smallest_subnormal;
    const auto one = [&](double v) { return array({v}).astype(d); };
    for (auto check :
         {+[](const Array&a, const Array&b, int n) { assert_arrays_almost_equal_nulp(a, b, n); },
          +[](const Array&a, const Array&b, int n) { assert_array_max_ulp(a, b, n); }}) {
      EXPECT_NO_THROW(check(one(1), one(1 + eps), 1)) << d;
      EXPECT_THROW(check(one(1), one(1 + 2 * eps), 1), ValueError) << d;
      EXPECT_NO_THROW(check(one(-1), one(-1 - 2 * eps), 2)) << d;
      EXPECT_NO_THROW(check(one(0), one(tiny), 1)) << d;
      EXPECT_THROW(check(one(tiny), one(-tiny), 1), ValueError) << d;
      EXPECT_NO_THROW(check(one(tiny), one(-tiny), 2)) << d;
      EXPECT_NO_THROW(check(one(kInf), one(kInf), 0)) << d;
      EXPECT_THROW(check(one(kInf), one(1), 1000), ValueError) << d;
      EXPECT_THROW(check(one(1), one(kNan), 1000), ValueError) << d;
    }
    EXPECT_NO_THROW(assert_array_max_ulp(one(info.max), one(kInf), 1)) << d;
    EXPECT_NO_THROW(assert_array_max_ulp(one(1), one(1 - eps), 2)) << d;  // below 1 they are closer
    EXPECT_THROW(assert_array_max_ulp(one(1), one(1 - eps), 1), ValueError) << d;
    EXPECT_NO_THROW(assert_arrays_almost_equal_nulp(one(1), one(1 - eps), 1)) << d;
  }
  EXPECT_THROW(assert_array_max_ulp(array({1}), array({1})), ValueError);
  EXPECT_THROW(assert_array_max_ulp(array({-1.0}), array({1.0}), INT64_MAX / 4), ValueError);
}

TEST(TestingAssertions, Less) {
  EXPECT_NO_THROW(assert_array_less(array({1.0, kNan}), array({2.0, kNan})));
  EXPECT_NO_THROW(assert_array_less(array({1, 2}), array(3)));
  EXPECT_EQ(failure_of([] {
              assert_array_less(array({1, 3}), array({2, 3}));
            }),
            "assert_array_less: 1 of 2 elements are not less; first at (1,): 3 against 3");
  EXPECT_THROW(assert_array_less(array({kNan}), array({1.0})), ValueError);
}

TEST(TestingRandomness, ChiSquare) {
  // From tables of the distribution: 3.841 and 6.635 for 1 degree, 18.307 for 10, at 0.05 and 0.01.
  const auto accepts = [](double statistic, double alpha, int freedom) {
    const double e = 100, away = std::sqrt(statistic * e);
    std::vector<double> expected(size_t(freedom) + 1, e), observed = expected;
    observed[0] += away;
    return chi_square_test(observed, expected, alpha);
  };
  EXPECT_TRUE(accepts(3.840, 0.05, 1));
  EXPECT_FALSE(accepts(3.842, 0.05, 1));
  EXPECT_TRUE(accepts(6.634, 0.01, 1));
  EXPECT_FALSE(accepts(6.636, 0.01, 1));
  EXPECT_TRUE(accepts(18.306, 0.05, 10));
  EXPECT_FALSE(accepts(18.308, 0.05, 10));
  EXPECT_TRUE(chi_square_test({5, 5, 11}, {5, 5, 5}, 0.05, 4));  // 7.2 of 9.488
  EXPECT_FALSE(chi_square_test({5, 5, 11}, {5, 5, 5}));          // 7.2 of 5.991
  EXPECT_THROW(chi_square_test({1, 2}, {1}), ValueError);
  EXPECT_THROW(chi_square_test({1, 2}, {1, 0}), ValueError);
  EXPECT_THROW(chi_square_test({1}, {1}), ValueError);
  EXPECT_THROW(chi_square_test({1, 2}, {1, 2}, 0), ValueError);
}

}  // namespace
}  // namespace catena
