// Error messages: their parts, and the function they name.
#include "catena/core/error.h"

#include <array>
#include <charconv>

#include "catena/core/entry_scope.h"

namespace catena::detail {

constinit thread_local const char* entry = nullptr;

namespace {

template <class T>
std::string number_text(T value) {
  std::array<char, 40> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), result.ptr);
}

}  // namespace

MessagePart::MessagePart(long long value) : owned_(number_text(value)), text_(owned_) {}
MessagePart::MessagePart(unsigned long long value) : owned_(number_text(value)), text_(owned_) {}
MessagePart::MessagePart(double value) : owned_(number_text(value)), text_(owned_) {}

std::string join_message(std::initializer_list<const MessagePart*> parts) {
  std::string result;
  for (const MessagePart* part : parts) result += part->text();
  return result;
}

std::string with_entry(std::string text) {
  return entry == nullptr ? std::move(text) : message(entry, ": ", text);
}

}  // namespace catena::detail
