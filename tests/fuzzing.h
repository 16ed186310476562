// What fuzz targets share: files in memory, and a main() that mutates valid files at random for a
// time where there is no libFuzzer: PROGRAM [--seconds N] [--seed N]. With --seeds FOLDER it writes
// the valid files, a corpus for libFuzzer to start from.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "catena/core/error.h"

namespace catena::fuzzing {

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

// Reads; the only error that damaged files may give is an IoError.
template <class F>
void attempt(F&& read) {
  try {
    read();
  } catch (const catena::IoError&) {
  }
}

inline int write_seeds(const std::vector<std::string>& seeds, const std::string& folder) {
  int number = 0;
  for (const std::string& bytes : seeds) {
    std::ofstream out(folder + "/seed-" + std::to_string(number++), std::ios::binary);
    out << bytes;
    if (!out.flush()) {
      std::fprintf(stderr, "cannot write into %s\n", folder.c_str());
      return 1;
    }
  }
  return 0;
}

// One to eight edits: bytes overwritten, numbers set to extremes, pieces cut, doubled or moved.
inline std::string mutate(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  for (size_t edits = 1 + below(8); edits > 0 && !bytes.empty(); --edits) {
    const size_t at = below(bytes.size()),
                 length = 1 + below(std::min<size_t>(16, bytes.size() - at));
    switch (below(5)) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: std::memset(&bytes[at], below(2) ? 0xff : 0, length); break;
      case 2: bytes.erase(at, length); break;
      case 3: bytes.insert(at, bytes.substr(below(bytes.size()), length)); break;
      case 4: bytes.resize(below(8) ? bytes.size() : at); break;
    }
  }
  return bytes;
}

// `target` takes mutated files until the time is over.
inline int main_of(int argc, char** argv, const std::vector<std::string>& seeds,
                   int (*target)(const uint8_t*, size_t)) {
  double seconds = 10;
  uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--seeds") == 0) return write_seeds(seeds, argv[i + 1]);
  }
  std::mt19937_64 random(seed);
  const auto start = std::chrono::steady_clock::now();
  long runs = 0;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
         seconds) {
    const std::string input = mutate(seeds[random() % seeds.size()], random);
    target(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    ++runs;
  }
  std::printf("%ld damaged files read without a crash (seed %llu)\n", runs,
              static_cast<unsigned long long>(seed));
  return 0;
}

}  // namespace catena::fuzzing
