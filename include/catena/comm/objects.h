// Host objects as bytes: what the *_object calls of a communicator can carry.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <vector>

#include "catena/array/named_arrays.h"
#include "catena/core/error.h"

namespace catena::comm {

// Names, dtypes, shapes and bytes of arrays of any device; unpacked on cpu:0.
// unpack throws CommError when the bytes are not such a list.
std::string pack_named_arrays(const NamedArrays& arrays);
NamedArrays unpack_named_arrays(std::string_view bytes);

namespace detail {

template <class T>
inline constexpr bool kIsFlatVector = false;
template <class T>
inline constexpr bool kIsFlatVector<std::vector<T>> =
    std::is_trivially_copyable_v<T> && !std::is_same_v<T, bool>;

[[noreturn]] void fail_unpack(size_t got, size_t expected);
// "std::vector<double>"
std::string readable(const std::type_info& type);
// The payload of bytes that begin with the name of a type (of std::type_info) and a zero. Throws
// CommError that names both types when it is another one.
std::string strip_type(std::string&& bytes, const std::type_info& expected);

// Strings and byte buffers travel as they are, NamedArrays in their own format, values and
// vectors of trivially copyable types as memory (all ranks run the same program on one kind of
// machine).
template <class T>
std::string payload_of(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (std::is_same_v<T, NamedArrays>) {
    return pack_named_arrays(value);
  } else if constexpr (kIsFlatVector<T>) {
    return std::string(reinterpret_cast<const char*>(value.data()),
                       value.size() * sizeof(typename T::value_type));
  } else {
    static_assert(
        std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
        "an object must be a string, a trivially copyable value, a vector of such values, "
        "or NamedArrays");
    return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
  }
}

// With the type in front, so that ranks that name different types get an error.
template <class T>
std::string pack(const T& value) {
  std::string bytes = typeid(T).name();
  bytes += '\0';
  return bytes += payload_of(value);
}

template <class T>
T unpack(std::string&& packed) {
  std::string bytes = strip_type(std::move(packed), typeid(T));
  if constexpr (std::is_same_v<T, std::string>) {
    return bytes;
  } else if constexpr (std::is_same_v<T, NamedArrays>) {
    return unpack_named_arrays(bytes);
  } else if constexpr (kIsFlatVector<T>) {
    constexpr size_t kItem = sizeof(typename T::value_type);
    if (bytes.size() % kItem != 0) fail_unpack(bytes.size(), kItem);
    T result(bytes.size() / kItem);
    if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  } else {
    if (bytes.size() != sizeof(T)) fail_unpack(bytes.size(), sizeof(T));
    T result;
    std::memcpy(&result, bytes.data(), sizeof(T));
    return result;
  }
}

template <class T>
std::vector<T> unpack_all(std::vector<std::string>&& list) {
  std::vector<T> result;
  result.reserve(list.size());
  for (std::string& bytes : list) result.push_back(unpack<T>(std::move(bytes)));
  return result;
}

}  // namespace detail
}  // namespace catena::comm
