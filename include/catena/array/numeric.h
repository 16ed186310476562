// Element-wise functions that are put together from those of math.h: rounding to decimals,
// replacing NaN, steps, greatest common divisors. None waits for a GPU. Errors name the function.
#pragma once

#include <optional>

#include "catena/array/array.h"

namespace catena {

// To the nearest multiple of 10^-decimals, ties to even, as rint(x * 10^decimals) / 10^decimals in
// the dtype (integers with negative decimals: in float64, and back). Integers with decimals >= 0
// are copied; bool gives float16.
Array round(const Array& x, int64_t decimals = 0, const Out& out = {});
Array around(const Array& x, int64_t decimals = 0, const Out& out = {});

// With numbers in place of NaN and of the infinities (absent: the largest and lowest finite number
// of the dtype). Other dtypes than floats are copied.
Array nan_to_num(const Array& x, double nan = 0, std::optional<double> posinf = {},
                 std::optional<double> neginf = {});

// Powers in float64, so that negative exponents of integers are fractions.
Array float_power(const Operand& x1, const Operand& x2);
// Towards zero, of a float dtype, as trunc.
Array fix(const Array& x, const Out& out = {});
// sin(pi x) / (pi x), 1 at 0; of a float dtype.
Array sinc(const Array& x);
// Which elements are +infinity, or -infinity: bool.
Array isposinf(const Array& x);
Array isneginf(const Array& x);

// 0 for x < 0, 1 for x > 0, `at_zero` for x == 0, NaN for NaN; of a float dtype.
Array heaviside(const Operand& x, const Operand& at_zero);

// Greatest common divisor and least common multiple of the magnitudes; 0 with 0 gives 0. Integers
// (DtypeError for floats; bool counts as int8). Takes as many steps as Euclid's algorithm; on a GPU
// as many as it may need for the dtype.
Array gcd(const Operand& x1, const Operand& x2);
Array lcm(const Operand& x1, const Operand& x2);

}  // namespace catena
