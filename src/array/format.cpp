// Text of arrays as NumPy prints them: str() and repr() with its default print options (precision
// 8, threshold 1000, edge items 3, line width 75).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "catena/array/array.h"

namespace catena {
namespace {

constexpr int64_t kThreshold = 1000;
constexpr int64_t kEdgeItems = 3;
constexpr size_t kLineWidth = 75;
constexpr int kPrecision = 8;

// Positions along an axis that are shown; -1 stands for the dots.
std::vector<int64_t> shown(int64_t extent, bool summarize) {
  std::vector<int64_t> positions;
  if (!summarize || extent <= 2 * kEdgeItems) {
    for (int64_t i = 0; i < extent; ++i) positions.push_back(i);
    return positions;
  }
  for (int64_t i = 0; i < kEdgeItems; ++i) positions.push_back(i);
  positions.push_back(-1);
  for (int64_t i = extent - kEdgeItems; i < extent; ++i) positions.push_back(i);
  return positions;
}

// Elements that are shown, in order, as doubles (floats) or text (others).
template <class F>
void visit_shown(const Array& a, bool summarize, int axis, int64_t offset, F&& f) {
  if (axis == a.ndim()) return f(static_cast<const char*>(a.raw_data()) + offset);
  for (int64_t i : shown(a.shape()[axis], summarize)) {
    if (i >= 0) visit_shown(a, summarize, axis + 1, offset + i * a.strides()[axis], f);
  }
}

double read_float(const char* p, Dtype d) {
  switch (d) {
    case Dtype::kFloat16:
      return float(*reinterpret_cast<const float16*>(p));
    case Dtype::kBFloat16:
      return float(*reinterpret_cast<const bfloat16*>(p));
    case Dtype::kFloat32:
      return *reinterpret_cast<const float*>(p);
    default:
      return *reinterpret_cast<const double*>(p);
  }
}

std::string exact_text(const char* p, Dtype d) {
  if (d == Dtype::kBool) return *p ? "True" : "False";
  return visit_dtype(d, [&](auto tag) -> std::string {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>)
      return std::to_string(*reinterpret_cast<const T*>(p));
    else
      return {};
  });
}

// The shortest digits that read back as the same value of the dtype, as "d.ddde+XX" pieces.
struct Digits {
  bool negative = false;
  std::string digits;  // without the point, no trailing zeros
  int exponent = 0;    // of the first digit
};

Digits shortest_digits(double value, Dtype d) {
  char buffer[40];
  const int most = d == Dtype::kFloat64 ? 17 : d == Dtype::kFloat32 ? 9 : 6;
  auto reads_back = [&](const char* text) {
    const double parsed = std::strtod(text, nullptr);
    switch (d) {
      case Dtype::kFloat16:
        return float16(parsed).bits == float16(value).bits;
      case Dtype::kBFloat16:
        return bfloat16(parsed).bits == bfloat16(value).bits;
      case Dtype::kFloat32:
        return std::strtof(text, nullptr) == static_cast<float>(value);
      default:
        return parsed == value;
    }
  };
  for (int precision = 0; precision < most; ++precision) {
    std::snprintf(buffer, sizeof buffer, "%.*e", precision, value);
    if (reads_back(buffer)) break;
  }
  Digits result;
  const char* p = buffer;
  if (*p == '-') {
    result.negative = true;
    ++p;
  }
  for (; *p != 'e'; ++p) {
    if (*p != '.') result.digits += *p;
  }
  result.exponent = std::atoi(p + 1);
  while (result.digits.size() > 1 && result.digits.back() == '0') result.digits.pop_back();
  return result;
}

// How all floats of an array are laid out.
struct FloatFormat {
  bool exponential = false;
  int fraction = 0;  // digits behind the point
  size_t width = 0;
};

int fraction_digits(const Digits& d) {
  return std::max(0, static_cast<int>(d.digits.size()) - 1 - d.exponent);
}

std::string float_text(double value, Dtype d, const FloatFormat& format) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[400];
  if (format.exponential) {
    std::snprintf(buffer, sizeof buffer, "%#.*e", format.fraction,
                  value);  // '#' keeps the point: 1.e+10
    return buffer;
  }
  const Digits digits = shortest_digits(value, d);
  const int wanted = std::min(fraction_digits(digits), format.fraction);
  std::snprintf(buffer, sizeof buffer, "%.*f", wanted, value);
  std::string text = buffer;
  if (wanted == 0) text += '.';
  text.append(static_cast<size_t>(format.fraction - wanted),
              ' ');  // keeps the points in one column
  return text;
}

FloatFormat choose_format(const std::vector<double>& values, Dtype d) {
  FloatFormat format;
  double largest = 0, smallest = INFINITY;
  for (double v : values) {
    if (!std::isfinite(v) || v == 0) continue;
    largest = std::max(largest, std::fabs(v));
    smallest = std::min(smallest, std::fabs(v));
  }
  format.exponential = largest >= 1e8 || (smallest < 1e-4) ||
                       (largest > 0 && largest / smallest > 1000.0 && smallest < 1e-4);
  for (double v : values) {
    if (!std::isfinite(v)) continue;
    const Digits digits = shortest_digits(v, d);
    const int needed =
        format.exponential ? static_cast<int>(digits.digits.size()) - 1 : fraction_digits(digits);
    format.fraction = std::max(format.fraction, std::min(needed, kPrecision));
  }
  for (double v : values) format.width = std::max(format.width, float_text(v, d, format).size());
  return format;
}

class Printer {
 public:
  Printer(const Array& host, std::string_view separator, size_t indent)
      : a_(host), separator_(separator), indent_(indent), summarize_(host.size() > kThreshold) {
    if (is_float(a_.dtype())) {
      std::vector<double> values;
      visit_shown(a_, summarize_, 0, 0,
                  [&](const char* p) { values.push_back(read_float(p, a_.dtype())); });
      format_ = choose_format(values, a_.dtype());
      width_ = format_.width;
    } else {
      visit_shown(a_, summarize_, 0, 0, [&](const char* p) {
        width_ = std::max(width_, exact_text(p, a_.dtype()).size());
      });
    }
  }

  std::string run() const { return a_.size() == 0 ? "[]" : text(0, 0); }

 private:
  std::string element(const char* p) const {
    std::string t = is_float(a_.dtype())
                        ? float_text(read_float(p, a_.dtype()), a_.dtype(), format_)
                        : exact_text(p, a_.dtype());
    if (a_.ndim() == 0 && t.back() == '.') t += '0';
    if (a_.ndim() > 0 && t.size() < width_) t.insert(0, width_ - t.size(), ' ');
    return t;
  }

  std::string text(int axis, int64_t offset) const {
    if (axis == a_.ndim()) return element(static_cast<const char*>(a_.raw_data()) + offset);
    const bool last = axis == a_.ndim() - 1;
    const std::string pad(indent_ + size_t(axis) + 1, ' ');
    std::string result = "[", line;
    size_t line_start = indent_ + size_t(axis) + 1;
    bool first = true;
    for (int64_t i : shown(a_.shape()[axis], summarize_)) {
      const std::string item = i < 0 ? "..." : text(axis + 1, offset + i * a_.strides()[axis]);
      if (last) {
        const std::string lead = first ? "" : std::string(separator_) + " ";
        if (!first && line_start + line.size() + lead.size() + item.size() + 1 > kLineWidth) {
          result += line + std::string(separator_) + "\n" + pad;
          line = item;
        } else {
          line += lead + item;
        }
      } else {
        if (!first)
          result += std::string(separator_) + std::string(size_t(a_.ndim() - axis - 1), '\n') + pad;
        result += item;
      }
      first = false;
    }
    return result + line + "]";
  }

  const Array& a_;
  std::string_view separator_;
  size_t indent_;
  bool summarize_;
  FloatFormat format_;
  size_t width_ = 0;
};

}  // namespace

std::string Array::to_string() const {
  if (!defined()) return "<undefined array>";
  const Array host = to_cpu();
  return Printer(host, "", 0).run();
}

std::string Array::repr() const {
  if (!defined()) return "<undefined array>";
  const Array host = to_cpu();
  std::string text = "array(" + Printer(host, ",", 6).run();
  if (size() == 0 && shape() != Shape{0}) text += ", shape=" + catena::to_string(shape());
  const bool implied =
      dtype() == Dtype::kBool || dtype() == Dtype::kInt64 || dtype() == Dtype::kFloat64;
  if (!implied || size() == 0) text += std::string(", dtype=") + name(dtype());
  return text + ")";
}

std::ostream& operator<<(std::ostream& os, const Array& a) { return os << a.to_string(); }

}  // namespace catena
