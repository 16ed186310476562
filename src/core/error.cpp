// Error messages: their parts, and the function they name.
#include "catena/core/error.h"

#include <array>
#include <charconv>

#include "catena/core/entry_scope.h"
#include "catena/core/printable.h"

namespace catena::detail {

constinit thread_local const char* entry = nullptr;

namespace {

template <class T>
void append_number(std::string& text, T value) {
  std::array<char, 40> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  text.append(buffer.data(), result.ptr);
}

}  // namespace

void MessagePart::append_c_string(std::string& text, Value value) {
  text += static_cast<const char*>(value.object);
}
void MessagePart::append_view(std::string& text, Value value) {
  text += *static_cast<const std::string_view*>(value.object);
}
void MessagePart::append_string(std::string& text, Value value) {
  text += *static_cast<const std::string*>(value.object);
}
void MessagePart::append_bool(std::string& text, Value value) {
  text += value.integer != 0 ? "true" : "false";
}
void MessagePart::append_signed(std::string& text, Value value) {
  append_number(text, value.integer);
}
void MessagePart::append_unsigned(std::string& text, Value value) {
  append_number(text, value.natural);
}
void MessagePart::append_double(std::string& text, Value value) { append_number(text, value.real); }

std::string join_message(MessageParts parts) {
  std::string result;
  for (const MessagePart& part : parts) part.append_to(result);
  return result;
}

std::string error_text(MessageParts parts) { return printable(join_message(parts)); }

std::string with_entry(std::string text) {
  return entry == nullptr ? std::move(text) : message(entry, ": ", text);
}

template void fail_with<Error>(MessageParts);
template void fail_with<ShapeError>(MessageParts);
template void fail_with<DtypeError>(MessageParts);
template void fail_with<DeviceError>(MessageParts);
template void fail_with<IndexError>(MessageParts);
template void fail_with<ValueError>(MessageParts);
template void fail_with<GradientError>(MessageParts);
template void fail_with<InvalidType>(MessageParts);
template void fail_with<CommError>(MessageParts);
template void fail_with<IoError>(MessageParts);
template void fail_with<OutOfMemoryError>(MessageParts);

}  // namespace catena::detail
