// Initializers: the values that parameters start from. Layers take one, or an array, in their
// options; a number stands for Constant:
//
//   F::Linear l(784, 1000, {.initialW = initializers::HeNormal()});
//   F::EmbedID e(1000, 50, {.initialW = initializers::Uniform(0.1)});
//
// An initializer is called with a shape and gives an array. It can be called directly as well,
// HeNormal()({1000, 784}, "cuda:0"); without a dtype the array is float32. A function or lambda of
// the same form is an initializer, too.
//
// Random ones draw from the default generator of the device (random::seed), so that equal seeds
// give equal numbers on every device as far as RandomState says: uniform ones bit for bit, normal
// ones within rounding.
//
// Fans are those of weights (out, in, ...): fan_in = in * window, fan_out = out * window, where the
// window is the product of the axes behind the second. In a convolution with groups `in` is that of
// one group; an EmbedID has out = ids and in = size.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "catena/array/array.h"
#include "catena/array/options.h"

namespace catena::initializers {

// Gives an array of a floating dtype on the device of the options.
using Initializer = std::function<Array(const Shape& shape, const ArrayOptions& options)>;

// Numbers that reach an output, and outputs that a number reaches. ValueError for a shape of fewer
// than two axes, such as that of a bias.
struct Fans {
  double in, out;
};
// Those of a shape.
Fans fans_of(const Shape& shape);

// Equal numbers.
class Constant {
 public:
  explicit Constant(double value) : value_(value) {}
  Array operator()(const Shape& shape, const ArrayOptions& options = {}) const;

 private:
  double value_;
};
// Constant(0).
class Zero : public Constant {
 public:
  Zero() : Constant(0) {}
};
// Constant(1).
class One : public Constant {
 public:
  One() : Constant(1) {}
};

// Random numbers that a scale multiplies. ValueError unless it is finite and at least 0; DtypeError
// for dtypes that are not floating.
class Scaled {
 protected:
  Scaled(const char* name, double scale);
  Array uniform(double bound, const Shape& shape, const ArrayOptions& options) const;
  Array normal(double deviation, const Shape& shape, const ArrayOptions& options) const;
  Dtype dtype_of(const ArrayOptions& options) const;

  // For errors, and the number that multiplies.
  const char* name_;
  double scale_;
};

// Uniform on [-scale, scale).
class Uniform : Scaled {
 public:
  explicit Uniform(double scale = 0.05) : Scaled("Uniform", scale) {}
  Array operator()(const Shape& shape, const ArrayOptions& options = {}) const;
};
// Normal with mean 0 and deviation scale.
class Normal : Scaled {
 public:
  explicit Normal(double scale = 0.05) : Scaled("Normal", scale) {}
  Array operator()(const Shape& shape, const ArrayOptions& options = {}) const;
};

// Deviation scale * sqrt(1 / fan_in) (Y. LeCun, L. Bottou, G. Orr, K.-R. Mueller, Efficient
// BackProp, 1998): what Linear and Convolution2D start from unless something else is given.
class LeCunNormal : Scaled {
 public:
  explicit LeCunNormal(double scale = 1) : Scaled("LeCunNormal", scale) {}
  Array operator()(const Shape& shape, const ArrayOptions& options = {}) const;
};
// Uniform of the same deviation: on [-s, s), s = scale * sqrt(3 / fan_in).
class LeCunUniform : Scaled {
 public:
  explicit LeCunUniform(double scale = 1) : Scaled("LeCunUniform", scale) {}
  Array operator()(const Shape& shape, const ArrayOptions& options = {}) const;
};

// Deviation scale * sqrt(2 / (fan_in + fan_out)) (X. Glorot, Y. Bengio, Understanding the
// difficulty of training deep feedforward neural networks, AISTATS 2010; Xavier's in other
// libraries).
class GlorotNormal : Scaled {
 public:
  explicit GlorotNormal(double scale = 1) : Scaled("GlorotNormal", scale) {}
  Array operator()(const Shape& shape, const ArrayOptions& options = {}) const;
};
// Uniform of the same deviation: on [-s, s), s = scale * sqrt(6 / (fan_in + fan_out)).
class GlorotUniform : Scaled {
 public:
  explicit GlorotUniform(double scale = 1) : Scaled("GlorotUniform", scale) {}
  Array operator()(const Shape& shape, const ArrayOptions& options = {}) const;
};

// Deviation scale * sqrt(2 / fan_in), for layers with relu (K. He, X. Zhang, S. Ren, J. Sun,
// Delving deep into rectifiers, ICCV 2015; Kaiming's in other libraries).
class HeNormal : Scaled {
 public:
  explicit HeNormal(double scale = 1) : Scaled("HeNormal", scale) {}
  Array operator()(const Shape& shape, const ArrayOptions& options = {}) const;
};
// Uniform of the same deviation: on [-s, s), s = scale * sqrt(6 / fan_in).
class HeUniform : Scaled {
 public:
  explicit HeUniform(double scale = 1) : Scaled("HeUniform", scale) {}
  Array operator()(const Shape& shape, const ArrayOptions& options = {}) const;
};

// scale times a random matrix with orthonormal rows, of all such matrices alike (A. Saxe,
// J. McClelland, S. Ganguli, Exact solutions to the nonlinear dynamics of learning in deep linear
// neural networks, ICLR 2014). Axes behind the first are one. With more rows than columns the
// columns are orthonormal instead, where Chainer has an error. The default is Chainer's. Drawn on
// the device, made orthonormal in float64 on the host: waits for the device. ValueError for 0-d.
class Orthogonal : Scaled {
 public:
  explicit Orthogonal(double scale = 1.1) : Scaled("Orthogonal", scale) {}
  Array operator()(const Shape& shape, const ArrayOptions& options = {}) const;
};

// What an option of a layer takes: an array, an initializer, a number for all elements, or nothing,
// and the layer's own default is used.
class InitialValue {
 public:
  InitialValue() = default;
  InitialValue(std::nullopt_t) {}
  InitialValue(std::optional<Array> array) : has_array_(array.has_value()) {
    if (array) array_ = std::move(*array);
  }
  InitialValue(Array array) : array_(std::move(array)), has_array_(true) {}
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::same_as<T, bool>) InitialValue(T number)
      : initializer_(Constant(static_cast<double>(number))) {}
  // In this order: Clang 14 fails in the body of Array's operator() when it asks whether an array
  // is an initializer.
  template <class F>
  requires(!std::convertible_to<const F&, std::optional<Array>> &&
           std::is_invocable_r_v<Array, const F&, const Shape&, const ArrayOptions&>)
      InitialValue(F initializer)
      : initializer_(std::move(initializer)) {}

  // Whether there is any of them.
  explicit operator bool() const { return has_array_ || initializer_ != nullptr; }
  // The array, or null.
  const Array* array() const { return has_array_ ? &array_ : nullptr; }
  // The initializer, Constant of a number; empty where there is none.
  const Initializer& initializer() const { return initializer_; }

 private:
  Array array_;
  bool has_array_ = false;
  Initializer initializer_;
};

}  // namespace catena::initializers

namespace catena::functions {
namespace initializers = catena::initializers;
using initializers::InitialValue;
}  // namespace catena::functions
