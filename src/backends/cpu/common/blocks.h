// Rows of 16-bit floats in kernels that compute in float: read and written through buffers.
#pragma once

#include <memory>

#include "backends/cpu/common/loops_of.h"
#include "catena/array/array.h"

namespace catena::host {

// Elements of an array as compute type C (float or double): addresses where the dtype is C and the
// elements are adjacent, else a converted copy in a buffer.
template <class C>
class Elements {
 public:
  Elements(const Array& a, int64_t capacity)
      : base_(static_cast<char*>(a.raw_data())),
        item_(a.itemsize()),
        direct_(a.dtype() == dtype_of<C>) {
    load_ = cast_of(a.dtype(), dtype_of<C>);
    store_ = cast_of(dtype_of<C>, a.dtype());
    capacity_ = capacity;
  }

  // n elements from `first`, `step` elements apart, for reading.
  C* read(int64_t first, int64_t step, int64_t n) {
    if (direct_ && step == 1) return reinterpret_cast<C*>(base_) + first;
    load_(base_ + first * item_, step * item_, reinterpret_cast<char*>(buffer()), sizeof(C), n);
    return buffer_.get();
  }
  // Memory for n elements; commit() writes them to the array.
  C* write(int64_t first, int64_t step) {
    return direct_ && step == 1 ? reinterpret_cast<C*>(base_) + first : buffer();
  }
  void commit(int64_t first, int64_t step, int64_t n) {
    if (direct_ && step == 1) return;
    store_(reinterpret_cast<const char*>(buffer_.get()), sizeof(C), base_ + first * item_,
           step * item_, n);
  }
  C at(int64_t index) const {
    C value;
    load_(base_ + index * item_, item_, reinterpret_cast<char*>(&value), sizeof(C), 1);
    return value;
  }

 private:
  C* buffer() {
    if (!buffer_) buffer_.reset(new C[size_t(capacity_)]);
    return buffer_.get();
  }

  char* base_;
  int64_t item_;
  bool direct_;
  CastLoop load_, store_;
  int64_t capacity_;
  std::unique_ptr<C[]> buffer_;
};

// Calls f(TypeTag<C>) with the type that floats of dtype d compute in.
template <class F>
void visit_compute(Dtype d, const F& f) {
  if (d == Dtype::kFloat64)
    f(TypeTag<double>{});
  else
    f(TypeTag<float>{});
}

}  // namespace catena::host
