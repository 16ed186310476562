// Runs of tests: on every device and dtype, and several times where chance decides.
#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cstdlib>
#include <exception>
#include <random>
#include <string_view>
#include <typeinfo>

#include "catena/testing.h"

namespace catena::testing {
namespace {

// What f throws, if anything.
template <class F>
std::exception_ptr caught(F f) {
  try {
    f();
  } catch (...) {
    return std::current_exception();
  }
  return {};
}

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

const std::type_info& type_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return typeid(e);
  } catch (...) {
    return typeid(void);
  }
}

std::exception_ptr run_once(const Trial& trial) {
  if (trial.set_up) {
    if (const auto error = caught(trial.set_up)) return error;
  }
  const std::exception_ptr error = caught(trial.body);
  const std::exception_ptr later = trial.tear_down ? caught(trial.tear_down) : nullptr;
  return error ? error : later;
}

bool full_combination() {
  const char* text = std::getenv("CATENA_TEST_FULL_COMBINATION");
  return text && std::string_view(text) == "1";
}

// Rows of `count` dtypes.
std::vector<std::vector<Dtype>> combinations(const std::vector<Dtype>& dtypes, size_t count) {
  std::vector<std::vector<Dtype>> rows;
  if (full_combination()) {
    rows.emplace_back();
    for (size_t place = 0; place < count; ++place) {
      std::vector<std::vector<Dtype>> longer;
      for (const auto& row : rows) {
        for (Dtype d : dtypes) {
          longer.push_back(row);
          longer.back().push_back(d);
        }
      }
      rows = std::move(longer);
    }
    return rows;
  }
  rows.resize(dtypes.size());
  std::mt19937 random(1);
  std::vector<Dtype> order = dtypes;
  for (size_t place = 0; place < count; ++place) {
    for (size_t i = 0; i < rows.size(); ++i) rows[i].push_back(order[i]);
    std::shuffle(order.begin(), order.end(), random);
  }
  return rows;
}

template <class Keep>
std::vector<Dtype> dtypes_where(Keep keep) {
  std::vector<Dtype> list;
  for (int i = 0; i < kDtypeCount; ++i) {
    if (keep(static_cast<Dtype>(i))) list.push_back(static_cast<Dtype>(i));
  }
  return list;
}

}  // namespace

std::vector<Dtype> all_dtypes(bool no_float16, bool no_bool) {
  return dtypes_where([&](Dtype d) {
    return !(no_float16 && is_narrow_float(d)) && !(no_bool && d == Dtype::kBool);
  });
}
std::vector<Dtype> float_dtypes(bool no_float16) {
  return dtypes_where([&](Dtype d) { return is_float(d) && !(no_float16 && is_narrow_float(d)); });
}
std::vector<Dtype> signed_dtypes() { return dtypes_where(is_signed_int); }
std::vector<Dtype> unsigned_dtypes() { return dtypes_where(is_unsigned_int); }
std::vector<Dtype> int_dtypes(bool no_bool) {
  return dtypes_where([&](Dtype d) { return is_int(d) || (d == Dtype::kBool && !no_bool); });
}

void for_dtypes(const std::vector<Dtype>& dtypes, const std::function<void(Dtype)>& body) {
  for_dtypes_combination(dtypes, 1, [&](const std::vector<Dtype>& row) { body(row[0]); });
}

void for_dtypes_combination(const std::vector<Dtype>& dtypes, int count,
                            const std::function<void(const std::vector<Dtype>&)>& body) {
  CATENA_CHECK(ValueError, count > 0, "for_dtypes_combination: expected count > 0, got ", count);
  for (const std::vector<Dtype>& row : combinations(dtypes, static_cast<size_t>(count))) {
    const std::exception_ptr error = caught([&] { body(row); });
    if (!error) continue;
    std::string names;
    for (Dtype d : row) names.append(names.empty() ? "" : ", ").append(name(d));
    fail<ValueError>("with dtype ", names, ": ", text_of(error));
  }
}

void assert_same_on_devices(const std::function<Array(Device)>& body,
                            const ArrayAssertion& compare) {
  const Array expected = body(cpu(0));
  for (Device device : devices()) {
    const std::exception_ptr error = caught([&] {
      const Array got = body(device);
      CATENA_CHECK(ValueError, got.dtype() == expected.dtype(), "dtypes ", got.dtype(), " and ",
                   expected.dtype(), " differ");
      if (compare)
        compare(got, expected);
      else
        assert_array_equal(got, expected);
    });
    if (error) fail<ValueError>("on ", device, " and on cpu:0: ", text_of(error));
  }
}

void assert_same_error_on_devices(const std::function<void(Device)>& body) {
  const auto error_on = [&](Device device) {
    const std::exception_ptr error = caught([&] { body(device); });
    CATENA_CHECK(ValueError, error != nullptr, "on ", device,
                 ": expected an error, there was none");
    return error;
  };
  const std::exception_ptr expected = error_on(cpu(0));
  for (Device device : devices()) {
    const std::exception_ptr error = error_on(device);
    CATENA_CHECK(ValueError, type_of(error) == type_of(expected), "errors of different types on ",
                 device, " (", text_of(error), ") and on cpu:0 (", text_of(expected), ")");
  }
}

void repeat_with_success_at_least(int times, int min_success, const Trial& trial) {
  CATENA_CHECK(ValueError, times >= 1 && min_success >= 0 && min_success <= times,
               "repeat_with_success_at_least: expected 1 <= times and 0 <= min_success <= times, "
               "got times ",
               times, ", min_success ", min_success);
  int passed = 0, failed = 0;
  std::string texts;
  while (passed < min_success && failed <= times - min_success) {
    const std::exception_ptr error = run_once(trial);
    ++(error ? failed : passed);
    if (error) texts += message("\ntrial ", passed + failed, ": ", text_of(error));
  }
  CATENA_CHECK(ValueError, passed >= min_success, failed, " of ", passed + failed,
               " trials failed, where ", min_success, " of ", times, " must pass", texts);
}
void retry(int times, const Trial& trial) { repeat_with_success_at_least(times, 1, trial); }
void repeat(int times, const Trial& trial) { repeat_with_success_at_least(times, times, trial); }

bool chi_square_test(const std::vector<double>& observed, const std::vector<double>& expected,
                     double alpha, std::optional<int> degrees_of_freedom) {
  CATENA_CHECK(ValueError, observed.size() == expected.size(), "chi_square_test: ", observed.size(),
               " observed counts against ", expected.size(), " expected ones");
  const int freedom = degrees_of_freedom.value_or(static_cast<int>(observed.size()) - 1);
  CATENA_CHECK(ValueError, freedom >= 1,
               "chi_square_test: expected at least 1 degree of freedom, "
               "got ",
               freedom);
  CATENA_CHECK(ValueError, alpha > 0 && alpha < 1, "chi_square_test: expected 0 < alpha < 1, got ",
               alpha);
  double statistic = 0;
  for (size_t i = 0; i < observed.size(); ++i) {
    CATENA_CHECK(ValueError, expected[i] > 0, "chi_square_test: expected count ", i, " is ",
                 expected[i], ", not above 0");
    const double error = observed[i] - expected[i];
    statistic += error * error / expected[i];
  }
  return boost::math::gamma_q(freedom / 2.0, statistic / 2) >= alpha;
}

}  // namespace catena::testing
