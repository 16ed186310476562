#include "catena/functions/initializers.h"

#include <algorithm>
#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/linalg.h"
#include "catena/array/math.h"
#include "catena/array/random.h"

namespace catena::initializers {

Fans fans_of(const Shape& shape) {
  CATENA_CHECK(ValueError, shape.ndim() >= 2,
               "fans_of: expected the shape of weights, (out, in, ...), got ", shape,
               "; for a bias use Constant, Uniform or Normal");
  double window = 1;
  for (int axis = 2; axis < shape.ndim(); ++axis) window *= double(shape[axis]);
  return {double(shape[1]) * window, double(shape[0]) * window};
}

Array Constant::operator()(const Shape& shape, const ArrayOptions& options) const {
  return full(shape, value_,
              {options.dtype.value_or(Dtype::kFloat32), options.device_or_current()});
}

// Random numbers ----------------------------------------------------------------------------------

Scaled::Scaled(const char* name, double scale) : name_(name), scale_(scale) {
  CATENA_CHECK(ValueError, std::isfinite(scale) && scale >= 0, name,
               ": expected a finite scale of at least 0, got ", scale);
}

Dtype Scaled::dtype_of(const ArrayOptions& options) const {
  const Dtype dtype = options.dtype.value_or(Dtype::kFloat32);
  CATENA_CHECK(DtypeError, is_float(dtype), name_, ": expected a floating dtype, got ", dtype);
  return dtype;
}

Array Scaled::uniform(double bound, const Shape& shape, const ArrayOptions& options) const {
  return random::uniform(shape, -bound, bound, {dtype_of(options), options.device_or_current()});
}

Array Scaled::normal(double deviation, const Shape& shape, const ArrayOptions& options) const {
  return random::normal(shape, 0, deviation, {dtype_of(options), options.device_or_current()});
}

Array Uniform::operator()(const Shape& shape, const ArrayOptions& options) const {
  return uniform(scale_, shape, options);
}
Array Normal::operator()(const Shape& shape, const ArrayOptions& options) const {
  return normal(scale_, shape, options);
}

namespace {

// sqrt(variance / fan); 0 of weights without elements.
double root(double variance, double fan) { return fan > 0 ? std::sqrt(variance / fan) : 0; }

}  // namespace

Array LeCunNormal::operator()(const Shape& shape, const ArrayOptions& options) const {
  return normal(scale_ * root(1, fans_of(shape).in), shape, options);
}
Array LeCunUniform::operator()(const Shape& shape, const ArrayOptions& options) const {
  return uniform(scale_ * root(3, fans_of(shape).in), shape, options);
}
Array GlorotNormal::operator()(const Shape& shape, const ArrayOptions& options) const {
  const Fans fans = fans_of(shape);
  return normal(scale_ * root(2, fans.in + fans.out), shape, options);
}
Array GlorotUniform::operator()(const Shape& shape, const ArrayOptions& options) const {
  const Fans fans = fans_of(shape);
  return uniform(scale_ * root(6, fans.in + fans.out), shape, options);
}
Array HeNormal::operator()(const Shape& shape, const ArrayOptions& options) const {
  return normal(scale_ * root(2, fans_of(shape).in), shape, options);
}
Array HeUniform::operator()(const Shape& shape, const ArrayOptions& options) const {
  return uniform(scale_ * root(6, fans_of(shape).in), shape, options);
}

// Orthogonal --------------------------------------------------------------------------------------

namespace {

// In several sums, which need not wait for each other.
double dot(const double* a, const double* b, int64_t n) {
  constexpr int kLanes = 8;
  double lanes[kLanes] = {}, sum = 0;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k) lanes[k] += a[i + k] * b[i + k];
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const double lane : lanes) sum += lane;
  return sum;
}

// Makes the rows orthonormal, one after the other; twice, since one pass of a row leaves what
// rounding has made of it.
void orthonormalize_rows(double* rows, int64_t count, int64_t columns) {
  for (int64_t k = 0; k < count; ++k) {
    double* row = rows + k * columns;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t j = 0; j < k; ++j) {
        const double* other = rows + j * columns;
        const double share = dot(row, other, columns);
        for (int64_t i = 0; i < columns; ++i) row[i] -= share * other[i];
      }
    }
    const double norm = std::sqrt(dot(row, row, columns));
    for (int64_t i = 0; i < columns; ++i) row[i] /= norm;
  }
}

// Gram-Schmidt in blocks of rows, whose share of the rows before them is taken away by products of
// matrices. `a`: float64, contiguous, on a CPU, no more rows than columns.
void orthonormalize(const Array& a) {
  constexpr int64_t kBlock = 32;
  const int64_t rows = a.shape()[0], columns = a.shape()[1];
  for (int64_t begin = 0; begin < rows; begin += kBlock) {
    const int64_t end = std::min(rows, begin + kBlock);
    const Array block = a(Slice(begin, end)), before = a(Slice(0, begin));
    for (int pass = 0; pass < 2 && begin > 0; ++pass)
      block.assign(block - matmul(matmul(block, before.transpose()), before));
    orthonormalize_rows(block.data<double>(), end - begin, columns);
  }
}

}  // namespace

Array Orthogonal::operator()(const Shape& shape, const ArrayOptions& options) const {
  CATENA_CHECK(ValueError, shape.ndim() >= 1,
               "Orthogonal: expected a shape of at least one axis, got ", shape);
  const Dtype dtype = dtype_of(options);
  const Device device = options.device_or_current();
  const int64_t rows = shape[0], size = element_count(shape);
  const int64_t columns = rows > 0 ? size / rows : 0;
  if (size == 0) return zeros(shape, {dtype, device});
  const Shape wide{std::min(rows, columns), std::max(rows, columns)};
  const Array q = random::normal(wide, 0, 1, {Dtype::kFloat64, device}).to(cpu(0));
  const DeviceScope on_host(cpu(0));
  orthonormalize(q);
  const Array oriented = rows > columns ? q.transpose() : q;
  return (oriented * scale_).reshape(shape).astype(dtype).to(device);
}

}  // namespace catena::initializers
