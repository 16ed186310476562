// Helpers of the distributions: checks of arguments, and uniform numbers without end points.
#pragma once

#include <initializer_list>
#include <optional>

#include "catena/array/math.h"
#include "catena/array/random.h"
#include "core/compute_dtype.h"

namespace catena {

// The compute dtype of draws. 16-bit results are rounded once, at the end.
inline Dtype working_dtype(Dtype dtype) {
  CATENA_CHECK(DtypeError, is_float(dtype), "expected a floating dtype, got ", dtype);
  return compute_dtype(dtype);
}

// Uniform numbers of (0, 1], whose logarithm is finite.
inline Array above_zero(RandomState& state, const Shape& shape, Dtype dtype) {
  return 1 - state.uniform(shape, 0, 1, dtype);
}

// Uniform numbers of (0, 1): half a step above those of [0, 1). In double, because 1 minus half a
// step is 1 in float32.
inline Array inside_unit(RandomState& state, const Shape& shape) {
  return (state.uniform(shape, 0, 1, Dtype::kFloat64) + 0x1p-54) * (1 - 0x1p-53);
}

// The one device of all operands that are arrays, else the requested one or the current one. Throws
// DeviceError if arrays are on another device than the requested one.
Device device_of(std::initializer_list<Operand> operands, const std::optional<Device>& asked = {});

// The given shape, to which the parameters must broadcast (ShapeError), or else their broadcast
// shape.
Shape shape_of_draw(const DrawShape& given, std::initializer_list<Operand> parameters);

// The beginning of a draw of floats. Its device is the current one while it lives. Throws
// DtypeError unless the dtype is floating, and the errors of the two functions above.
class FloatDraw {
 public:
  FloatDraw(const DrawShape& given, std::initializer_list<Operand> parameters,
            const ArrayOptions& options)
      : dtype_(options.dtype.value_or(default_float())),
        working_(working_dtype(dtype_)),
        scope_(device_of(parameters, options.device)),
        shape_(shape_of_draw(given, parameters)) {}
  const Shape& shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }      // of the result
  Dtype working() const { return working_; }  // the dtype in which it is computed
  // Converts computed numbers to the result; they may have any shape with as many elements.
  Array finish(const Array& numbers) const { return numbers.reshape(shape_).astype(dtype_, false); }

 private:
  Dtype dtype_, working_;
  DeviceScope scope_;
  Shape shape_;
};

// The allowed values of a parameter.
struct ParameterRange {
  const char* what;  // "scales of at least 0"
  double low;
  bool or_equal;  // whether `low` itself is allowed
  double high;
};
// Throws ValueError "expected <what>" unless the extreme values of a parameter (NaN if any value
// is) are allowed.
void check_extremes(const ParameterRange& range, double least, double most);

// A parameter by which a standard distribution is multiplied, shifted or raised: a number, or an
// array with its given shape in the compute dtype.
class DrawParameter {
 public:
  DrawParameter(double number) : number_(number) {}
  DrawParameter(Array array) : array_(std::move(array)) {}
  DrawParameter(const Operand& given, Dtype dtype) {
    if (given.array() != nullptr)
      array_ = given.array()->astype(dtype, false);
    else
      number_ = given.scalar().to_double();
  }
  operator Operand() const { return array_.defined() ? Operand(array_) : Operand(number_); }
  bool is_array() const { return array_.defined(); }
  double number() const { return number_; }
  Array array(Dtype dtype) const;
  // f of the number or of the array.
  template <class F>
  DrawParameter map(const F& f) const {
    return array_.defined() ? DrawParameter(Array(f(array_))) : DrawParameter(double(f(number_)));
  }
  // Waits for a GPU if the parameter is an array. An array is not checked while a graph is
  // captured.
  const DrawParameter& check(const ParameterRange& range) const;

 private:
  Array array_;
  double number_ = 0;
};

// A parameter of a distribution: one number, or one for each element drawn; float64.
class RandomParameter {
 public:
  // Throws ShapeError unless an array broadcasts to the shape. The device must be the current one.
  RandomParameter(const Operand& value, const Shape& shape);
  RandomParameter(Array list) : value_(std::move(list)) {}

  bool single() const { return value_.ndim() == 0; }
  // The number, if the caller gave one.
  const std::optional<double>& number() const { return number_; }
  RandomParameter times(double factor) const;
  // 0-d, or 1-d with a value for each element.
  const Array& value() const { return value_; }
  // The values for the elements at these positions; undefined means all.
  Array at(const Array& positions) const;
  // Like check_extremes. Waits for a GPU unless one number was given.
  const RandomParameter& check(const ParameterRange& range) const;

 private:
  Array value_;
  std::optional<double> number_;
};

// Gamma variates with scale 1 as factor * exp(log_boost). For shape parameters below 1 the number
// itself may be too small for a double, but its logarithm is not. Without log_boost all are at
// least 1.
struct GammaDraw {
  Array factor;     // 1-d
  Array log_boost;  // 1-d or undefined
  Array number() const { return log_boost.defined() ? factor * exp(log_boost) : factor; }
  Array logarithm() const { return log_boost.defined() ? log(factor) + log_boost : log(factor); }
};
GammaDraw draw_gamma(RandomState& state, const RandomParameter& k, int64_t count);

// The positions of `open` (undefined: of all elements) where the condition is true. Waits for a
// GPU.
Array still_open(const Array& open, const Array& condition);
// Writes the values of a round to the positions of `open` (undefined: all) of a 1-d result.
void store_round(const Array& result, const Array& open, const Array& values);

// Poisson numbers as doubles, 1-d, for rates of at most 1e15, by rejection and search. Waits.
Array poisson_by_rejection(RandomState& state, const RandomParameter& rate, int64_t count);

}  // namespace catena
