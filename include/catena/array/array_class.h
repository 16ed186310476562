// The class Array: an n-dimensional array on a CPU device or a GPU, and views of it. Programs
// include array.h, which adds the arguments of its methods.
#pragma once

#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "catena/array/array_body.h"
#include "catena/array/axes.h"
#include "catena/array/detail/comma_subscript.h"
#include "catena/array/index.h"
#include "catena/array/memory_order.h"
#include "catena/array/out.h"
#include "catena/core/error.h"
#include "catena/core/scalar.h"
#include "catena/core/stream.h"

namespace catena {

class AnyIndex;
class Operand;
class Selected;
struct GetOptions;
struct ReduceOptions;

// A cheap handle (one pointer) to shared storage + dtype + shape + byte strides + offset + device.
//
// Copies of a handle and views share their elements, as in NumPy; a const handle does not make
// the elements const. Operations run on the current stream of the array's device and return
// without waiting for a GPU. Operations on arrays of different devices are DeviceErrors that name
// both; copy with to(device). A default-constructed Array is undefined: everything except
// defined() and assignment then throws ValueError.
//
// `x = y` makes the handle x refer to y's elements; assign() and fill() write elements. So a
// temporary, as in x(0) = y, cannot be assigned to: write x(0).assign(y).
class Array {
 public:
  Array() = default;
  explicit Array(ArrayBody* body) : body_(body) {}
  Array(const Array&) = default;
  Array(Array&&) noexcept = default;
  ~Array() = default;
  Array& operator=(const Array&) & = default;
  Array& operator=(Array&&) & noexcept = default;
  void operator=(const Array&) && = delete;  // x(0) = y would write nothing: use x(0).assign(y)
  // Uninitialised elements on `device`.
  static Array uninitialized(const Shape& shape, Dtype dtype, Device device);
  static Array uninitialized(const Shape& shape, Dtype dtype) {
    return uninitialized(shape, dtype, current_device());
  }
  // The same with the axes in another order in memory, without gaps.
  static Array uninitialized(const Shape& shape, Dtype dtype, Device device,
                             const MemoryOrder& order);
  // A view of storage: `offset` and `strides` in bytes. The range is checked.
  static Array from_storage(StoragePtr storage, int64_t offset, const Shape& shape,
                            const Strides& strides, Dtype dtype);

  // Whether the handle refers to an array; a default-constructed or moved-from handle does not.
  bool defined() const { return bool(body_); }
  explicit operator bool() const = delete;  // ambiguous: use defined(), truth(), all(), any()
  // NumPy's bool(): whether the only element is true (not 0); false for no elements. ValueError for
  // more than one. Waits for the device.
  bool truth() const;

  // Properties. None waits for the device; all throw ValueError for an undefined array. Strides are
  // in bytes; nbytes() does not count gaps. shape(axis) takes negative axes and throws
  // IndexError.
  Dtype dtype() const { return known().dtype; }
  const Shape& shape() const { return known().shape; }
  int64_t shape(Axis axis) const { return known().shape[normalize_axis("shape", axis, ndim())]; }
  const Strides& strides() const { return known().strides; }
  Device device() const { return known().device; }
  int ndim() const { return known().shape.ndim(); }
  int64_t size() const { return known().size; }
  int64_t itemsize() const { return static_cast<int64_t>(catena::itemsize(dtype())); }
  int64_t nbytes() const { return size() * itemsize(); }
  // Extent of the first axis; ShapeError for 0-d (where Python raises TypeError).
  int64_t length() const;
  bool is_contiguous() const { return known().contiguous; }
  bool is_fortran_contiguous() const;
  // The order of the axes in memory: C or Fortran order if the array is contiguous in it, else by
  // descending strides. What is made like this array (element-wise results, casts, zeros_like)
  // keeps it, as with NumPy's order 'K'.
  MemoryOrder order() const;
  // Whether the elements are side by side without gaps, whatever the order of the axes.
  bool is_dense() const;
  ArrayFlags flags() const { return {is_contiguous(), is_fortran_contiguous(), !known().is_view}; }
  // Undefined for an array that owns its storage. For a view, its whole storage as a 1-d array of
  // this dtype (a view of a view gives the owner of the memory, too).
  Array base() const;
  const StoragePtr& storage() const { return known().storage; }
  ArrayBody* body() const { return body_.get(); }
  bool same_body(const Array& other) const { return body_ == other.body_; }
  bool shares_memory_with(const Array& other) const;

  // Address of the first element in the memory of device().
  void* raw_data() const { return known().data; }
  // The same as a T*; DtypeError when T is not the dtype. Does not synchronise: for CPU arrays and
  // for passing to kernels.
  template <class T>
  T* data() const {
    CATENA_CHECK(DtypeError, dtype_of<T> == dtype(), "Array::data: the array holds ", dtype(),
                 ", asked for ", dtype_of<T>);
    return static_cast<T*>(raw_data());
  }

  // The elements of a contiguous array on a CPU device in C order. DtypeError when T (or const T)
  // is not the dtype, DeviceError for a GPU, ShapeError for a view with gaps, ValueError when the
  // array is read-only and T is not const. Other layouts: HostView in host_view.h.
  // Not for a temporary, whose elements may be freed before the span: keep the array in a variable.
  template <class T>
  std::span<T> span() const& {
    check_span(std::is_const_v<T>);
    return {data<std::remove_const_t<T>>(), static_cast<size_t>(size())};
  }
  template <class T>
  std::span<T> span() const&& = delete;
  // Whether the memory may be written: false for files mapped read-only, tensors lent for reading,
  // and broadcast views, whose elements share memory.
  bool is_writable() const { return !known().storage->read_only && !known().repeats; }

  // Views -----------------------------------------------------------------------------------
  // Basic indexing, x(1, Slice(0, none, 2), newaxis, ellipsis): always a view.
  // With an array of positions or a mask among the indices, x(rows, Slice(), mask): a copy of the
  // selected elements (see index_get in indexing.h), which the in-place operators, fill() and
  // assign() write back, x(mask) += 1; see Selected.
  template <class... I>
  auto operator()(I&&... indices) const {
    if constexpr ((std::is_constructible_v<Index, I&&> && ...))
      return at({Index(std::forward<I>(indices))...});
    else
      return select({AnyIndex(std::forward<I>(indices))...});
  }
  // Positions in braces: x({0, 2}), x({0, 2}, Slice(1)).
  template <class... I>
  Selected operator()(std::initializer_list<int64_t> positions, I&&... indices) const;
  Array operator[](int64_t index) const { return at({Index(index)}); }
  Array operator[](const Slice& slice) const { return at({Index(slice)}); }
  Array operator[](NewAxis axis) const { return at({Index(axis)}); }
  Array operator[](Ellipsis rest) const { return at({Index(rest)}); }
  Selected operator[](const Array& positions) const;  // or a mask
  Selected operator[](const std::vector<int64_t>& positions) const;
#ifdef __cpp_multidimensional_subscript
  template <class... I>
  requires(sizeof...(I) >= 2) auto operator[](I&&... indices) const {
    return (*this)(std::forward<I>(indices)...);
  }
#endif
  Array at(std::initializer_list<Index> indices) const {
    return at(std::span(indices.begin(), indices.size()));
  }
  Array at(std::span<const Index> indices) const;
  Selected select(std::initializer_list<AnyIndex> indices) const;  // index_get
  // x.set_at({rows, Slice(0, 3)}, values): assigns to the indexed elements; see index_put.
  void set_at(std::initializer_list<AnyIndex> indices, const Operand& values) const;
  // Adds to the indexed elements; repeated positions add up. See index_add.
  void add_at(std::initializer_list<AnyIndex> indices, const Operand& values) const;
  // One -1 is inferred. A view where the strides allow it, else a copy.
  Array reshape(const Shape& shape) const;
  template <std::integral... I>
  requires(sizeof...(I) > 0) Array reshape(I... extents)
  const { return reshape(Shape{static_cast<int64_t>(extents)...}); }
  // Gives this handle another shape, one -1 inferred, without copying: ShapeError where reshape
  // would copy. Other handles of the same elements keep their shape.
  void set_shape(const Shape& shape) &;
  Array ravel() const { return reshape({-1}); }
  Array flatten() const;                         // always a copy
  Array transpose(const Axes& axes = {}) const;  // empty: reversed
  Array T() const { return transpose(); }
  Array swapaxes(Axis axis1, Axis axis2) const;
  Array squeeze(const AxisList& axes = none) const;  // none: all of extent 1
  Array expand_dims(Axis axis) const;
  // The array itself when the shapes agree, else a view; read-only when elements repeat.
  Array broadcast_to(const Shape& shape) const;
  Array diagonal(int64_t offset = 0, Axis axis1 = 0, Axis axis2 = 1) const;
  // The bytes of a contiguous last axis as another dtype; ValueError where they are not aligned.
  // Bytes viewed as bool must be 0 or 1, else functions differ in what they read: not_equal(a, 0)
  // makes such an array of any bytes.
  Array view(Dtype dtype) const;
  Array view() const { return view(dtype()); }
  // The same elements in C order with neighbouring axes merged wherever the strides allow it and
  // extents of 1 dropped: the fewest dimensions that visit them.
  Array reduced_view() const;
  // The same for the memory read as another dtype; throws as view(dtype) does.
  Array reduced_view(Dtype dtype) const;

  // Copies ----------------------------------------------------------------------------------
  // On the same device, without gaps. `order` as in NumPy: 'C', 'F', 'A' (Fortran order if the
  // array is contiguous in it alone) or 'K' (that of order()); ValueError for other letters.
  Array copy(char order = 'C') const;
  // copy=false returns *this when the dtype is equal and the layout fits `order`.
  Array astype(Dtype dtype, bool copy = true, char order = 'K') const;
  Array contiguous() const { return is_contiguous() ? *this : copy(); }
  // On another device, without gaps and with the axes in the same order; *this when it is there
  // already. Ordered on both devices' current streams: when it returns, source and result may be
  // used, written or freed on their own streams.
  Array to(Device device) const;
  // Always a new array, even on the same device.
  Array copy_to(Device device) const;
  // The array itself on any CPU device, else a copy on cpu:0. To move from cpu:1 to cpu:0 use
  // to(cpu(0)).
  Array to_cpu() const { return device().is_cpu() ? *this : to(cpu(0)); }
  // On the current GPU (GPU 0 while a CPU is current), or on the given one.
  Array to_gpu() const { return to(current_gpu()); }
  Array to_gpu(int index) const { return to(cuda_device(index)); }

  // Writing ---------------------------------------------------------------------------------
  // Broadcasts, casts (any dtype, NumPy's "unsafe") and moves between devices. Overlap is handled.
  // A host number that the dtype does not hold (300 for int8, NaN for integers) is a ValueError.
  void assign(const Array& source) const;
  void assign(const Scalar& value) const;
  void fill(const Scalar& value) const;
  // Informs autograd that the bytes were changed by other means than an Array operation.
  void note_write() const { known().storage->version.fetch_add(1, std::memory_order_relaxed); }

  // Between host and device, also asynchronously -----------------------------------------------
  // A new contiguous array on cpu:0; waits for the device.
  Array get() const;
  // The same without waiting, on a stream of the array's device after the work queued on the
  // current one: read the result when the stream has done the copy (it is in pinned memory).
  Array get(const Stream& stream) const;
  Array get(const GetOptions& options) const;
  // Copies a host array of the same dtype (DtypeError) and shape (ShapeError), in any layout, into
  // this array, which must be contiguous in C or Fortran order (ValueError).
  void set(const Array& host) const;
  // The same on a stream. The array's current stream does not wait for it: order the two before
  // using the array. Keep a pinned host array unchanged until the copy is done; other memory is
  // read before the call returns.
  void set(const Array& host, const Stream& stream) const;

  // Reductions and other routines as methods; see the free functions of the same names -----------
  Array take(const Array& indices, OptionalAxis axis = none, const Out& out = {}) const;
  Array take(std::initializer_list<int64_t> indices, OptionalAxis axis = none,
             const Out& out = {}) const;
  // Over axes, x.sum(1, true), or with all options of reductions, x.sum({.axes = 1, .out = y}).
  Array sum(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Array sum(const ReduceOptions& options) const;
  Array prod(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Array prod(const ReduceOptions& options) const;
  Array mean(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Array mean(const ReduceOptions& options) const;
  Array var(const ReduceAxes& axes = none, YesNo keepdims = false, int64_t ddof = 0) const;
  Array var(const ReduceOptions& options, int64_t ddof = 0) const;
  template <AxisNumber T>
  Array var(const ReduceAxes& axes, T ddof) const {
    return this->var(axes, false, static_cast<int64_t>(ddof));
  }
  Array std(const ReduceAxes& axes = none, YesNo keepdims = false, int64_t ddof = 0) const;
  Array std(const ReduceOptions& options, int64_t ddof = 0) const;
  template <AxisNumber T>
  Array std(const ReduceAxes& axes, T ddof) const {
    return this->std(axes, false, static_cast<int64_t>(ddof));
  }
  Array max(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Array max(const ReduceOptions& options) const;
  Array min(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Array min(const ReduceOptions& options) const;
  Array ptp(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Array ptp(const ReduceOptions& options) const;
  Array all(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Array all(const ReduceOptions& options) const;
  Array any(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Array any(const ReduceOptions& options) const;
  Array argmax(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Array argmax(const ReduceOptions& options) const;
  Array argmin(const ReduceAxes& axes = none, YesNo keepdims = false) const;
  Array argmin(const ReduceOptions& options) const;
  Array clip(const Operand& low, const Operand& high, const Out& out = {}) const;
  Array trace(int64_t offset = 0, Axis axis1 = 0, Axis axis2 = 1, const Out& out = {}) const;
  Array dot(const Array& other, const Out& out = {}) const;

  // Reading ---------------------------------------------------------------------------------
  // The only element (ShapeError otherwise); waits for the device. As a C++ type: an integer type
  // truncates fractions, and a number out of its range is a ValueError.
  Scalar item() const;
  template <class T>
  T item() const {
    const Scalar value = item();
    if constexpr (std::integral<T>) check_fits("item", value, dtype_of<T>);
    return value.template to<T>();
  }
  // All elements in C order as T; waits for the device. Values are cast as astype does.
  template <class T>
  std::vector<T> to_vector() const;
  std::string to_string() const;  // NumPy's str()
  std::string repr() const;       // NumPy's repr()

 private:
  const ArrayBody& known() const {
    if (!body_) [[unlikely]]
      fail_undefined();
    return *body_;
  }
  [[noreturn, gnu::cold]] static void fail_undefined();
  void check_span(bool reading) const;

  IntrusivePtr<ArrayBody> body_;
};

template <class T>
std::vector<T> Array::to_vector() const {
  const Array host = astype(dtype_of<T>, false).to_cpu().contiguous();
  const T* first = host.data<T>();
  return std::vector<T>(first, first + host.size());
}

// a.to_string(), for messages.
inline std::string to_string(const Array& a) { return a.to_string(); }
std::ostream& operator<<(std::ostream& os, const Array& a);

}  // namespace catena
