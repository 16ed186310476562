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

// One piece of a message: text, a number, or anything with a to_string() found by its own
// namespace.
class MessagePart {
 public:
  MessagePart(const char* text) : text_(text) {}
  MessagePart(char* text) : text_(text) {}  // dlerror(): else the template below may take it
  MessagePart(std::string_view text) : text_(text) {}
  MessagePart(const std::string& text) : text_(text) {}
  MessagePart(bool value) : owned_(value ? "true" : "false"), text_(owned_) {}
  MessagePart(int value) : MessagePart(static_cast<long long>(value)) {}
  MessagePart(unsigned value) : MessagePart(static_cast<unsigned long long>(value)) {}
  MessagePart(long value) : MessagePart(static_cast<long long>(value)) {}
  MessagePart(unsigned long value) : MessagePart(static_cast<unsigned long long>(value)) {}
  MessagePart(long long value);
  MessagePart(unsigned long long value);
  MessagePart(double value);
  template <class T>
  requires requires(const T& value) {
    { to_string(value) } -> std::convertible_to<std::string>;
  }
  MessagePart(const T& value) : owned_(to_string(value)), text_(owned_) {}
  MessagePart(const MessagePart&) = delete;

  std::string_view text() const { return text_; }

 private:
  std::string owned_;
  std::string_view text_;
};

std::string join_message(std::initializer_list<const MessagePart*> parts);

template <class... Named>
std::string join_named(const Named&... parts) {
  return join_message({&parts...});
}

}  // namespace detail

// Concatenates strings, numbers, shapes, dtypes, devices, ... into one string.
template <class... Parts>
std::string message(const Parts&... parts) {
  return detail::join_named(detail::MessagePart(parts)...);
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

}  // namespace detail

// Throws E with the concatenated parts. If E is about arguments and the thread is in an EntryScope,
// the message begins with the name of that scope, so texts below public functions do not repeat it.
template <class E, class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void fail(const Parts&... parts) {
  if constexpr (detail::kNamesEntry<E>)
    throw E(detail::with_entry(message(parts...)));
  else
    throw E(message(parts...));
}

}  // namespace catena

// CATENA_CHECK(ShapeError, a == b, "matmul: ", a, " against ", b);
#define CATENA_CHECK(ErrorType, condition, ...)         \
  do {                                                  \
    if (!(condition)) [[unlikely]] {                    \
      ::catena::fail<::catena::ErrorType>(__VA_ARGS__); \
    }                                                   \
  } while (false)
