// Fuzz target for the readers of files (.npy read and mapped, .npz, text, raw): any input must end
// in arrays or an IoError.
//
// The target fuzz_npz_libfuzzer builds it with clang as a libFuzzer program (CATENA_LIBFUZZER);
// otherwise see fuzzing.h.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/text.h"
#include "fuzzing.h"

using namespace catena;

namespace {

std::string scratch(const char* suffix) {
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/catena-fuzz-" + std::to_string(::getpid()) +
         suffix;
}

// What a reader gives is used, so that memory which is not there is noticed.
void touch(const Array& a) {
  if (a.size() > 0 && a.size() < 100000) a.to_vector<double>();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzzing::MemoryFile file;
  static const bool quiet = ::setenv("CATENA_LOG", "error", 1) == 0;
  if (!quiet) return 0;
  file.set(data, size);
  const std::string& path = file.path();
  const auto dtype = static_cast<Dtype>(size % kDtypeCount);
  fuzzing::attempt([&] { touch(loads({reinterpret_cast<const char*>(data), size})); });
  fuzzing::attempt([&] { touch(load(path)); });
  fuzzing::attempt([&] { touch(load(path, MmapMode::kRead)); });
  fuzzing::attempt([&] {
    const NpzFile npz(path);
    for (const std::string& name : npz.names()) fuzzing::attempt([&] { touch(npz[name]); });
  });
  fuzzing::attempt([&] { touch(loadtxt(path, {.dtype = dtype})); });
  fuzzing::attempt([&] { touch(loadtxt(path, {.dtype = dtype, .delimiter = ",", .ndmin = 2})); });
  fuzzing::attempt([&] { touch(fromfile(path, {.dtype = dtype})); });
  fuzzing::attempt([&] { touch(fromfile(path, {.dtype = dtype, .separator = ", "})); });
  return 0;
}

#ifndef CATENA_LIBFUZZER
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<std::string> seeds() {
  const NamedArrays arrays = {{"l1/W", array<float>({1, 2, 3})},
                              {"t", array<int64_t>({7})},
                              {"m", array<double>({{0.5, -1e300}, {1. / 3, 2}}).T()}};
  const std::string path = scratch("-seed");
  std::vector<std::string> files;
  for (const auto& [name, a] : arrays) files.push_back(dumps(a));
  for (const bool compressed : {false, true}) {
    save_npz(path, arrays, compressed);
    files.push_back(bytes_of(path));
  }
  for (const char* delimiter : {" ", ","}) {
    savetxt(path, arrays[2].second, {.delimiter = delimiter, .header = "a b"});
    files.push_back(bytes_of(path));
  }
  tofile(path, arrays[2].second, ", ");
  files.push_back(bytes_of(path));
  std::remove(path.c_str());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("CATENA_LOG", "error", 1);  // members that are no arrays are no news here
  return fuzzing::main_of(argc, argv, seeds(), &LLVMFuzzerTestOneInput);
}
#endif
