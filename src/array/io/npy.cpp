#include "array/io/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

namespace catena::io {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = 6;
constexpr size_t kAlignment = 64;              // the elements start at a multiple of it
constexpr uint32_t kLongestHeader = 64 << 10;  // of 24 axes and 3 keys it has some hundred bytes

std::optional<Dtype> dtype_of_descr(std::string_view kind_and_size) {
  for (int i = 0; i < kDtypeCount; ++i)
    if (!kind_and_size.empty() && kind_and_size == kDtypeRows[i].array_code + 1)
      return static_cast<Dtype>(i);
  return {};
}

// Parses the subset of Python literals that headers use.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  NpyHeader parse() {
    NpyHeader header;
    bool have_descr = false, have_order = false, have_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !have_descr) {
        descr(header);
        have_descr = true;
      } else if (key == "fortran_order" && !have_order) {
        header.fortran = boolean();
        have_order = true;
      } else if (key == "shape" && !have_shape) {
        header.shape = tuple();
        have_shape = true;
      } else {
        bad("unexpected or repeated key '" + key + "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) bad("text after the dict");
    if (!have_descr || !have_order || !have_shape) {
      bad("the keys 'descr', 'fortran_order' and 'shape' are needed");
    }
    return header;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    // Headers are padded with blanks and end with a newline.
    const size_t end = text_.find_last_not_of(" \t\r\n");
    std::string shown(text_.substr(0, std::min<size_t>(end + 1, 200)));
    std::replace_if(
        shown.begin(), shown.end(), [](unsigned char c) { return c < 32 || c > 126; }, '?');
    fail<IoError>("reading ", name_, ": bad .npy header: ", what, " at character ", at_, " of ",
                  shown);
  }
  void skip_space() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) && text_[at_]) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad(message("expected '", std::string(1, c), "'"));
  }
  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') bad("expected a string");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) bad("a string without an end");
    std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += std::strlen(word);
        return value;
      }
    }
    bad("expected True or False");
  }
  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t extent = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) bad("expected an extent");
      at_ += static_cast<size_t>(end - begin);
      accept('L');  // written by Python 2
      if (shape.ndim() == kMaxDims) bad(message("more than ", kMaxDims, " dimensions"));
      shape.push_back(extent);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }
  void descr(NpyHeader& header) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') bad("structured dtypes are not supported");
    const std::string text = string();
    const bool marked = !text.empty() && std::strchr("<>|=", text[0]);
    const auto dtype = dtype_of_descr(std::string_view(text).substr(marked ? 1 : 0));
    if (!dtype) {
      bad("unsupported dtype '" + text + "' (expected bool, integer or floating)");
    }
    header.dtype = *dtype;
    // Raw bytes ('V2') have no byte order.
    header.swapped = marked && text[0] == '>' && text[1] != 'V' && itemsize(*dtype) > 1;
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
};

NpyHeader parse_header(Source& source) {
  unsigned char start[kMagicSize + 2];
  CATENA_CHECK(IoError, source.remaining() >= sizeof start + 2, "reading ", source.name(),
               ": expected a .npy file, found only ", source.remaining(), " bytes");
  source.read(start, sizeof start);
  CATENA_CHECK(IoError, std::memcmp(start, "PK\x03\x04", 4) != 0, "reading ", source.name(),
               ": expected a .npy file, found a zip archive such as a .npz; read it with load_npz "
               "or NpzFile");
  CATENA_CHECK(IoError, std::memcmp(start, kMagic, kMagicSize) == 0, "reading ", source.name(),
               ": expected a .npy file, but its first bytes are not \\x93NUMPY");
  const int major = start[kMagicSize];
  CATENA_CHECK(IoError, major >= 1 && major <= 3, "reading ", source.name(), ": .npy version ",
               major, ".", int{start[kMagicSize + 1]}, ", expected 1.0, 2.0 or 3.0");
  uint32_t length = 0;
  source.read(&length, major == 1 ? 2 : 4);
  CATENA_CHECK(IoError, length <= kLongestHeader && length <= source.remaining(), "reading ",
               source.name(), ": the .npy header claims ", length, " bytes, but ",
               source.remaining(), " follow");
  std::string text(length, '\0');
  source.read(text.data(), length);
  return HeaderParser(text, source.name()).parse();
}

// The product of extents times the item size, or nothing if it overflows.
std::optional<uint64_t> byte_count(const NpyHeader& header) {
  uint64_t bytes = itemsize(header.dtype);
  for (const int64_t extent : header.shape) {
    if (extent == 0) return 0;
  }
  for (const int64_t extent : header.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) return {};
  }
  if (bytes > uint64_t{INT64_MAX}) return {};
  return bytes;
}

void swap_bytes(char* data, uint64_t bytes, size_t item) {
  for (uint64_t i = 0; i < bytes; i += item) std::reverse(data + i, data + i + item);
}

// Reads the elements that the header describes; the source must be at the first of them.
Array read_elements(Source& source, NpyHeader& header) {
  const uint64_t bytes = header.bytes;
  if (header.fortran) std::reverse(header.shape.begin(), header.shape.end());
  Array result = Array::uninitialized(header.shape, header.dtype, cpu(0));
  char* data = static_cast<char*>(result.raw_data());
  if (bytes > 0) source.read(data, bytes);
  if (header.swapped) swap_bytes(data, bytes, itemsize(header.dtype));
  if (header.dtype == Dtype::kBool) {
    for (uint64_t i = 0; i < bytes; ++i) data[i] = data[i] != 0;
  }
  return header.fortran ? result.transpose() : result;
}

}  // namespace

NpyImage make_npy(const Array& a) {
  const char* const code = row_of(a.dtype()).array_code;
  CATENA_CHECK(DtypeError, *code, ".npy files have no elements of ", a.dtype(),
               "; convert the array by astype");
  const bool fortran = !a.is_contiguous() && a.is_fortran_contiguous();
  NpyImage image;
  image.data = (fortran ? a.transpose() : a).to_cpu().contiguous();
  std::string shape = "(";
  for (int i = 0; i < a.ndim(); ++i) shape += message(i > 0 ? ", " : "", a.shape()[size_t(i)]);
  shape += a.ndim() == 1 ? ",)" : ")";
  std::string text =
      message("{'descr': '", code, "', 'fortran_order': ", fortran ? "True" : "False",
              ", 'shape': ", shape, ", }");
  const size_t unpadded = kMagicSize + 4 + text.size() + 1;
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  text += '\n';
  image.header.assign(kMagic, kMagicSize);
  image.header += '\x01';
  image.header += '\0';
  image.header += static_cast<char>(text.size() & 0xff);
  image.header += static_cast<char>(text.size() >> 8);
  image.header += text;
  return image;
}

NpyHeader read_npy_header(Source& source) {
  NpyHeader header = parse_header(source);
  const auto bytes = byte_count(header);
  // Compared before any allocation, so that a small hostile file cannot ask for much memory.
  CATENA_CHECK(IoError, bytes && *bytes <= source.remaining(), "reading ", source.name(),
               ": shape ", header.shape, " of ", header.dtype, " needs ",
               bytes ? message(*bytes) : "too many", " bytes at offset ", source.position(),
               ", but ", source.remaining(), " follow");
  header.bytes = *bytes;
  return header;
}

Array read_npy(Source& source) {
  NpyHeader header = read_npy_header(source);
  return read_elements(source, header);
}

Array read_npy_exactly(Source& source) {
  NpyHeader header = read_npy_header(source);
  CATENA_CHECK(IoError, header.bytes == source.remaining(), "reading ", source.name(), ": shape ",
               header.shape, " of ", header.dtype, " needs ", header.bytes, " bytes at offset ",
               source.position(), ", but ", source.remaining(), " follow");
  return read_elements(source, header);
}

}  // namespace catena::io
