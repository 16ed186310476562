#include "catena/array/text.h"

#include <algorithm>

#include "array/io/file_io.h"
#include "array/number_text.h"

namespace catena {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // of UTF-8; some editors write it

// A header or footer: each line after the comment character.
std::string commented(const std::string& text, const SaveTextOptions& options) {
  if (text.empty()) return "";
  std::string result = options.comments;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += options.comments;
  }
  return result + options.newline;
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Splits a line into words. With a delimiter empty words are kept.
void split(std::string_view line, const std::string& delimiter,
           std::vector<std::string_view>& words) {
  words.clear();
  if (delimiter.empty()) {
    for (size_t at = 0; (at = line.find_first_not_of(kBlanks, at)) != std::string_view::npos;) {
      const size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
      words.push_back(line.substr(at, end - at));
      at = end;
    }
    return;
  }
  for (;;) {
    const size_t end = line.find(delimiter);
    words.push_back(trimmed(line.substr(0, end)));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + delimiter.size());
  }
}

// The next line of a text without its end ("\n", "\r\n" or "\r").
std::string_view take_line(std::string_view& rest) {
  const size_t end = rest.find_first_of("\r\n");
  const std::string_view line = rest.substr(0, end);
  if (end == std::string_view::npos) {
    rest = {};
  } else {
    const bool pair = rest.substr(end).starts_with("\r\n");
    rest.remove_prefix(end + (pair ? 2 : 1));
  }
  return line;
}

class TableReader {
 public:
  TableReader(const std::string& path, const LoadTextOptions& options)
      : path_(path), options_(options), dtype_(options.dtype.value_or(default_float())) {}

  Array read(std::string_view rest) {
    if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
    for (line_ = 1; !rest.empty() && rows_ != options_.max_rows; ++line_) {
      std::string_view line = take_line(rest);
      if (line_ <= options_.skiprows) continue;
      if (!options_.comments.empty()) line = line.substr(0, line.find(options_.comments));
      if (trimmed(line).empty()) continue;
      split(line, options_.delimiter, words_);
      if (rows_ == 0) choose_columns();
      add_row();
    }
    return result();
  }

 private:
  void choose_columns() {
    first_line_ = line_;
    columns_ = static_cast<int64_t>(words_.size());
    if (options_.usecols.empty()) {
      for (int64_t i = 0; i < columns_; ++i) kept_.push_back(static_cast<size_t>(i));
      return;
    }
    for (const int64_t column : options_.usecols) {
      CATENA_CHECK(IndexError, column >= -columns_ && column < columns_, "loadtxt('", path_,
                   "'): usecols names column ", column, ", but line ", line_, " has ", columns_);
      kept_.push_back(static_cast<size_t>(column < 0 ? column + columns_ : column));
    }
  }

  void add_row() {
    CATENA_CHECK(IoError, static_cast<int64_t>(words_.size()) == columns_, "loadtxt('", path_,
                 "'): line ", line_, " has ", words_.size(), " columns, expected ", columns_,
                 " as line ", first_line_);
    const size_t item = itemsize(dtype_);
    size_t at = bytes_.size();
    bytes_.resize(at + item * kept_.size());
    for (const size_t column : kept_) {
      const std::string problem = text::parse_number(words_[column], dtype_, bytes_.data() + at);
      CATENA_CHECK(IoError, problem.empty(), "loadtxt('", path_, "'): line ", line_, ", column ",
                   column + 1, ": '", shown(words_[column]), "' ", problem);
      at += item;
    }
    ++rows_;
  }

  static std::string shown(std::string_view word) {
    std::string text(word.substr(0, 40));
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < 32 || c > 126; }, '?');
    return text;
  }

  Array result() const {
    if (rows_ == 0) {
      const Shape none = options_.ndmin == 2 ? Shape{0, 1} : Shape{0};
      return Array::uninitialized(none, dtype_, options_.device);
    }
    Array table = Array::uninitialized({rows_, static_cast<int64_t>(kept_.size())}, dtype_, cpu(0));
    std::memcpy(table.raw_data(), bytes_.data(), bytes_.size());
    if (table.ndim() > options_.ndmin) table = squeezed(table);
    return (options_.unpack ? table.T() : table).to(options_.device);
  }

  Array squeezed(const Array& table) const {
    Shape shape;
    for (const int64_t extent : table.shape())
      if (extent != 1) shape.push_back(extent);
    while (shape.ndim() < options_.ndmin) shape.push_back(1);
    return table.reshape(shape);
  }

  const std::string& path_;
  const LoadTextOptions& options_;
  const Dtype dtype_;
  int64_t line_ = 0, first_line_ = 0, rows_ = 0, columns_ = 0;
  std::vector<std::string_view> words_;
  std::vector<size_t> kept_;
  std::vector<char> bytes_;
};

}  // namespace

void savetxt(const std::string& path, const Array& a, const SaveTextOptions& options) {
  CATENA_CHECK(ShapeError, a.ndim() == 1 || a.ndim() == 2, "savetxt('", path,
               "'): expected 1 or 2 axes, got shape ", a.shape(), "; reshape it");
  const text::NumberFormat format = text::parse_format("savetxt", options.format);
  const Array host = (a.ndim() == 1 ? a.expand_dims(1) : a).to_cpu();
  const int64_t rows = host.shape()[0], columns = host.shape()[1];
  const auto count = static_cast<int64_t>(format.conversions.size());
  CATENA_CHECK(ValueError, count == 1 || (count == columns && count > 0), "savetxt('", path,
               "'): format '", options.format, "' has ", count, " conversions, expected 1 or ",
               columns, ", one for each column");
  io::AtomicFile file(path);
  std::string text = commented(options.header, options);
  const auto flush = [&] {
    file.write(text.data(), text.size());
    text.clear();
  };
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      if (count == 1 && j > 0) text += format.after + options.delimiter;
      const char* element =
          static_cast<const char*>(host.raw_data()) + i * host.strides()[0] + j * host.strides()[1];
      text::append_number("savetxt", format.conversions[count == 1 ? 0 : size_t(j)], element,
                          host.dtype(), text);
    }
    text += (columns > 0 ? format.after : std::string()) + options.newline;
    if (text.size() > (1 << 20)) flush();
  }
  text += commented(options.footer, options);
  flush();
  file.commit();
}

Array loadtxt(const std::string& path, const LoadTextOptions& options) {
  CATENA_CHECK(ValueError, options.ndmin >= 0 && options.ndmin <= 2, "loadtxt: ndmin is ",
               options.ndmin, ", expected 0, 1 or 2");
  CATENA_CHECK(ValueError, options.delimiter.find_first_of("\r\n") == std::string::npos,
               "loadtxt: the delimiter holds a line end");
  return TableReader(path, options).read(io::read_whole_file(path));
}

}  // namespace catena
