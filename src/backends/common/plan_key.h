// The text that names a problem: what two problems must share to be computed by the same plan.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "catena/core/error.h"

namespace catena {

// Words and numbers, each with a space behind it. Made anew in every call, so it needs no memory of
// the heap.
class PlanKey {
 public:
  PlanKey& operator<<(std::string_view word) {
    require(word.size() + 1);
    std::memcpy(text_ + size_, word.data(), word.size());
    size_ += word.size();
    text_[size_++] = ' ';
    return *this;
  }
  template <std::integral T>
  PlanKey& operator<<(T number) {
    char digits[kLongestNumber];
    const auto end = std::to_chars(digits, digits + kLongestNumber, static_cast<int64_t>(number));
    return *this << std::string_view(digits, static_cast<size_t>(end.ptr - digits));
  }
  std::string_view text() const { return {text_, size_}; }

 private:
  static constexpr size_t kLongestNumber = 21;
  void require(size_t bytes) const {
    CATENA_CHECK(ValueError, size_ + bytes <= sizeof text_, "PlanKey: more than ", sizeof text_,
                 " characters describe a problem");
  }

  char text_[768];
  size_t size_ = 0;
};

}  // namespace catena
