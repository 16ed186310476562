#include "catena/array/creation.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/core/config.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/copy.h"

namespace catena {
namespace {

Device device_of(const ArrayOptions& options) {
  return options.device ? *options.device : current_device();
}
Dtype dtype_of_options(const ArrayOptions& options) {
  return options.dtype ? *options.dtype : config().default_dtype;
}
// The dtype of a number of the program, which has none itself.
Dtype dtype_of_number(const Scalar& value) {
  return value.kind() == DtypeKind::kFloat ? default_float() : value.default_dtype();
}
constexpr int64_t kSpacedNumbers = 50;  // of linspace and its kin

void check_extents(const Shape& shape) {
  for (int64_t extent : shape) {
    CATENA_CHECK(ShapeError, extent >= 0, "shape ", shape,
                 " has a negative extent; expected numbers of at least 0");
  }
}

Array filled(const Shape& shape, const Scalar& value, Dtype dtype, Device device) {
  check_extents(shape);
  Array a = Array::uninitialized(shape, dtype, device);
  if (a.size() > 0) kernels::fill(device, {a, value});
  return a;
}

Array new_like(const Array& like, const ArrayOptions& options) {
  check_defined(like);
  return Array::uninitialized(like.shape(), options.dtype.value_or(like.dtype()),
                              options.device.value_or(like.device()), like.order());
}

Array filled_like(const Array& like, const Scalar& value, const ArrayOptions& options) {
  Array a = new_like(like, options);
  a.fill(value);
  return a;
}

}  // namespace

Array empty(const Shape& shape, const ArrayOptions& options) {
  const EntryScope call("empty");
  check_extents(shape);
  return Array::uninitialized(shape, dtype_of_options(options), device_of(options));
}
Array zeros(const Shape& shape, const ArrayOptions& options) {
  const EntryScope call("zeros");
  return filled(shape, 0, dtype_of_options(options), device_of(options));
}
Array ones(const Shape& shape, const ArrayOptions& options) {
  const EntryScope call("ones");
  return filled(shape, 1, dtype_of_options(options), device_of(options));
}
Array full(const Shape& shape, const Scalar& value, const ArrayOptions& options) {
  const EntryScope call("full");
  if (options.dtype) check_fits(value, *options.dtype);
  return filled(shape, value, options.dtype ? *options.dtype : dtype_of_number(value),
                device_of(options));
}
Array empty_like(const Array& like, const ArrayOptions& options) {
  const EntryScope call("empty_like");
  return new_like(like, options);
}
Array zeros_like(const Array& like, const ArrayOptions& options) {
  const EntryScope call("zeros_like");
  return filled_like(like, 0, options);
}
Array ones_like(const Array& like, const ArrayOptions& options) {
  const EntryScope call("ones_like");
  return filled_like(like, 1, options);
}
Array full_like(const Array& like, const Scalar& value, const ArrayOptions& options) {
  const EntryScope call("full_like");
  return filled_like(like, value, options);
}

namespace {

// A whole number as sign and magnitude, which covers both int64 and uint64.
struct Whole {
  bool negative;
  uint64_t size;
};
Whole whole(const Scalar& value) {
  if (value.default_dtype() == Dtype::kUInt64) return {false, value.to<uint64_t>()};
  const int64_t number = value.to_int64();
  return {number < 0, number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number)};
}

// How many of start, start + step, ... are before stop; exact for all integers.
uint64_t steps_between(const Scalar& start, const Scalar& stop, const Scalar& step) {
  Whole a = whole(start), b = whole(stop);
  const Whole d = whole(step);
  if (d.negative) std::swap(a, b);
  // The distance from a up to b, which may be more than 64 bits when the signs differ.
  if (!a.negative && b.negative) return 0;
  if (a.negative != b.negative) {
    uint64_t distance = 0;
    CATENA_CHECK(ValueError, !__builtin_add_overflow(a.size, b.size, &distance), start, " to ",
                 stop, " are further apart than 64 bits count");
    return distance == 0 ? 0 : (distance - 1) / d.size + 1;
  }
  const uint64_t low = a.negative ? b.size : a.size, high = a.negative ? a.size : b.size;
  return high > low ? (high - low - 1) / d.size + 1 : 0;
}

}  // namespace

Array arange(const Scalar& start, const Scalar& stop, const Scalar& step,
             const ArrayOptions& options) {
  const EntryScope call("arange");
  const double s = step.to_double();
  CATENA_CHECK(ValueError, s != 0, "the step must not be zero");
  const bool floating = start.kind() == DtypeKind::kFloat || stop.kind() == DtypeKind::kFloat ||
                        step.kind() == DtypeKind::kFloat;
  int64_t count;
  if (floating) {
    const double length = std::ceil((stop.to_double() - start.to_double()) / s);
    CATENA_CHECK(ValueError, length < 0x1p62, start, " to ", stop, " by ", step,
                 " has too many elements");
    count = length > 0 ? static_cast<int64_t>(length) : 0;
  } else {
    const uint64_t steps = steps_between(start, stop, step);
    CATENA_CHECK(ValueError, steps < uint64_t{1} << 62, start, " to ", stop, " by ", step,
                 " has too many elements");
    count = static_cast<int64_t>(steps);
  }
  const bool large =
      start.default_dtype() == Dtype::kUInt64 || stop.default_dtype() == Dtype::kUInt64;
  const Dtype natural = floating ? default_float() : large ? Dtype::kUInt64 : Dtype::kInt64;
  Array a = Array::uninitialized({count}, options.dtype.value_or(natural), device_of(options));
  if (count > 0) kernels::arange(a.device(), {a, start, step});
  return a;
}

Array arange(const Scalar& stop, const ArrayOptions& options) {
  return arange(0, stop, 1, options);
}
Array arange(const Scalar& start, const Scalar& stop, const ArrayOptions& options) {
  return arange(start, stop, 1, options);
}

std::pair<Array, double> linspace_with_step(double start, double stop, std::optional<int64_t> asked,
                                            YesNo endpoint, const ArrayOptions& options) {
  const EntryScope call("linspace");
  const int64_t count = asked.value_or(kSpacedNumbers);
  CATENA_CHECK(ValueError, count >= 0, "expected a count of at least 0, got ", count);
  const Dtype dtype = options.dtype ? *options.dtype : default_float();
  const Array values = Array::uninitialized({count}, Dtype::kFloat64, cpu(0));
  auto* v = values.data<double>();
  const int64_t intervals = endpoint ? count - 1 : count;
  const double step = intervals > 0 ? (stop - start) / static_cast<double>(intervals)
                                    : std::numeric_limits<double>::quiet_NaN();
  for (int64_t i = 0; i < count; ++i) v[i] = i == 0 ? start : start + static_cast<double>(i) * step;
  if (endpoint && count > 1) v[count - 1] = stop;
  for (int64_t i = 0; is_int(dtype) && i < count; ++i) v[i] = std::floor(v[i]);
  return {values.to(device_of(options)).astype(dtype, false), step};
}

Array linspace(double start, double stop, std::optional<int64_t> count, YesNo endpoint,
               const ArrayOptions& options) {
  return linspace_with_step(start, stop, count, endpoint, options).first;
}

Array logspace(double start, double stop, std::optional<int64_t> count, YesNo endpoint,
               std::optional<double> base, const ArrayOptions& options) {
  const EntryScope call("logspace");
  const Array powers = linspace(start, stop, count, endpoint, {Dtype::kFloat64, cpu(0)});
  double* p = powers.data<double>();
  for (int64_t i = 0; i < powers.size(); ++i) p[i] = std::pow(base.value_or(10), p[i]);
  return array(powers, {options.dtype ? *options.dtype : default_float(), device_of(options)},
               false);
}

Array geomspace(double start, double stop, std::optional<int64_t> asked, YesNo endpoint,
                const ArrayOptions& options) {
  const EntryScope call("geomspace");
  CATENA_CHECK(ValueError, start * stop > 0, "expected two numbers of one sign and not 0, got ",
               start, " and ", stop);
  const double sign = start < 0 ? -1 : 1;
  const Array a = logspace(std::log10(start * sign), std::log10(stop * sign), asked, endpoint, 10,
                           {Dtype::kFloat64, cpu(0)});
  double* p = a.data<double>();
  const int64_t count = a.size();
  for (int64_t i = 0; i < count; ++i) p[i] *= sign;
  if (count > 0) p[0] = start;
  if (count > 1 && endpoint) p[count - 1] = stop;
  return array(a, {options.dtype ? *options.dtype : default_float(), device_of(options)}, false);
}

Array eye(int64_t rows, std::optional<int64_t> columns, int64_t k, const ArrayOptions& options) {
  const EntryScope call("eye");
  Array a =
      filled({rows, columns.value_or(rows)}, 0, dtype_of_options(options), device_of(options));
  a.diagonal(k).fill(1);
  return a;
}

Array identity(int64_t n, const ArrayOptions& options) {
  const EntryScope call("identity");
  return eye(n, n, 0, options);
}

Array diag(const Array& v, int64_t k) {
  const EntryScope call("diag");
  CATENA_CHECK(ShapeError, v.ndim() == 1 || v.ndim() == 2, "expected 1 or 2 axes, got ", v.shape());
  if (v.ndim() == 2) return v.diagonal(k);
  const int64_t n = v.size() + std::abs(k);
  Array a = zeros({n, n}, {v.dtype(), v.device()});
  a.diagonal(k).assign(v);
  return a;
}

Array diagflat(const Array& v, int64_t k) {
  const EntryScope call("diagflat");
  return diag(v.ravel(), k);
}

namespace {

// Whether element (i, j) is on or below the k-th diagonal, rows x columns.
Array lower_triangle(int64_t rows, int64_t columns, int64_t k, Device device) {
  k = std::clamp(k, -rows - 1, columns + 1);  // further diagonals change nothing, but overflow
  const Array i = arange(k, rows + k, 1, device), j = arange(columns, device);
  return greater_equal(i.expand_dims(1), j);
}

}  // namespace

Array tri(int64_t rows, std::optional<int64_t> columns, int64_t k, const ArrayOptions& options) {
  const EntryScope call("tri");
  check_extents({rows, columns.value_or(rows)});
  return lower_triangle(rows, columns.value_or(rows), k, device_of(options))
      .astype(dtype_of_options(options), false);
}

Array tril(const Array& a, int64_t k) {
  const EntryScope call("tril");
  CATENA_CHECK(ShapeError, a.ndim() > 0, "expected at least 1 axis, got a 0-d array");
  const int64_t columns = a.shape(-1), rows = a.ndim() > 1 ? a.shape(-2) : columns;
  return where(lower_triangle(rows, columns, k, a.device()), a, zeros({}, {a.dtype(), a.device()}));
}

Array triu(const Array& a, int64_t k) {
  const EntryScope call("triu");
  CATENA_CHECK(ShapeError, a.ndim() > 0, "expected at least 1 axis, got a 0-d array");
  const int64_t columns = a.shape(-1), rows = a.ndim() > 1 ? a.shape(-2) : columns;
  const int64_t below = std::max(k, -rows) - 1;
  return where(lower_triangle(rows, columns, below, a.device()), zeros({}, {a.dtype(), a.device()}),
               a);
}

std::vector<Array> meshgrid(std::span<const Array> axes, MeshOrder order, bool sparse) {
  const EntryScope call("meshgrid");
  const auto n = static_cast<int>(axes.size());
  Shape shape;
  std::vector<Array> views;
  auto place = [&](int k) { return order == MeshOrder::kXy && n >= 2 && k < 2 ? 1 - k : k; };
  for (int k = 0; k < n; ++k) shape.push_back(axes[size_t(place(k))].size());
  for (int k = 0; k < n; ++k) {
    const Array& axis = axes[size_t(k)];
    CATENA_CHECK(ShapeError, axis.ndim() <= 1, "expected 1-d arrays, got shape ", axis.shape(),
                 " for number ", k);
    Shape spread(size_t(n), 1);
    spread[size_t(place(k))] = axis.size();
    const Array view = axis.reshape(spread);
    views.push_back(sparse ? view : view.broadcast_to(shape).copy());
  }
  return views;
}

Array array(const Array& a, const ArrayOptions& options, YesNo copy, int ndmin) {
  const EntryScope call("array");
  check_defined(a);
  const Device device = options.device.value_or(a.device());
  Array result = a.astype(options.dtype.value_or(a.dtype()), false).to(device);
  if (copy && result.shares_memory_with(a)) result = result.copy('K');
  while (result.ndim() < ndmin) result = result.expand_dims(0);
  return result;
}

Array asarray(const Array& a, const ArrayOptions& options) {
  const EntryScope call("asarray");
  return array(a, options, false);
}
Array asanyarray(const Array& a, const ArrayOptions& options) {
  const EntryScope call("asanyarray");
  return array(a, options, false);
}

Array ascontiguousarray(const Array& a, const ArrayOptions& options) {
  const EntryScope call("ascontiguousarray");
  const Array result = array(a, options, false).contiguous();
  return result.ndim() > 0 ? result : result.reshape({1});
}

Array copy(const Array& a) {
  const EntryScope call("copy");
  return a.copy_to(current_device());
}

Array scalar_array(const Scalar& value, const ArrayOptions& options) {
  const EntryScope call("scalar_array");
  return full({}, value, options);
}

Array borrow_array(void* data, const Shape& shape, Dtype dtype, Device device,
                   std::shared_ptr<void> owner) {
  const EntryScope call("borrow_array");
  const auto item = static_cast<int64_t>(itemsize(dtype));
  const int64_t count = element_count(shape);
  const auto address = reinterpret_cast<uintptr_t>(data);
  CATENA_CHECK(ValueError, count == 0 || data, "shape ", shape, " without memory");
  CATENA_CHECK(ValueError, count == 0 || address % itemsize(dtype) == 0,
               "the memory is not aligned to the ", item, " bytes of ", dtype);
  require_device(device);
  int64_t total = 0;
  CATENA_CHECK(ShapeError, !__builtin_mul_overflow(count, item, &total), "shape ", shape, " of ",
               dtype, " has more than 2^63 bytes");
  const auto bytes = static_cast<size_t>(total);
  return Array::from_storage(borrow(device, data, bytes, std::move(owner)), 0, shape,
                             contiguous_strides(shape, item), dtype);
}

namespace {

// Calls a deleter when nothing enqueued on the device's current streams uses the memory any more.
class Adopted {
 public:
  Adopted(void* data, std::function<void(void*)> deleter)
      : data_(data), deleter_(std::move(deleter)) {}
  ~Adopted() {
    if (stream_.state()) wait_for_work();
    deleter_(data_);
  }
  Adopted(const Adopted&) = delete;
  Adopted& operator=(const Adopted&) = delete;

  void work_runs_on(const Stream& stream) { stream_ = stream; }

 private:
  void wait_for_work() const noexcept {
    try {
      stream_.synchronize();
      current_stream(stream_.device()).synchronize();
    } catch (const std::exception&) {
      // The driver is shutting down, or a graph is being captured: waiting is impossible.
    }
  }

  void* data_;
  std::function<void(void*)> deleter_;
  Stream stream_;  // the current one at the adoption; null for CPU memory
};

}  // namespace

Array adopt_array(void* data, const Shape& shape, Dtype dtype, Device device,
                  std::function<void(void*)> deleter) {
  const EntryScope call("adopt_array");
  CATENA_CHECK(ValueError, bool(deleter),
               "expected a deleter, got an empty function; borrow_array views memory "
               "that stays the caller's");
  auto owner = std::make_shared<Adopted>(data, std::move(deleter));
  require_device(device);
  if (device.is_cuda()) owner->work_runs_on(current_stream(device));
  return borrow_array(data, shape, dtype, device, std::move(owner));
}

namespace {

// `host`, to which nobody else refers, converted as the options say.
Array finish_array(const Array& host, const ArrayOptions& options) {
  return host.astype(options.dtype.value_or(host.dtype()), false).to(device_of(options));
}

// The numbers of a nested list in C order.
struct Flattened {
  Shape shape;
  std::vector<const Literal*> numbers;
};

void flatten(const Literal& literal, size_t depth, Flattened& flat) {
  const auto extent = static_cast<int64_t>(literal.items().size());
  const bool first = flat.numbers.empty() && depth == flat.shape.size();
  if (literal.is_list() && first) flat.shape.push_back(extent);
  const bool fits = literal.is_list() ? depth < flat.shape.size() && flat.shape[depth] == extent
                                      : depth == flat.shape.size();
  CATENA_CHECK(ShapeError, fits, "the lists do not have one shape: ",
               literal.is_list() ? message("one of length ", extent) : std::string("a number"),
               " at depth ", depth, " where ", flat.shape, " was expected");
  if (!literal.is_list()) return flat.numbers.push_back(&literal);
  for (const Literal& item : literal.items()) flatten(item, depth + 1, flat);
}

}  // namespace

Array array(const Literal& literal, const ArrayOptions& options) {
  const EntryScope call("array");
  Flattened flat;
  flatten(literal, 0, flat);
  Dtype dtype = flat.numbers.empty() ? config().default_dtype : flat.numbers.front()->dtype();
  for (const Literal* number : flat.numbers) dtype = promote(dtype, number->dtype());
  if (dtype == Dtype::kFloat64) dtype = default_float();
  dtype = options.dtype.value_or(dtype);
  const Array host = Array::uninitialized(flat.shape, dtype, cpu(0));
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    T* out = host.data<T>();
    for (const Literal* number : flat.numbers) {
      check_fits(number->value(), dtype);
      *out++ = number->value().template to<T>();
    }
  });
  return finish_array(host, options);
}

Array array_from_bytes(const void* data, const Shape& shape, Dtype dtype,
                       const ArrayOptions& options) {
  const EntryScope call("array");
  Array host = Array::uninitialized(shape, dtype, cpu(0));
  if (host.size() > 0) std::memcpy(host.raw_data(), data, static_cast<size_t>(host.nbytes()));
  return finish_array(host, options);
}

}  // namespace catena
