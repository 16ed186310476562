// Exceptions of catena and the check macro that raises them.
//
// Every message says what was called, what came in, what was expected and, where there is one, what
// to do. Formatting happens out of line, so that a check costs one predictable branch.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace catena {

// Base of everything catena throws on purpose.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ShapeError : public Error {
  using Error::Error;
};  // shapes that do not fit together
class DtypeError : public Error {
  using Error::Error;
};  // element types that do not fit
class DeviceError : public Error {
  using Error::Error;
};  // missing or different devices
class IndexError : public Error {
  using Error::Error;
};  // axis or element out of range
class ValueError : public Error {
  using Error::Error;
};  // an argument outside its domain
class GradientError : public Error {
  using Error::Error;
};  // misuse of the recorded graph
// A failed type check of a function: "Expect: x.ndim == 2\nActual: 3 != 2", or `text` in its place.
// expect() and actual() are the two halves, empty where there is a text alone.
class InvalidType : public Error {
 public:
  using Error::Error;
  InvalidType(std::string expect, std::string actual)
      : InvalidType(expect, actual, "Expect: " + expect + "\nActual: " + actual) {}
  InvalidType(std::string expect, std::string actual, const std::string& text)
      : Error(text), expect_(std::move(expect)), actual_(std::move(actual)) {}
  const std::string& expect() const { return expect_; }
  const std::string& actual() const { return actual_; }

 private:
  std::string expect_, actual_;
};
class CommError : public Error {
  using Error::Error;
};  // communicator misuse, dead ranks
class IoError : public Error {
  using Error::Error;
};  // files that cannot be read or written
class OutOfMemoryError : public Error {
  using Error::Error;
};  // host or device memory exhausted

namespace detail {

// What a class that converts to a number becomes, as Axis does.
inline bool number_of(bool value) { return value; }
inline int number_of(int value) { return value; }
inline unsigned number_of(unsigned value) { return value; }
inline long number_of(long value) { return value; }
inline unsigned long number_of(unsigned long value) { return value; }
inline long long number_of(long long value) { return value; }
inline unsigned long long number_of(unsigned long long value) { return value; }
inline double number_of(double value) { return value; }

template <class T>
concept HasText = requires(const T& value) {
  { to_string(value) } -> std::convertible_to<std::string>;
};
template <class T>
concept IsLikeNumber = std::is_class_v<T> && !HasText<T> && requires(const T& value) {
  number_of(value);
};

// One piece of a message: text, a number, or anything with a to_string() found by its own
// namespace. Refers to its object, which must outlive it, and becomes text where pieces are joined:
// what names a piece compiles to two stores.
class MessagePart {
 public:
  MessagePart(const char* text) : append_(append_c_string), value_{.object = text} {}
  MessagePart(char* text)  // dlerror(): else the template below may take it
      : append_(append_c_string), value_{.object = text} {}
  MessagePart(const std::string_view& text) : append_(append_view), value_{.object = &text} {}
  MessagePart(const std::string& text) : append_(append_string), value_{.object = &text} {}
  MessagePart(bool value) : append_(append_bool), value_{.integer = value} {}
  MessagePart(int value) : MessagePart(static_cast<long long>(value)) {}
  MessagePart(unsigned value) : MessagePart(static_cast<unsigned long long>(value)) {}
  MessagePart(long value) : MessagePart(static_cast<long long>(value)) {}
  MessagePart(unsigned long value) : MessagePart(static_cast<unsigned long long>(value)) {}
  MessagePart(long long value) : append_(append_signed), value_{.integer = value} {}
  MessagePart(unsigned long long value) : append_(append_unsigned), value_{.natural = value} {}
  MessagePart(double value) : append_(append_double), value_{.real = value} {}
  template <HasText T>
  MessagePart(const T& value) : append_(append_shown<T>), value_{.object = &value} {}
  template <IsLikeNumber T>
  MessagePart(const T& value) : MessagePart(number_of(value)) {}
  MessagePart(const MessagePart&) = delete;

  void append_to(std::string& text) const { append_(text, value_); }

 private:
  union Value {
    const void* object;
    long long integer;
    unsigned long long natural;
    double real;
  };
  static void append_c_string(std::string& text, Value value);
  static void append_view(std::string& text, Value value);
  static void append_string(std::string& text, Value value);
  static void append_bool(std::string& text, Value value);
  static void append_signed(std::string& text, Value value);
  static void append_unsigned(std::string& text, Value value);
  static void append_double(std::string& text, Value value);
  template <class T>
  static void append_shown(std::string& text, Value value) {
    text += std::string(to_string(*static_cast<const T*>(value.object)));
  }

  void (*append_)(std::string&, Value);
  Value value_;
};

using MessageParts = std::initializer_list<MessagePart>;

std::string join_message(MessageParts parts);
// The text of an error: what a part quotes from a file or a process is made printable().
std::string error_text(MessageParts parts);

}  // namespace detail

// Concatenates strings, numbers, shapes, dtypes, devices, ... into one string.
template <class... Parts>
std::string message(const Parts&... parts) {
  return detail::join_message({detail::MessagePart(parts)...});
}

namespace detail {

// Errors about arguments begin with the name of the library function that the user called.
template <class E>
inline constexpr bool kNamesEntry =
    std::is_same_v<E, ShapeError> || std::is_same_v<E, DtypeError> ||
    std::is_same_v<E, DeviceError> || std::is_same_v<E, IndexError> ||
    std::is_same_v<E, ValueError>;

// "name: text" inside of an EntryScope, else the text.
std::string with_entry(std::string text);

// fail() with the parts in a list, once for each type of error however many lists there are.
template <class E>
[[noreturn, gnu::noinline, gnu::cold]] void fail_with(MessageParts parts) {
  if constexpr (kNamesEntry<E>)
    throw E(with_entry(error_text(parts)));
  else
    throw E(error_text(parts));
}
extern template void fail_with<Error>(MessageParts);
extern template void fail_with<ShapeError>(MessageParts);
extern template void fail_with<DtypeError>(MessageParts);
extern template void fail_with<DeviceError>(MessageParts);
extern template void fail_with<IndexError>(MessageParts);
extern template void fail_with<ValueError>(MessageParts);
extern template void fail_with<GradientError>(MessageParts);
extern template void fail_with<InvalidType>(MessageParts);
extern template void fail_with<CommError>(MessageParts);
extern template void fail_with<IoError>(MessageParts);
extern template void fail_with<OutOfMemoryError>(MessageParts);

}  // namespace detail

// Throws E with the concatenated parts. If E is about arguments and the thread is in an EntryScope,
// the message begins with the name of that scope, so texts below public functions do not repeat it.
template <class E, class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  detail::fail_with<E>({detail::MessagePart(parts)...});
}

}  // namespace catena

// CATENA_CHECK(ShapeError, a == b, "matmul: ", a, " against ", b); throws as fail() does.
#define CATENA_CHECK(ErrorType, condition, ...)                        \
  do {                                                                 \
    if (!(condition)) [[unlikely]] {                                   \
      ::catena::detail::fail_with<::catena::ErrorType>({__VA_ARGS__}); \
    }                                                                  \
  } while (false)
