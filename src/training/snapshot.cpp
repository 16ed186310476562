#include "catena/training/snapshot.h"

#include <unistd.h>

#include <filesystem>

#include "catena/array/creation.h"

namespace catena::training {
namespace {

// Marks a part without arrays, such as the state of a rule that keeps none.
constexpr char kEmptyPart[] = ".empty";

}  // namespace

void prepare_output_folder(const std::string& path) {
  CATENA_CHECK(IoError, !path.empty(), "output folder: the name is empty");
  std::error_code error;
  std::filesystem::create_directories(path, error);
  // An existing folder behind a symbolic link is reported as an error by some library versions.
  CATENA_CHECK(IoError, !error || std::filesystem::is_directory(path), "output folder '", path,
               "': cannot create it: ", error.message(), "; choose another one with --out");
  const std::string probe = path + "/.writable." + std::to_string(::getpid());
  try {
    write_file_atomically(probe, "");
  } catch (const IoError& reason) {
    fail<IoError>("output folder '", path, "' cannot be written (", reason.what(),
                  "); choose another one with --out");
  }
  std::filesystem::remove(probe, error);
}

void Snapshot::set(const std::string& part, const NamedArrays& arrays) {
  CATENA_CHECK(ValueError, !has(part), "Snapshot: the part '", part, "' is there already");
  if (arrays.empty())
    arrays_[part + "/" + kEmptyPart] = Array::uninitialized({0}, Dtype::kUInt8, cpu(0));
  for (const auto& [name, a] : arrays) arrays_[part + "/" + name] = a;
}

void Snapshot::set(const std::string& part, const Array& array) {
  set(part, NamedArrays{{"value", array}});
}

void Snapshot::save(const std::string& path) const {
  save_npz(path, NamedArrays(arrays_.begin(), arrays_.end()));
}

Snapshot Snapshot::load(const std::string& path) {
  Snapshot snapshot;
  snapshot.arrays_ = load_npz(path);
  return snapshot;
}

bool Snapshot::has(const std::string& part) const {
  const auto at = arrays_.lower_bound(part + "/");
  return at != arrays_.end() && at->first.starts_with(part + "/");
}

std::map<std::string, Array> Snapshot::part(const std::string& part) const {
  CATENA_CHECK(ValueError, has(part), "Snapshot: there is no part '", part,
               "'; is it a snapshot of this program?");
  const std::string prefix = part + "/";
  std::map<std::string, Array> result;
  for (auto at = arrays_.lower_bound(prefix); at != arrays_.end() && at->first.starts_with(prefix);
       ++at) {
    result[at->first.substr(prefix.size())] = at->second;
  }
  result.erase(kEmptyPart);
  return result;
}

Array Snapshot::array(const std::string& part) const {
  const auto arrays = this->part(part);
  const auto at = arrays.find("value");
  CATENA_CHECK(ValueError, at != arrays.end(), "Snapshot: the part '", part,
               "' is no single array");
  return at->second;
}

Array pack(const RandomState::State& state) {
  return array<uint64_t>({state.seed, state.offset}, cpu(0));
}

RandomState::State unpack_random_state(const Array& a) {
  CATENA_CHECK(ValueError, a.dtype() == Dtype::kUInt64 && a.shape() == Shape{2},
               "unpack_random_state: expected uint64 of shape (2,), got ", a.dtype(), " of shape ",
               a.shape());
  const auto v = a.to_vector<uint64_t>();
  return {v[0], v[1]};
}

}  // namespace catena::training
