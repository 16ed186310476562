#include "array/called_as.h"

#include <cctype>
#include <string>
#include <typeinfo>

namespace catena {
namespace {

// "inner: text" as "who: text"; a text without a name gets one.
std::string renamed(const std::string& text, const char* who) {
  size_t end = 0;
  const auto in_name = [&](size_t k) {
    return std::isalnum(static_cast<unsigned char>(text[k])) != 0 || text[k] == '_' ||
           (text[k] == ':' && k + 1 < text.size() && text[k + 1] != ' ');
  };
  while (end < text.size() && in_name(end)) ++end;
  const bool named = end > 0 && text.compare(end, 2, ": ") == 0;
  return std::string(who) + ": " + text.substr(named ? end + 2 : 0);
}

template <class E>
void throw_if(const Error& error, const char* who) {
  if (typeid(error) == typeid(E)) throw E(renamed(error.what(), who));
}

}  // namespace

void rethrow_as(const char* who) {
  try {
    throw;
  } catch (const Error& error) {
    throw_if<ShapeError>(error, who);
    throw_if<DtypeError>(error, who);
    throw_if<DeviceError>(error, who);
    throw_if<IndexError>(error, who);
    throw_if<ValueError>(error, who);
    throw;
  }
}

}  // namespace catena
