// Lines and brackets as in NumPy's array2string.
#include "catena/array/format.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <ostream>
#include <vector>

#include "array/number_text.h"
#include "catena/core/fork_mutex.h"

namespace catena {
namespace {

ForkMutex g_mutex;
PrintOptions& options_of_process() {
  static auto& options = *new PrintOptions;
  return options;
}

// The options of the innermost PrintOptionsScope of this thread.
thread_local PrintOptionsScope* t_scope = nullptr;

std::string without_end_blanks(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

void strip_zeros(std::string& text, size_t end) {
  size_t keep = end;
  while (keep > 0 && text[keep - 1] == '0') --keep;
  text.erase(keep, end - keep);
}

std::string printed(double value, int fraction, bool scientific) {
  text::Conversion conversion{"", "#." + std::to_string(fraction), scientific ? 'e' : 'f'};
  std::string out;
  text::append_number("print", conversion, reinterpret_cast<const char*>(&value), Dtype::kFloat64,
                      out);
  return out;
}

// The common format of the floats of an array, chosen as in NumPy.
class FloatFormat {
 public:
  // `values` are the elements that will be printed, of dtype d.
  FloatFormat(const std::vector<double>& values, Dtype d, const PrintOptions& options)
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
      const bool minus = std::any_of(values.begin(), values.end(),
                                     [](double v) { return std::isinf(v) && v < 0; });
      const size_t inf_size = options.infstr.size() + (options.sign != '-' || minus);
      const size_t longest = std::max(options.nanstr.size(), inf_size);
      if (longest > right_ + 1) left_ = std::max(left_, longest - right_ - 1);
    }
  }
  std::string operator()(double value) const {
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

 private:
  bool needs_exponent(const std::vector<double>& finite) const {
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
  int unique_fraction(double value, bool scientific) const {
    const text::Digits d = text::shortest_digits(value, dtype_);
    const int count = static_cast<int>(d.digits.size());
    return std::max(0, count - 1 - (scientific ? 0 : d.exponent));
  }
  std::string with_sign(std::string text) const {
    return options_.sign == '+' && text[0] != '-' ? "+" + text : text;
  }
  // The shortest text with at most `precision` digits after the point, without trailing zeros.
  std::string trimmed(double value, bool scientific) const {
    int fraction = unique_fraction(value, scientific);
    if (options_.floatmode != FloatMode::kUnique) fraction = std::min(fraction, options_.precision);
    std::string text = printed(value, fraction, scientific);
    if (fraction > 0) strip_zeros(text, std::min(text.find('e'), text.size()));
    return with_sign(text);
  }
  void fit_scientific(const std::vector<double>& finite) {
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
  void fit_positional(const std::vector<double>& finite) {
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
  std::string not_finite(double value) const {
    const std::string text = std::isnan(value) ? options_.nanstr
                             : value > 0       ? options_.infstr
                                               : "-" + options_.infstr;
    return with_sign(text);
  }

  Dtype dtype_;
  const PrintOptions& options_;
  bool scientific_ = false;
  bool equal_fraction_ = false;  // all numbers get `fraction_` digits; otherwise blanks fill up
  size_t left_ = 0, right_ = 0;  // characters before and after the point
  int fraction_ = 0, exponent_digits_ = 2;
};

class Printer {
 public:
  // `prefix` characters precede the text, `suffix` characters follow it.
  Printer(const Array& host, const PrintOptions& options, std::string separator, size_t prefix,
          size_t suffix)
      : a_(host),
        options_(options),
        separator_(std::move(separator)),
        indent_(prefix),
        width_(static_cast<size_t>(options.linewidth) -
               std::min<size_t>(suffix, size_t(options.linewidth))),
        summarize_(host.size() > options.threshold) {
    if (is_float(a_.dtype())) {
      std::vector<double> values;
      visit_shown(0, 0, [&](const char* p) { values.push_back(text::read_float(p, a_.dtype())); });
      floats_.emplace(values, a_.dtype(), options);
    } else {
      if (a_.dtype() == Dtype::kBool && a_.ndim() > 0) item_width_ = 5;
      visit_shown(0, 0, [&](const char* p) {
        item_width_ = std::max(item_width_, text::shortest_text(p, a_.dtype()).size());
      });
    }
  }

  std::string run() const {
    if (a_.size() == 0) return "[]";
    return text(0, 0, std::string(indent_ + 1, ' '), width_);
  }

 private:
  // The positions along an axis that are printed; -1 for the dots.
  std::vector<int64_t> shown(int64_t extent) const {
    std::vector<int64_t> positions;
    const int64_t edge = options_.edgeitems;
    const bool all = !summarize_ || extent <= 2 * edge;
    for (int64_t i = 0; i < (all ? extent : edge); ++i) positions.push_back(i);
    if (all) return positions;
    positions.push_back(-1);
    for (int64_t i = extent - edge; i < extent; ++i) positions.push_back(i);
    return positions;
  }

  template <class F>
  void visit_shown(int axis, int64_t offset, F&& f) const {
    if (a_.size() == 0) return;
    if (axis == a_.ndim()) return f(static_cast<const char*>(a_.raw_data()) + offset);
    for (const int64_t i : shown(a_.shape()[size_t(axis)]))
      if (i >= 0) visit_shown(axis + 1, offset + i * a_.strides()[size_t(axis)], f);
  }

  std::string element(int64_t offset) const {
    const char* p = static_cast<const char*>(a_.raw_data()) + offset;
    if (floats_) return (*floats_)(text::read_float(p, a_.dtype()));
    const std::string t = text::shortest_text(p, a_.dtype());
    return std::string(item_width_ - std::min(item_width_, t.size()), ' ') + t;
  }

  std::string item(int axis, int64_t offset, int64_t i, const std::string& indent,
                   size_t width) const {
    if (i < 0) return "...";
    return text(axis + 1, offset + i * a_.strides()[size_t(axis)], indent + ' ',
                width > 0 ? width - 1 : 0);
  }

  std::string text(int axis, int64_t offset, const std::string& indent, size_t width) const {
    if (axis == a_.ndim()) return element(offset);
    const std::vector<int64_t> positions = shown(a_.shape()[size_t(axis)]);
    const bool last_axis = axis == a_.ndim() - 1;
    const std::string lines = last_axis ? row(axis, offset, positions, indent, width)
                                        : block(axis, offset, positions, indent, width);
    return "[" + lines.substr(indent.size()) + "]";
  }

  // Elements in as many lines as they need.
  std::string row(int axis, int64_t offset, const std::vector<int64_t>& positions,
                  const std::string& indent, size_t width) const {
    const size_t reserved = std::max<size_t>(without_end_blanks(separator_).size(), 1);
    const size_t room = width > reserved ? width - reserved : 0;
    std::string done, line = indent;
    for (size_t k = 0; k < positions.size(); ++k) {
      const std::string word = item(axis, offset, positions[k], indent, width);
      if (line.size() + word.size() > room && line.size() > indent.size()) {
        done += without_end_blanks(line) + "\n";
        line = indent;
      }
      line += word;
      if (k + 1 < positions.size()) line += separator_;
    }
    return done + line;
  }

  std::string block(int axis, int64_t offset, const std::vector<int64_t>& positions,
                    const std::string& indent, size_t width) const {
    const std::string between =
        without_end_blanks(separator_) + std::string(size_t(a_.ndim() - axis - 1), '\n');
    std::string lines;
    for (size_t k = 0; k < positions.size(); ++k) {
      if (k > 0) lines += between;
      lines += indent + item(axis, offset, positions[k], indent, width);
    }
    return lines;
  }

  const Array& a_;
  const PrintOptions& options_;
  std::string separator_;
  size_t indent_, width_;
  bool summarize_;
  std::optional<FloatFormat> floats_;
  size_t item_width_ = 0;
};

void check(const PrintOptions& o) {
  CATENA_CHECK(ValueError,
               o.precision >= 0 && o.threshold >= 0 && o.edgeitems >= 1 && o.linewidth >= 0 &&
                   o.precision < 100000,
               "print options: precision ", o.precision, ", threshold ", o.threshold,
               ", edgeitems ", o.edgeitems, ", linewidth ", o.linewidth,
               "; expected at least 0 (edgeitems: 1)");
  CATENA_CHECK(ValueError, o.sign == '-' || o.sign == '+' || o.sign == ' ',
               "print options: the sign is '", std::string(1, o.sign),
               "', expected '-', '+' or ' '");
}

}  // namespace

PrintOptions get_printoptions() {
  if (t_scope) return t_scope->options_;
  const std::lock_guard lock(g_mutex);
  return options_of_process();
}

void set_printoptions(const PrintOptions& options) {
  check(options);
  if (t_scope) {
    t_scope->options_ = options;
    return;
  }
  const std::lock_guard lock(g_mutex);
  options_of_process() = options;
}

PrintOptionsScope::PrintOptionsScope(const PrintOptions& options)
    : options_(options), outer_(t_scope) {
  check(options);
  t_scope = this;
}

PrintOptionsScope::~PrintOptionsScope() { t_scope = outer_; }

std::string array_repr(const Array& a, const PrintOptions& options) {
  if (!a.defined()) return "<undefined array>";
  check(options);
  constexpr std::string_view kPrefix = "array(";
  const Dtype d = a.dtype();
  const bool implied =
      a.size() > 0 && (d == Dtype::kBool || d == Dtype::kInt64 || d == Dtype::kFloat64);
  std::string text(kPrefix);
  if (a.size() > 0 || a.shape() == Shape{0}) {
    const Array host = a.to_cpu();
    text += Printer(host, options, ", ", kPrefix.size(), 1).run();
  } else {
    text += "[], shape=" + catena::to_string(a.shape());
  }
  if (implied) return text + ")";
  text += ",";
  const std::string tail = std::string("dtype=") + name(d) + ")";
  const size_t last_line = text.size() - (text.rfind('\n') + 1);
  const bool wraps = last_line + tail.size() + 1 > static_cast<size_t>(options.linewidth);
  return text + (wraps ? "\n" + std::string(kPrefix.size(), ' ') : " ") + tail;
}

std::string array_str(const Array& a, const PrintOptions& options) {
  if (!a.defined()) return "<undefined array>";
  check(options);
  const Array host = a.to_cpu();
  if (a.ndim() == 0)
    return text::shortest_text(static_cast<const char*>(host.raw_data()), a.dtype());
  return Printer(host, options, " ", 0, 0).run();
}

std::string Array::to_string() const { return array_str(*this); }
std::string Array::repr() const { return array_repr(*this); }

std::ostream& operator<<(std::ostream& os, const Array& a) { return os << a.to_string(); }

}  // namespace catena
