#include "catena/array/io.h"

#include <array>
#include <set>
#include <span>

#include "array/io/file_io.h"
#include "array/io/npy.h"
#include "array/io/zip.h"

namespace catena {
namespace {

constexpr std::string_view kSuffix = ".npy";

std::array<std::span<const char>, 2> parts_of(const io::NpyImage& image) {
  return {std::span<const char>(image.header),
          std::span<const char>(static_cast<const char*>(image.data.raw_data()),
                                static_cast<size_t>(image.data.nbytes()))};
}

}  // namespace

void save(const std::string& path, const Array& a) {
  CATENA_CHECK(ValueError, a.defined(), "save('", path, "'): the array is not defined");
  CATENA_CHECK(ValueError, !path.ends_with(".npz"), "save('", path,
               "'): save writes one array as .npy, the name is that of an archive; use save_npz");
  const io::NpyImage image = io::make_npy(a);
  io::AtomicFile file(path);
  for (const auto& part : parts_of(image)) file.write(part.data(), part.size());
  file.commit();
}

Array load(const std::string& path, Device device) {
  const io::InputFile file(path);
  io::FileSource source(file);
  return io::read_npy(source).to(device);
}

void save_npz(const std::string& path, const NamedArrays& arrays, bool compressed) {
  std::set<std::string_view> seen;
  for (const auto& [name, array] : arrays) {
    CATENA_CHECK(ValueError, !name.empty(), "save_npz('", path, "'): an array without a name");
    CATENA_CHECK(ValueError, seen.insert(name).second, "save_npz('", path,
                 "'): two arrays are named '", name, "'");
    CATENA_CHECK(ValueError, array.defined(), "save_npz('", path, "'): array '", name,
                 "' is not defined");
  }
  io::AtomicFile file(path);
  io::ZipWriter zip(file);
  for (const auto& [name, array] : arrays) {
    const io::NpyImage image = io::make_npy(array);
    const auto parts = parts_of(image);
    zip.add(name + std::string(kSuffix), parts, compressed);
  }
  zip.finish();
  file.commit();
}

namespace {

NamedArrays with_numbered_names(const char* who, const std::string& path,
                                const std::vector<Array>& arrays, const NamedArrays& named) {
  NamedArrays all;
  for (const Array& array : arrays) all.emplace_back("arr_" + std::to_string(all.size()), array);
  for (const auto& [name, array] : named) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      CATENA_CHECK(ValueError, all[i].first != name, who, "('", path, "'): array ", i,
                   " without a name is called '", name, "', and so is a named one; rename it");
    }
    all.emplace_back(name, array);
  }
  return all;
}

}  // namespace

void savez(const std::string& path, const std::vector<Array>& arrays, const NamedArrays& named) {
  save_npz(path, with_numbered_names("savez", path, arrays, named));
}

void savez_compressed(const std::string& path, const std::vector<Array>& arrays,
                      const NamedArrays& named) {
  save_npz(path, with_numbered_names("savez_compressed", path, arrays, named), true);
}

std::string dumps(const Array& a) {
  CATENA_CHECK(ValueError, a.defined(), "dumps: the array is not defined");
  const io::NpyImage image = io::make_npy(a);
  std::string bytes;
  bytes.reserve(static_cast<size_t>(image.size()));
  for (const auto& part : parts_of(image)) bytes.append(part.data(), part.size());
  return bytes;
}

Array loads(std::string_view bytes, Device device) {
  io::MemorySource source("loads", bytes);
  return io::read_npy(source).to(device);
}

}  // namespace catena
