// Fuzz target for load() and load_npz(): any input must end in arrays or an IoError.
//
// With clang, -fsanitize=fuzzer and -DCATENA_LIBFUZZER this is a libFuzzer target. Otherwise main()
// below mutates valid files at random for a time: fuzz_npz [--seconds N] [--seed N].
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

namespace {

std::string scratch(const char* suffix) {
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/catena-fuzz-" + std::to_string(::getpid()) +
         suffix;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path = scratch("");
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), std::streamsize(size));
  try {
    catena::load(path);
  } catch (const catena::IoError&) {
  }
  try {
    catena::load_npz(path);
  } catch (const catena::IoError&) {
  }
  std::remove(path.c_str());
  return 0;
}

#ifndef CATENA_LIBFUZZER
namespace {

std::vector<std::string> seeds() {
  using catena::array;
  const catena::NamedArrays arrays = {{"l1/W", array<float>({1, 2, 3})},
                                      {"t", array<int64_t>({7})}};
  const std::string path = scratch("-seed");
  std::vector<std::string> files;
  const auto keep = [&] {
    std::ifstream in(path, std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  };
  catena::save(path, arrays[0].second);
  keep();
  for (const bool compressed : {false, true}) {
    catena::save_npz(path, arrays, compressed);
    keep();
  }
  std::remove(path.c_str());
  return files;
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
