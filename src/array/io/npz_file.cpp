// Reads .npz archives: one array at a time, or all.
#include <algorithm>
#include <unordered_map>

#include "array/io/npy.h"
#include "array/io/zip.h"
#include "catena/array/io.h"
#include "catena/core/log.h"
#include "core/nearest_names.h"

namespace catena {

struct NpzFile::Impl {
  Impl(const std::string& path, Device on) : file(path), zip(file), device(on) {
    for (const auto& member : zip.members()) {
      if (!member.name.ends_with(".npy")) {
        logging::warning("reading '", path, "': member '", member.name,
                         "' is not an .npy array; left out");
        continue;
      }
      CATENA_CHECK(IoError, by_name.emplace(name_of(member), &member).second, "reading '", path,
                   "': two members are named '", member.name, "'");
      arrays.push_back(&member);
    }
  }

  static std::string_view name_of(const io::ZipReader::Member& member) {
    return std::string_view(member.name).substr(0, member.name.size() - 4);
  }
  const io::ZipReader::Member* find(std::string_view name) const {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  }
  Array read(const io::ZipReader::Member& member) const {
    return io::read_npy_exactly(*zip.open(member)).to(device);
  }

  io::InputFile file;
  io::ZipReader zip;
  Device device;
  std::vector<const io::ZipReader::Member*> arrays;
  std::unordered_map<std::string_view, const io::ZipReader::Member*> by_name;
};

NpzFile::NpzFile(const std::string& path, Device device)
    : impl_(std::make_unique<Impl>(path, device)) {}
NpzFile::~NpzFile() = default;
NpzFile::NpzFile(NpzFile&&) noexcept = default;
NpzFile& NpzFile::operator=(NpzFile&&) noexcept = default;

const NpzFile::Impl& NpzFile::impl() const {
  CATENA_CHECK(ValueError, impl_, "NpzFile: the file is closed; open it again");
  return *impl_;
}

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> names;
  for (const auto* member : impl().arrays) names.emplace_back(Impl::name_of(*member));
  return names;
}

size_t NpzFile::size() const { return impl().arrays.size(); }
bool NpzFile::contains(std::string_view name) const { return impl().find(name) != nullptr; }

Array NpzFile::operator[](std::string_view name) const {
  const auto* member = impl().find(name);
  if (!member) {
    fail<IndexError>("NpzFile: '", impl_->file.path(), "' has no array '", name, "'; ",
                     nearest_names(name, names()));
  }
  return impl().read(*member);
}

void NpzFile::close() { impl_.reset(); }

const Array& LoadedArrays::at(const std::string& name) const {
  const auto found = find(name);
  if (found != end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, array] : *this) names.push_back(known);
  fail<IndexError>("load_npz: there is no array '", name, "'; ", nearest_names(name, names));
}

LoadedArrays load_npz(const std::string& path, Device device) {
  const NpzFile file(path, device);
  LoadedArrays arrays;
  for (const std::string& name : file.names()) arrays.emplace(name, file[name]);
  return arrays;
}

}  // namespace catena
