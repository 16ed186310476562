// Reference-counted pointer whose count lives in the object: one word wide, no second allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace catena {

// Base of objects held by IntrusivePtr. Derived::destroy(Derived*) is called when the count drops
// to zero, so that hot types can return to a free list instead of the heap.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) : references_(0) {}
  RefCounted& operator=(const RefCounted&) { return *this; }

  // Takes a reference.
  void retain() const noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  // True when the caller dropped the last reference and must destroy the object.
  bool drop() const noexcept {
    // A sole owner needs no atomic read-modify-write: nobody else can take a new reference.
    if (references_.load(std::memory_order_acquire) == 1) return true;
    return references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  // References that are held now; for tests and reports.
  uint32_t reference_count() const noexcept { return references_.load(std::memory_order_acquire); }

 private:
  mutable std::atomic<uint32_t> references_{0};
};

// Owns one reference of an object derived from RefCounted, or is null.
template <class T>
class IntrusivePtr {
 public:
  IntrusivePtr() = default;
  IntrusivePtr(std::nullptr_t) {}
  explicit IntrusivePtr(T* pointer) noexcept : pointer_(pointer) {
    if (pointer_) pointer_->retain();
  }
  IntrusivePtr(const IntrusivePtr& other) noexcept : IntrusivePtr(other.pointer_) {}
  IntrusivePtr(IntrusivePtr&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  IntrusivePtr& operator=(IntrusivePtr other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~IntrusivePtr() { reset(); }

  // Drops the reference and becomes null.
  void reset() noexcept {
    T* old = std::exchange(pointer_, nullptr);
    if (old && old->drop()) T::destroy(old);
  }
  // Gives up ownership without dropping the reference.
  T* release() noexcept { return std::exchange(pointer_, nullptr); }
  // Takes over a reference that release() gave up.
  static IntrusivePtr adopt(T* pointer) noexcept {
    IntrusivePtr result;
    result.pointer_ = pointer;
    return result;
  }

  // The object, or null. The pointer keeps its reference.
  T* get() const noexcept { return pointer_; }
  T* operator->() const noexcept { return pointer_; }
  T& operator*() const noexcept { return *pointer_; }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) {
    return a.pointer_ == b.pointer_;
  }

 private:
  T* pointer_ = nullptr;
};

}  // namespace catena
