// Fuzz target for the readers of files (.npy read and mapped, .npz, text, raw): any input must end
// in arrays or an IoError.
//
// The target fuzz_npz_libfuzzer builds it with clang as a libFuzzer program (CATENA_LIBFUZZER).
// Otherwise main() below mutates valid files at random for a time: fuzz_npz [--seconds N]
// [--seed N]. With --seeds FOLDER it writes the valid files, a corpus for libFuzzer to start from.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/text.h"

namespace {

std::string scratch(const char* suffix) {
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/catena-fuzz-" + std::to_string(::getpid()) +
         suffix;
}

// A file in memory that has a path.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", 0)) {
    if (descriptor_ < 0) std::abort();
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
  }
  const std::string& path() const { return path_; }
  void set(const uint8_t* data, size_t size) const {
    if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, data, size, 0) != ssize_t(size))
      std::abort();
  }

 private:
  int descriptor_;
  std::string path_;
};

// What a reader gives is used, so that memory which is not there is noticed.
void touch(const catena::Array& a) {
  if (a.size() > 0 && a.size() < 100000) a.to_vector<double>();
}

template <class F>
void attempt(F&& read) {
  try {
    read();
  } catch (const catena::IoError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFile file;
  static const bool quiet = ::setenv("CATENA_LOG", "error", 1) == 0;
  if (!quiet) return 0;
  file.set(data, size);
  const std::string& path = file.path();
  const auto dtype = static_cast<catena::Dtype>(size % catena::kDtypeCount);
  attempt([&] { touch(catena::loads({reinterpret_cast<const char*>(data), size})); });
  attempt([&] { touch(catena::load(path)); });
  attempt([&] { touch(catena::load(path, catena::MmapMode::kRead)); });
  attempt([&] {
    const catena::NpzFile npz(path);
    for (const std::string& name : npz.names()) attempt([&] { touch(npz[name]); });
  });
  attempt([&] { touch(catena::loadtxt(path, {.dtype = dtype})); });
  attempt([&] { touch(catena::loadtxt(path, {.dtype = dtype, .delimiter = ",", .ndmin = 2})); });
  attempt([&] { touch(catena::fromfile(path, {.dtype = dtype})); });
  attempt([&] { touch(catena::fromfile(path, {.dtype = dtype, .separator = ", "})); });
  return 0;
}

#ifndef CATENA_LIBFUZZER
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::string> seeds() {
  using catena::array;
  const catena::NamedArrays arrays = {{"l1/W", array<float>({1, 2, 3})},
                                      {"t", array<int64_t>({7})},
                                      {"m", array<double>({{0.5, -1e300}, {1. / 3, 2}}).T()}};
  const std::string path = scratch("-seed");
  std::vector<std::string> files;
  for (const auto& [name, a] : arrays) files.push_back(catena::dumps(a));
  for (const bool compressed : {false, true}) {
    catena::save_npz(path, arrays, compressed);
    files.push_back(bytes_of(path));
  }
  for (const char* delimiter : {" ", ","}) {
    catena::savetxt(path, arrays[2].second, {.delimiter = delimiter, .header = "a b"});
    files.push_back(bytes_of(path));
  }
  catena::tofile(path, arrays[2].second, ", ");
  files.push_back(bytes_of(path));
  std::remove(path.c_str());
  return files;
}

int write_seeds(const std::string& folder) {
  int number = 0;
  for (const std::string& bytes : seeds()) {
    std::ofstream out(folder + "/seed-" + std::to_string(number++), std::ios::binary);
    out << bytes;
    if (!out.flush()) {
      std::fprintf(stderr, "fuzz_npz: cannot write into %s\n", folder.c_str());
      return 1;
    }
  }
  return 0;
}

// One to eight edits: bytes overwritten, numbers set to extremes, pieces cut, doubled or moved.
std::string mutate(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  for (size_t edits = 1 + below(8); edits > 0 && !bytes.empty(); --edits) {
    const size_t at = below(bytes.size()),
                 length = 1 + below(std::min<size_t>(16, bytes.size() - at));
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        std::memset(&bytes[at], below(2) ? 0xff : 0, length);
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), length));
        break;
      case 4:
        bytes.resize(below(8) ? bytes.size() : at);
        break;
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 10;
  uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--seeds") == 0) return write_seeds(argv[i + 1]);
  }
  ::setenv("CATENA_LOG", "error", 1);  // members that are no arrays are no news here
  const std::vector<std::string> files = seeds();
  std::mt19937_64 random(seed);
  const auto start = std::chrono::steady_clock::now();
  long runs = 0;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
         seconds) {
    const std::string input = mutate(files[random() % files.size()], random);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    ++runs;
  }
  std::printf("%ld damaged files read without a crash (seed %llu)\n", runs,
              static_cast<unsigned long long>(seed));
}
#endif
