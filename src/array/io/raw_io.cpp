// tofile and fromfile: elements without a header, as bytes or as text.
#include <algorithm>

#include "array/io/file_io.h"
#include "array/number_text.h"
#include "catena/array/io.h"

namespace catena {
namespace {

constexpr std::string_view kSpace = " \t\r\n\v\f";

void write_text(io::AtomicFile& file, const Array& host, const std::string& separator,
                const std::string& format) {
  const text::NumberFormat parsed = text::parse_format("tofile", format);
  CATENA_CHECK(ValueError, parsed.conversions.size() == 1, "tofile: format '", format, "' has ",
               parsed.conversions.size(), " conversions, expected 1");
  // Python formats floats as doubles.
  const Array values = is_float(host.dtype()) ? host.astype(Dtype::kFloat64, false) : host;
  const char* element = static_cast<const char*>(values.raw_data());
  std::string text;
  for (int64_t i = 0; i < values.size(); ++i, element += values.itemsize()) {
    if (i > 0) text += separator;
    text::append_number("tofile", parsed.conversions[0], element, values.dtype(), text);
    text += parsed.after;
    if (text.size() > (1 << 20)) {
      file.write(text.data(), text.size());
      text.clear();
    }
  }
  file.write(text.data(), text.size());
}

Array read_bytes(const io::InputFile& file, const FromFileOptions& options) {
  const auto offset = static_cast<uint64_t>(options.offset), item = itemsize(options.dtype);
  const uint64_t rest = file.size() - offset;
  CATENA_CHECK(IoError, options.count >= 0 || rest % item == 0, "fromfile('", file.path(),
               "'): ", rest, " bytes at offset ", offset, " are not a whole number of ",
               options.dtype, " elements of ", item, " bytes; pass the count or the right dtype");
  const uint64_t count = options.count < 0 ? rest / item : static_cast<uint64_t>(options.count);
  CATENA_CHECK(IoError, count <= rest / item, "fromfile('", file.path(), "'): ", count,
               " elements of ", options.dtype, " need ", item, " bytes each, but ", rest,
               " bytes are left at offset ", offset);
  Array a = Array::uninitialized({static_cast<int64_t>(count)}, options.dtype, cpu(0));
  auto* data = static_cast<char*>(a.raw_data());
  if (count > 0) file.read_at(offset, data, count * item);
  if (options.dtype == Dtype::kBool) {
    for (uint64_t i = 0; i < count; ++i) data[i] = data[i] != 0;
  }
  return a;
}

class TextReader {
 public:
  TextReader(const std::string& path, const FromFileOptions& options, std::string_view text)
      : path_(path), options_(options), text_(text), at_(static_cast<size_t>(options.offset)) {
    const size_t mark = options.separator.find_first_not_of(kSpace);
    const size_t end = options.separator.find_last_not_of(kSpace);
    if (mark != std::string::npos)
      mark_ = std::string_view(options.separator).substr(mark, end - mark + 1);
  }

  Array read() {
    skip_space();
    while (at_ < text_.size() && count_ != options_.count) {
      if (count_ > 0 && !mark_.empty()) take_mark();
      take_number();
      skip_space();
    }
    CATENA_CHECK(IoError, options_.count < 0 || count_ == options_.count, "fromfile('", path_,
                 "'): the text ends after ", count_, " numbers, expected ", options_.count);
    Array a = Array::uninitialized({count_}, options_.dtype, cpu(0));
    if (count_ > 0) std::memcpy(a.raw_data(), bytes_.data(), bytes_.size());
    return a;
  }

 private:
  void skip_space() { at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size()); }
  void take_mark() {
    CATENA_CHECK(IoError, text_.substr(at_).starts_with(mark_), "fromfile('", path_,
                 "'): expected the separator '", mark_, "' at offset ", at_);
    at_ += mark_.size();
    skip_space();
  }
  void take_number() {
    size_t end = std::min(text_.find_first_of(kSpace, at_), text_.size());
    if (!mark_.empty()) end = std::min(end, text_.find(mark_, at_));
    const std::string_view word = text_.substr(at_, end - at_);
    const size_t item = itemsize(options_.dtype);
    bytes_.resize(bytes_.size() + item);
    const std::string problem =
        text::parse_number(word, options_.dtype, bytes_.data() + bytes_.size() - item);
    CATENA_CHECK(IoError, problem.empty(), "fromfile('", path_, "'): the text at offset ", at_, " ",
                 problem);
    at_ = end;
    ++count_;
  }

  const std::string& path_;
  const FromFileOptions& options_;
  std::string_view text_, mark_;
  size_t at_;
  int64_t count_ = 0;
  std::vector<char> bytes_;
};

}  // namespace

void tofile(const std::string& path, const Array& a, const std::string& separator,
            const std::string& format) {
  const Array host = a.to_cpu().contiguous();
  io::AtomicFile file(path);
  if (separator.empty())
    file.write(host.raw_data(), static_cast<size_t>(host.nbytes()));
  else
    write_text(file, host, separator, format);
  file.commit();
}

Array fromfile(const std::string& path, const FromFileOptions& options) {
  const io::InputFile file(path);
  CATENA_CHECK(ValueError, options.count >= -1, "fromfile: count is ", options.count,
               ", expected -1 (all) or more");
  CATENA_CHECK(IoError, options.offset >= 0 && static_cast<uint64_t>(options.offset) <= file.size(),
               "fromfile('", path, "'): offset ", options.offset,
               ", expected 0 to the size of the "
               "file, ",
               file.size());
  if (options.separator.empty()) return read_bytes(file, options).to(options.device);
  const std::string text = io::read_whole_file(path);
  return TextReader(path, options, text).read().to(options.device);
}

}  // namespace catena
