#include "array/number_text.h"

#include <locale.h>
#include <stdlib.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

#include "catena/core/error.h"

namespace catena::text {
namespace {

// Digits of "-d.ddde+XX".
Digits split_scientific(std::string_view text) {
  Digits result;
  const size_t e = text.find('e');
  result.exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  for (const char c : text.substr(0, e)) {
    if (c == '-') result.negative = true;
    if (c >= '0' && c <= '9') result.digits += c;
  }
  while (result.digits.size() > 1 && result.digits.back() == '0') result.digits.pop_back();
  return result;
}

template <class T>
std::string_view scientific(T value, char (&buffer)[400], int precision = -1) {
  const auto format = std::chars_format::scientific;
  const auto end =
      precision < 0 ? std::to_chars(buffer, buffer + sizeof buffer, value, format).ptr
                    : std::to_chars(buffer, buffer + sizeof buffer, value, format, precision).ptr;
  return {buffer, static_cast<size_t>(end - buffer)};
}

std::string_view narrow_digits(double value, Dtype d, char (&buffer)[400]) {
  const double stored = round_to(d, value);
  std::string_view text;
  for (int precision = 0; precision < 8; ++precision) {
    text = scientific(value, buffer, precision);
    double parsed = 0;
    std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (round_to(d, parsed) == stored) break;
  }
  return text;
}

std::string float_text(double value, Dtype d) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const Digits digits = shortest_digits(value, d);
  const int count = static_cast<int>(digits.digits.size()), e = digits.exponent;
  std::string text = digits.negative ? "-" : "";
  const double size = std::fabs(value);  // not from the digits: float32(1e-4) is below 1e-4
  if (size != 0 && (size < 1e-4 || size >= 1e16)) {
    text += digits.digits[0];
    if (count > 1) text += "." + digits.digits.substr(1);
    char exponent[16];
    std::snprintf(exponent, sizeof exponent, "e%+03d", e);
    return text + exponent;
  }
  if (e < 0) return text + "0." + std::string(static_cast<size_t>(-e - 1), '0') + digits.digits;
  const auto whole = static_cast<size_t>(e) + 1;
  if (count <= e + 1) return text + digits.digits + std::string(whole - size_t(count), '0') + ".0";
  return text + digits.digits.substr(0, whole) + "." + digits.digits.substr(whole);
}

// printf with the point of the C locale, whatever locale the process has set.
template <class T>
void append_printf(const std::string& options, const char* length, char letter, T value,
                   std::string& out) {
  static const locale_t c_locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string format = "%" + options + length + letter;
  const locale_t before = ::uselocale(c_locale);
  const int size = std::snprintf(nullptr, 0, format.c_str(), value);
  const size_t at = out.size();
  out.resize(at + static_cast<size_t>(size) + 1);
  std::snprintf(&out[at], static_cast<size_t>(size) + 1, format.c_str(), value);
  out.pop_back();
  ::uselocale(before);
}

// With the flag for zeros, Python also fills infinities and NaNs with zeros; printf uses blanks.
void append_not_finite(const Conversion& c, double value, std::string& out) {
  std::string text;
  append_printf(c.options, "", c.letter, value, text);
  const size_t flags = std::min(c.options.find_first_not_of("-+ #0"), c.options.size());
  const std::string given = c.options.substr(0, flags);
  if (given.find('0') != std::string::npos && given.find('-') == std::string::npos) {
    const size_t blanks = text.find_first_of("+-in");
    const bool blank_sign = given.find(' ') != std::string::npos && blanks > 0 &&
                            text[blanks] != '-' && text[blanks] != '+';
    const bool sign = text[blanks] == '-' || text[blanks] == '+';
    const std::string front = sign ? text.substr(blanks, 1) : blank_sign ? " " : "";
    text = front + std::string(blanks - (blank_sign ? 1 : 0), '0') + text.substr(blanks + sign);
  }
  out += text;
}

// printf has no sign flags for unsigned numbers; a long double holds all of them.
static_assert(std::numeric_limits<long double>::digits >= 64);
void append_unsigned(const Conversion& c, uint64_t value, std::string& out) {
  if (value <= uint64_t{INT64_MAX})
    append_printf(c.options, "ll", 'd', static_cast<long long>(value), out);
  else
    append_printf(c.options.substr(0, c.options.find('.')) + ".0", "L", 'f',
                  static_cast<long double>(value), out);
}

void append_integer(const char* who, const Conversion& c, double value, std::string& out) {
  CATENA_CHECK(ValueError, std::isfinite(value), who, ": %", c.options, "d of ", value,
               "; use a conversion for floats such as %g");
  const double whole = std::trunc(value);
  if (std::fabs(whole) < 0x1p63)
    append_printf(c.options, "ll", 'd', static_cast<long long>(whole), out);
  else
    append_printf(c.options.substr(0, c.options.find('.')) + ".0", "", 'f', whole, out);
}

template <class T>
std::string parse_integer(std::string_view word, Dtype d, char* element) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = end == word.data() + word.size();
  if (whole && error == std::errc::result_out_of_range)
    return message("is out of the range of ", d);
  if (!whole || error != std::errc()) {
    // A negative number is valid, but not for an unsigned type.
    int64_t negative = 0;
    const auto again = std::from_chars(word.data(), word.data() + word.size(), negative);
    if (std::is_unsigned_v<T> && again.ptr == word.data() + word.size() && word[0] == '-')
      return message("is out of the range of ", d);
    return message("is not a valid ", d);
  }
  std::memcpy(element, &value, sizeof value);
  return "";
}

std::string parse_bool(std::string_view word, char* element) {
  if (word == "True" || word == "1") {
    *element = 1;
  } else if (word == "False" || word == "0") {
    *element = 0;
  } else {
    return "is not a bool (expected True, False, 1 or 0)";
  }
  return "";
}

std::string parse_float(std::string_view word, Dtype d, char* element) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (end != word.data() + word.size()) return message("is not a valid ", d);
  if (error == std::errc::result_out_of_range) {  // rounds to infinity or zero
    static const locale_t c_locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
    value = ::strtod_l(std::string(word).c_str(), nullptr, c_locale);
  } else if (error != std::errc()) {
    return message("is not a valid ", d);
  }
  visit_float("parse_number", d, [&]<class T>(TypeTag<T>) {
    const T stored = static_cast<T>(value);
    std::memcpy(element, &stored, sizeof stored);
  });
  return "";
}

}  // namespace

Digits shortest_digits(double value, Dtype d) {
  char buffer[400];
  if (d == Dtype::kFloat64) return split_scientific(scientific(value, buffer));
  if (d == Dtype::kFloat32) return split_scientific(scientific(static_cast<float>(value), buffer));
  return split_scientific(narrow_digits(value, d, buffer));
}

double read_float(const char* element, Dtype d) {
  return visit_float("read_float", d, [&]<class T>(TypeTag<T>) {
    T value;
    std::memcpy(&value, element, sizeof value);
    return static_cast<double>(static_cast<compute_t<T>>(value));
  });
}

std::string shortest_text(const char* element, Dtype d) {
  if (d == Dtype::kBool) return *element ? "True" : "False";
  if (is_float(d)) return float_text(read_float(element, d), d);
  return visit_dtype(d, [&]<class T>(TypeTag<T>) -> std::string {
    if constexpr (std::is_integral_v<T>) {
      T value;
      std::memcpy(&value, element, sizeof value);
      return std::to_string(value);
    } else {
      return {};
    }
  });
}

NumberFormat parse_format(const char* who, const std::string& format) {
  NumberFormat result;
  std::string literal;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      literal += format[i];
      continue;
    }
    if (format.compare(i, 2, "%%") == 0) {
      literal += '%';
      ++i;
      continue;
    }
    const size_t start = i + 1, letter = format.find_first_not_of("-+ #0123456789.", start);
    const auto bad = [&](const char* why) {
      fail<ValueError>(who, ": format '", format, "': ", why,
                       "; expected conversions of numbers such as %.18e, %8.3f, %d or %s");
    };
    if (letter == std::string::npos) bad("a conversion without its letter");
    char kind = format[letter];
    if (!std::strchr("diueEfFgGs", kind) || kind == '\0')
      bad("a conversion other than d, i, u, e, E, f, F, g, G, s");
    const std::string options = format.substr(start, letter - start);
    if (options.size() > 8) bad("a width or precision that is too long");
    const size_t numbers = options.find_first_not_of("-+ #0");
    if (numbers != std::string::npos && options.find_first_of("-+ #", numbers) != std::string::npos)
      bad("a flag after the width");
    if (options.find('.') != options.rfind('.')) bad("two precisions");
    if (std::strchr("iu", kind)) kind = 'd';
    result.conversions.push_back({std::move(literal), options, kind});
    literal.clear();
    i = letter;
  }
  result.after = std::move(literal);
  return result;
}

void append_number(const char* who, const Conversion& c, const char* element, Dtype d,
                   std::string& out) {
  out += c.before;
  if (c.letter == 's') {
    append_printf(c.options, "", 's', shortest_text(element, d).c_str(), out);
    return;
  }
  if (is_float(d)) {
    const double value = read_float(element, d);
    if (c.letter == 'd')
      append_integer(who, c, value, out);
    else if (!std::isfinite(value))
      append_not_finite(c, value, out);
    else
      append_printf(c.options, "", c.letter, value, out);
    return;
  }
  visit_dtype(d, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      T value;
      std::memcpy(&value, element, sizeof value);
      if (c.letter != 'd')
        append_printf(c.options, "", c.letter, static_cast<double>(value), out);
      else if constexpr (std::is_unsigned_v<T>)
        append_unsigned(c, value, out);
      else
        append_printf(c.options, "ll", 'd', static_cast<long long>(value), out);
    }
  });
}

std::string parse_number(std::string_view word, Dtype d, char* element) {
  if (word.empty()) return "is empty";
  // from_chars does not accept a plus sign.
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  if (d == Dtype::kBool) return parse_bool(word, element);
  if (is_float(d)) return parse_float(word, d, element);
  return visit_dtype(d, [&]<class T>(TypeTag<T>) -> std::string {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      return parse_integer<T>(word, d, element);
    else
      return "is of no known dtype";
  });
}

}  // namespace catena::text
