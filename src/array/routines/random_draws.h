// What files of distributions share: checks of arguments and uniform numbers with open ends.
#pragma once

#include <initializer_list>
#include <optional>

#include "catena/array/math.h"
#include "catena/array/random.h"
#include "core/compute_dtype.h"

namespace catena {

// 16-bit results are rounded once, at the end.
inline Dtype working_dtype(Dtype dtype) {
  CATENA_CHECK(DtypeError, is_float(dtype), "expected a floating dtype, got ", dtype);
  return compute_dtype(dtype);
}

// Uniform numbers of (0, 1], whose logarithm is finite.
inline Array above_zero(RandomState& state, const Shape& shape, Dtype dtype) {
  return 1 - state.uniform(shape, 0, 1, dtype);
}

// Uniform numbers of (0, 1): half a step above those of [0, 1). In double, for 1 - half a step is 1
// in float32.
inline Array inside_unit(RandomState& state, const Shape& shape) {
  return (state.uniform(shape, 0, 1, Dtype::kFloat64) + 0x1p-54) * (1 - 0x1p-53);
}

// The one device of all operands that are arrays, else the one asked for or the current one.
// DeviceError when arrays are on another device than the one asked for.
Device device_of(std::initializer_list<Operand> operands, const std::optional<Device>& asked = {});

// The shape given, to which the parameters must broadcast (ShapeError), or the one they broadcast
// to.
Shape shape_of_draw(const DrawShape& given, std::initializer_list<Operand> parameters);

// What a draw of floats begins with: its device is the current one as long as this lives.
// DtypeError unless the dtype is floating, and the errors of the two above.
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
  Dtype working() const { return working_; }  // of what it is made of
  // Numbers computed for it, in any shape of as many elements.
  Array finish(const Array& numbers) const { return numbers.reshape(shape_).astype(dtype_, false); }

 private:
  Dtype dtype_, working_;
  DeviceScope scope_;
  Shape shape_;
};

// The values that a parameter may have.
struct ParameterRange {
  const char* what;  // "scales of at least 0"
  double low;
  bool or_equal;  // whether `low` itself is in it
  double high;
};
// ValueError "expected <what>" unless the extreme values of a parameter, NaN if any is, are in
// the range.
void check_extremes(const ParameterRange& range, double least, double most);

// A parameter that a standard distribution is multiplied by, added to or raised to: a number, or an
// array of the shape that it was given in, of the dtype computed in.
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
  // Waits for a GPU for an array, which is not checked while a graph is captured.
  const DrawParameter& check(const ParameterRange& range) const;

 private:
  Array array_;
  double number_ = 0;
};

// A parameter of a distribution: one number, or one for each element drawn; float64.
class RandomParameter {
 public:
  // ShapeError unless an array broadcasts to the shape. Needs the device as current one.
  RandomParameter(const Operand& value, const Shape& shape);
  RandomParameter(Array list) : value_(std::move(list)) {}

  bool single() const { return value_.ndim() == 0; }
  // The number that the caller gave as such.
  const std::optional<double>& number() const { return number_; }
  RandomParameter times(double factor) const;
  // 0-d, or 1-d with a value for each element.
  const Array& value() const { return value_; }
  // For the elements at these positions; undefined: all.
  Array at(const Array& positions) const;
  // As check_extremes; waits for a GPU unless one number was given.
  const RandomParameter& check(const ParameterRange& range) const;

 private:
  Array value_;
  std::optional<double> number_;
};

// Gamma variates with scale 1 as factor * exp(log_boost): for shape parameters below 1 the number
// itself may be too small for a double, its logarithm is not. No log_boost: all are at least 1.
struct GammaDraw {
  Array factor;     // 1-d
  Array log_boost;  // 1-d or undefined
  Array number() const { return log_boost.defined() ? factor * exp(log_boost) : factor; }
  Array logarithm() const { return log_boost.defined() ? log(factor) + log_boost : log(factor); }
};
GammaDraw draw_gamma(RandomState& state, const RandomParameter& k, int64_t count);

// Positions of `open` (undefined: of all elements) where the condition is true; waits for a GPU.
Array still_open(const Array& open, const Array& condition);
// The values of a round into the positions of `open` (undefined: all) of a 1-d result.
void store_round(const Array& result, const Array& open, const Array& values);

// Poisson numbers as doubles, 1-d, for rates of at most 1e15, of rejection and search: waits.
Array poisson_by_rejection(RandomState& state, const RandomParameter& rate, int64_t count);

}  // namespace catena
