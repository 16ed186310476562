// Key of a problem: two problems with equal keys are computed by the same plan.
//
// A problem describes itself once, to any of two keys:
//   template <class Key> void describe(Key& key) const { key << kFamily << dtype << batch; }
// PlanKey finds plans in memory in every call, PlanText names them on disk.
#pragma once

#include <bit>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "catena/core/dtype.h"
#include "catena/core/error.h"
#include "core/text_hash.h"

namespace catena {

// A word of a description, such as the name of a family. Make it constexpr: then its number costs
// nothing in a call. Not static: plug-ins would each have their own.
struct PlanWord {
  constexpr PlanWord(const char* word)
      : text(word), number(static_cast<int64_t>(text_hash(text))) {}
  std::string_view text;
  int64_t number;
};

// A description in numbers, of fixed size: made and compared in some tens of nanoseconds.
class PlanKey {
 public:
  PlanKey& operator<<(PlanWord word) { return add(word.number); }
  PlanKey& operator<<(Dtype dtype) { return add(static_cast<int64_t>(dtype)); }
  template <std::integral T>
  PlanKey& operator<<(T number) {
    return add(static_cast<int64_t>(number));
  }

  uint64_t hash() const {
    // Two chains, as one would wait for each product.
    uint64_t a = size_, b = ~uint64_t{0};
    for (size_t i = 0; i + 1 < size_; i += 2) {
      a = std::rotl((a ^ static_cast<uint64_t>(numbers_[i])) * kFactor, 29);
      b = std::rotl((b ^ static_cast<uint64_t>(numbers_[i + 1])) * kFactor, 29);
    }
    if (size_ % 2 == 1) a = (a ^ static_cast<uint64_t>(numbers_[size_ - 1])) * kFactor;
    a = (a ^ (a >> 32) ^ b) * kFactor;
    return a ^ (a >> 32);
  }
  friend bool operator==(const PlanKey& a, const PlanKey& b) {
    return a.size_ == b.size_ &&
           std::memcmp(a.numbers_, b.numbers_, a.size_ * sizeof(int64_t)) == 0;
  }

 private:
  static constexpr uint64_t kFactor = 0x9e3779b97f4a7c15u;
  static constexpr size_t kMostNumbers = 64;

  PlanKey& add(int64_t number) {
    CATENA_CHECK(ValueError, size_ < kMostNumbers, "PlanKey: more than ", kMostNumbers,
                 " numbers describe a problem");
    numbers_[size_++] = number;
    return *this;
  }

  size_t size_ = 0;
  int64_t numbers_[kMostNumbers];  // those behind size_ are not set
};

// A description in words and numbers, each with a space behind it.
class PlanText {
 public:
  PlanText& operator<<(PlanWord word) { return add(word.text); }
  PlanText& operator<<(Dtype dtype) { return add(name(dtype)); }
  template <std::integral T>
  PlanText& operator<<(T number) {
    char digits[kLongestNumber];
    const auto end = std::to_chars(digits, digits + kLongestNumber, static_cast<int64_t>(number));
    return add(std::string_view(digits, static_cast<size_t>(end.ptr - digits)));
  }
  const std::string& text() const { return text_; }

 private:
  static constexpr size_t kLongestNumber = 21;

  PlanText& add(std::string_view word) {
    text_.append(word).push_back(' ');
    return *this;
  }

  std::string text_;
};

}  // namespace catena
