#include "array/float_format.h"

#include <algorithm>
#include <cmath>

#include "array/number_text.h"

namespace catena {
namespace {

void strip_zeros(std::string& text, size_t end) {
  size_t keep = end;
  while (keep > 0 && text[keep - 1] == '0') --keep;
  text.erase(keep, end - keep);
}

}  // namespace

FloatFormat::FloatFormat(const std::vector<double>& values, Dtype d, const PrintOptions& options)
    : dtype_(d), options_(options) {
  std::vector<double> finite;
  for (const double v : values)
    if (std::isfinite(v)) finite.push_back(v);
  if (!finite.empty()) {
    scientific_ = needs_exponent(finite);
    scientific_ ? fit_scientific(finite) : fit_positional(finite);
    const bool negative =
        std::any_of(finite.begin(), finite.end(), [](double v) { return std::signbit(v); });
    if (options.sign == ' ' && !negative) ++left_;
  }
  if (finite.size() < values.size()) {
    const bool minus =
        std::any_of(values.begin(), values.end(), [](double v) { return std::isinf(v) && v < 0; });
    const size_t inf_size = options.infstr.size() + (options.sign != '-' || minus);
    const size_t longest = std::max(options.nanstr.size(), inf_size);
    if (longest > right_ + 1) left_ = std::max(left_, longest - right_ - 1);
  }
}

bool FloatFormat::needs_exponent(const std::vector<double>& finite) const {
  double largest = 0, smallest = INFINITY;
  for (const double v : finite) {
    if (v == 0) continue;
    largest = std::max(largest, std::fabs(v));
    smallest = std::min(smallest, std::fabs(v));
  }
  if (largest == 0) return false;
  if (largest >= round_to(dtype_, 1e8)) return true;
  return !options_.suppress &&
         (smallest < round_to(dtype_, 1e-4) || round_to(dtype_, largest / smallest) > 1000);
}

// The digits after the point of the shortest text that reads back.
int FloatFormat::unique_fraction(double value, bool scientific) const {
  const text::Digits d = text::shortest_digits(value, dtype_);
  const int count = static_cast<int>(d.digits.size());
  return std::max(0, count - 1 - (scientific ? 0 : d.exponent));
}

std::string FloatFormat::with_sign(std::string text) const {
  return options_.sign == '+' && text[0] != '-' ? "+" + text : text;
}

static std::string printed(double value, int fraction, bool scientific) {
  text::Conversion conversion{"", "#." + std::to_string(fraction), scientific ? 'e' : 'f'};
  std::string out;
  text::append_number("print", conversion, reinterpret_cast<const char*>(&value), Dtype::kFloat64,
                      out);
  return out;
}

// The shortest text with at most `precision` digits after the point, without trailing zeros.
std::string FloatFormat::trimmed(double value, bool scientific) const {
  int fraction = unique_fraction(value, scientific);
  if (options_.floatmode != FloatMode::kUnique) fraction = std::min(fraction, options_.precision);
  std::string text = printed(value, fraction, scientific);
  if (fraction > 0) strip_zeros(text, std::min(text.find('e'), text.size()));
  return with_sign(text);
}

void FloatFormat::fit_scientific(const std::vector<double>& finite) {
  for (const double v : finite) {
    const std::string text = trimmed(v, true);
    const size_t point = text.find('.'), e = text.find('e');
    left_ = std::max(left_, point);
    fraction_ = std::max(fraction_, static_cast<int>(e - point - 1));
    exponent_digits_ = std::max(exponent_digits_, static_cast<int>(text.size() - e - 2));
  }
  if (options_.floatmode == FloatMode::kFixed) fraction_ = options_.precision;
  equal_fraction_ = true;
  right_ = static_cast<size_t>(exponent_digits_ + 2 + fraction_);
}

void FloatFormat::fit_positional(const std::vector<double>& finite) {
  const bool fixed = options_.floatmode == FloatMode::kFixed;
  for (const double v : finite) {
    const std::string text =
        fixed ? with_sign(printed(v, options_.precision, false)) : trimmed(v, false);
    const size_t point = text.find('.');
    left_ = std::max(left_, point);
    right_ = std::max(right_, text.size() - point - 1);
  }
  fraction_ = static_cast<int>(right_);
  equal_fraction_ = fixed || options_.floatmode == FloatMode::kMaxprecEqual;
}

std::string FloatFormat::not_finite(double value) const {
  const std::string text = std::isnan(value) ? options_.nanstr
                           : value > 0       ? options_.infstr
                                             : "-" + options_.infstr;
  return with_sign(text);
}

std::string FloatFormat::operator()(double value) const {
  const size_t width = left_ + right_ + 1;
  if (!std::isfinite(value)) {
    const std::string text = not_finite(value);
    return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
  }
  std::string text =
      equal_fraction_ ? with_sign(printed(value, fraction_, scientific_)) : trimmed(value, false);
  if (scientific_) {
    const size_t digits = text.find('e') + 2;
    const size_t missing = static_cast<size_t>(exponent_digits_) - (text.size() - digits);
    text.insert(digits, missing, '0');
  }
  const size_t point = text.find('.');
  if (point < left_) text.insert(0, left_ - point, ' ');
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

}  // namespace catena
