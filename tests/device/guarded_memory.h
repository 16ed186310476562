// Memory of kernels that run on the host.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

namespace catena::testing {

// Numbers (n, c, area), with channels first or last in memory, that begin `offset` elements behind
// a multiple of 16 bytes, with bytes around them that no kernel may touch.
template <class T>
class GuardedMemory {
 public:
  GuardedMemory(int64_t images, int64_t channels, int64_t area, bool last, int offset)
      : channels_(channels),
        area_(area),
        size_(images * channels * area),
        last_(last),
        bytes_(new char[size_t(size_) * sizeof(T) + 96]) {
    std::memset(bytes_.get(), 0x55, size_t(size_) * sizeof(T) + 96);
    const auto address = reinterpret_cast<uintptr_t>(bytes_.get());
    begin_ = bytes_.get() + 16 + (16 - address % 16) % 16 + size_t(offset) * sizeof(T);
  }
  T* data() const { return reinterpret_cast<T*>(begin_); }
  int64_t size() const { return size_; }
  // Of number i of (n, c, area).
  T& operator[](int64_t i) const {
    const int64_t a = i % area_, channel = i / area_ % channels_, n = i / area_ / channels_;
    return data()[last_ ? (n * area_ + a) * channels_ + channel : i];
  }
  bool is_intact() const {
    for (int i = 1; i <= 16; ++i)
      if (begin_[-i] != 0x55 || begin_[size_ * int64_t(sizeof(T)) + i - 1] != 0x55) return false;
    return true;
  }

 private:
  int64_t channels_, area_, size_;
  bool last_;
  std::unique_ptr<char[]> bytes_;
  char* begin_;
};

}  // namespace catena::testing
