// Help for tests of arrays and functions: devices and dtypes to run on, arrays of every kind and
// layout, assertions on arrays, trials of what is random, printers for GoogleTest. Gradient checks:
// autograd/gradient_check.h. Needs no test framework; testing_gtest.h joins it to GoogleTest, with
// markers of tests that need GPUs.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catena/array/array.h"
#include "catena/autograd/gradient_check.h"
#include "catena/autograd/variable.h"

namespace catena {

namespace testing {

// Devices and dtypes -----------------------------------------------------------------------

// The devices of CATENA_TEST_DEVICES ("cpu:0,cuda:0"); by default cpu:0, cpu:1, and cuda:0 if there
// is a GPU. An unusable one is a DeviceError.
std::vector<Device> devices();

// Lists of dtypes to run on. no_float16 leaves out bfloat16 too.
std::vector<Dtype> all_dtypes(bool no_float16 = false, bool no_bool = false);
std::vector<Dtype> float_dtypes(bool no_float16 = false);
std::vector<Dtype> signed_dtypes();
std::vector<Dtype> unsigned_dtypes();
std::vector<Dtype> int_dtypes(bool no_bool = false);

// Calls body with each dtype. What it throws becomes a ValueError that names the dtype.
void for_dtypes(const std::vector<Dtype>& dtypes, const std::function<void(Dtype)>& body);
// The same with one dtype for each of `count` arguments: every dtype comes once in every position,
// in mixed order; with CATENA_TEST_FULL_COMBINATION=1 all combinations.
void for_dtypes_combination(const std::vector<Dtype>& dtypes, int count,
                            const std::function<void(const std::vector<Dtype>&)>& body);

// Throws when two arrays differ.
using ArrayAssertion = std::function<void(const Array& got, const Array& expected)>;
// Calls body with each of devices() and compares its result, dtype included, with that of cpu:0, by
// default bit for bit. A difference or an error on one of them is a ValueError that names the
// device.
void assert_same_on_devices(const std::function<Array(Device)>& body,
                            const ArrayAssertion& compare = {});
// Expects body to throw on every device an exception of the type that it throws on cpu:0.
void assert_same_error_on_devices(const std::function<void(Device)>& body);

// Arrays -----------------------------------------------------------------------------------

// Uniform numbers of [low, high), rounded for integer dtypes; equal seeds give equal values on
// every device. bool: true where the number is above the middle.
Array random_array(const Shape& shape, double low, double high, Dtype dtype = Dtype::kFloat64,
                   Device device = cpu(0), uint64_t seed = 0);
// 0, 1, 2, ... in C order.
Array counting_array(const Shape& shape, Dtype dtype = Dtype::kFloat64, Device device = cpu(0));
// CuPy's: 1, 2, 3, ..., n; n, ..., 2, 1 (bool: true for even numbers); uniform of [0, scale).
Array shaped_arange(const Shape& shape, Dtype dtype = Dtype::kFloat32, Device device = cpu(0));
Array shaped_reverse_arange(const Shape& shape, Dtype dtype = Dtype::kFloat32,
                            Device device = cpu(0));
Array shaped_random(const Shape& shape, Dtype dtype = Dtype::kFloat32, Device device = cpu(0),
                    double scale = 10, uint64_t seed = 0);

// The same values in other layouts, none of them contiguous when there are at least two elements:
// every second element of a larger array along each axis, axes stored in reverse order, and with
// negative strides.
Array padded(const Array& a);
Array transposed_layout(const Array& a);
Array reversed_layout(const Array& a);

// Assertions -------------------------------------------------------------------------------
//
// Each throws ValueError with the number of elements that fail, the first of them and where it is.
// Devices may differ. Shapes must agree, or one array is 0-d; dtypes may differ. NaN agrees with
// NaN, infinities with themselves. assert_allclose is in gradient_check.h.

// Equal values, and equal values of every pair of two lists.
void assert_array_equal(const Array& x, const Array& y);
void assert_array_list_equal(std::span<const Array> xs, std::span<const Array> ys);
// |x - y| < 1.5 * 10^-decimal.
void assert_array_almost_equal(const Array& x, const Array& y, int decimal = 6);
// Of floating arrays, in the wider dtype of both: |x - y| <= nulp times the distance from the
// larger magnitude to the next number.
void assert_arrays_almost_equal_nulp(const Array& x, const Array& y, double nulp = 1);
// The same, counting the numbers from x to y: at most maxulp steps.
void assert_array_max_ulp(const Array& x, const Array& y, int64_t maxulp = 1);
// x < y.
void assert_array_less(const Array& x, const Array& y);

// Empty when |x - y| <= atol + rtol |y| everywhere (NaN equals NaN) and shapes and dtypes agree;
// else what differs most, and where. Devices may differ.
std::string difference(const Array& x, const Array& y, double atol = 0, double rtol = 0);

// Randomness -------------------------------------------------------------------------------

// One run of a test that may fail by chance: it fails by throwing. set_up and tear_down, where
// given, run before and after each trial, tear_down after a failure too. For GoogleTest's EXPECT_
// see testing_gtest.h.
struct Trial {
  template <class Body>
  requires std::invocable<Body&> Trial(Body trial) : body(std::move(trial)) {}
  Trial(std::function<void()> up, std::function<void()> trial, std::function<void()> down = {})
      : set_up(std::move(up)), body(std::move(trial)), tear_down(std::move(down)) {}
  std::function<void()> set_up, body, tear_down;
};
// Runs the trial up to `times` times, until min_success have passed or no longer can; then throws
// ValueError with the counts and the texts of the failures.
void repeat_with_success_at_least(int times, int min_success, const Trial& trial);
void retry(int times, const Trial& trial);   // once is enough
void repeat(int times, const Trial& trial);  // every time

// Pearson's test of counts against expected counts: false when they are so far apart that chance
// would do it with a probability below alpha. Degrees of freedom: one less than the counts.
bool chi_square_test(const std::vector<double>& observed, const std::vector<double>& expected,
                     double alpha = 0.05, std::optional<int> degrees_of_freedom = {});

}  // namespace testing

// Found by GoogleTest.
void PrintTo(const Array& a, std::ostream* os);
void PrintTo(const Variable& v, std::ostream* os);
void PrintTo(const Dims& dims, std::ostream* os);
void PrintTo(Device device, std::ostream* os);
void PrintTo(Dtype dtype, std::ostream* os);

}  // namespace catena
