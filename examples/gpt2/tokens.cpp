#include "tokens.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/manipulation.h"
#include "catena/array/reduction.h"

namespace gpt2 {
namespace {

namespace fs = std::filesystem;
using catena::Array;
using catena::dtype::uint16;
using catena::dtype::uint8;
static_assert(std::endian::native == std::endian::little, "token files are used as they are");

// The bytes of a file that has some.
int64_t size_of(const std::string& file) {
  CATENA_CHECK(IoError, fs::exists(file), "there is no '", file, "'");
  CATENA_CHECK(IoError, fs::is_regular_file(file), "'", file, "' is not a file");
  const auto bytes = static_cast<int64_t>(fs::file_size(file));
  CATENA_CHECK(IoError, bytes > 0, "'", file, "' is empty");
  return bytes;
}

// Pages that are read when they are used, until the last owner goes. Writes would stay in memory.
std::shared_ptr<void> map_file(const std::string& file, size_t bytes) {
  const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  CATENA_CHECK(IoError, opened >= 0, "'", file, "' cannot be read: ", std::strerror(errno));
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, opened, 0);
  const int error = errno;
  ::close(opened);
  CATENA_CHECK(IoError, at != MAP_FAILED, "'", file, "' cannot be mapped: ", std::strerror(error));
  return {at, [bytes](void* pages) { ::munmap(pages, bytes); }};
}

int64_t windows_in(const Array& tokens, int64_t length, const std::string& what, int64_t most) {
  const int64_t windows = (tokens.size() - 1) / length;
  CATENA_CHECK(ValueError, windows > 0, what, " has ", tokens.size(),
               " tokens, too few for a window of ", length,
               " and the token behind it; give a longer text, or a smaller --context");
  return most < 0 ? windows : std::min(windows, most);
}

}  // namespace

Array read_bytes(const std::vector<std::string>& files) {
  std::vector<Array> parts;
  for (const std::string& file : files) {
    size_of(file);
    parts.push_back(catena::fromfile(file, {.dtype = uint8, .device = catena::cpu()}));
  }
  return parts.size() == 1 ? parts[0] : catena::concatenate(parts);
}

Array map_tokens(const std::string& file, int64_t vocabulary) {
  const int64_t bytes = size_of(file);
  CATENA_CHECK(IoError, bytes % 2 == 0, "'", file, "' has ", bytes,
               " bytes, which are not numbers of two bytes each");
  const std::shared_ptr<void> pages = map_file(file, static_cast<size_t>(bytes));
  const Array tokens = catena::borrow_array(pages.get(), {bytes / 2}, uint16, catena::cpu(), pages);
  const int64_t largest = catena::amax(tokens).item<int64_t>();
  CATENA_CHECK(ValueError, largest < vocabulary, "'", file, "' has the token ", largest,
               " at position ", catena::argmax(tokens).item<int64_t>(), ", but --vocabulary is ",
               vocabulary, "; tokens are numbers below it");
  return tokens;
}

Windows::Windows(const Array& tokens, int64_t length, const std::string& what, int64_t most_windows)
    : Dataset(windows_in(tokens, length, what, most_windows), {{tokens.dtype(), {length + 1}}}),
      tokens_(tokens),
      length_(length) {}

void Windows::gather(std::span<const int64_t> positions, std::span<const Array> out) const {
  check_gather(positions, out);
  const auto token = static_cast<size_t>(tokens_.itemsize());
  const size_t window = static_cast<size_t>(length_ + 1) * token;
  const auto* const from = static_cast<const std::byte*>(tokens_.raw_data());
  auto* to = static_cast<std::byte*>(out[0].raw_data());
  for (const int64_t position : positions) {
    std::memcpy(to, from + static_cast<size_t>(position * length_) * token, window);
    to += window;
  }
}

}  // namespace gpt2
