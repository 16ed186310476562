#include "training/folder_names.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "catena/core/error.h"
#include "serializers/slice_index.h"
#include "training/save_owner.h"

namespace catena::training {
namespace {

namespace fs = std::filesystem;

constexpr const char *kStep = "step-", *kUnfinished = ".tmp", *kRemoved = ".old";
constexpr size_t kDigits = 12;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  // One that cannot be read must not pass for one without checkpoints.
  CATENA_CHECK(IoError, !error || error == std::errc::no_such_file_or_directory,
               "cannot read the folder '", folder, "': ", error.message());
  std::sort(names.begin(), names.end());
  return names;
}

// The step of such a name; -1 for others.
int64_t step_of(const std::string& name) {
  const std::string digits = name.starts_with(kStep) ? name.substr(std::strlen(kStep)) : "";
  int64_t step = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  const bool is_number =
      digits.size() >= kDigits && error == std::errc() && end == digits.data() + digits.size();
  return is_number ? step : -1;
}

// A file or a pipe, which is somebody else's. What cannot be looked at may be a checkpoint.
bool is_no_folder(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_directory(status);
}

void rename_folder(const std::string& from, const std::string& to) {
  CATENA_CHECK(IoError, ::rename(from.c_str(), to.c_str()) == 0, "cannot rename '", from, "' to '",
               to, "': ", std::strerror(errno));
}

void sync_folder(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  CATENA_CHECK(IoError, file >= 0, "cannot open the folder '", path, "': ", std::strerror(errno));
  const int error = ::fsync(file) == 0 ? 0 : errno;
  ::close(file);
  // Some file systems cannot sync folders.
  CATENA_CHECK(IoError, error == 0 || error == EINVAL || error == ENOTSUP,
               "cannot sync the folder '", path, "': ", std::strerror(error));
}

// Whether the folders have changed places, at once. Not every file system can.
bool exchange_folders(const std::string& a, const std::string& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

std::string name_of_step(int64_t step) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%0*lld", int(kDigits), static_cast<long long>(step));
  return std::string(kStep) + digits;
}

std::string FolderNames::unfinished(int64_t step, const std::string& id) const {
  return path_ + "/." + name_of_step(step) + "." + id + kUnfinished;
}

// The hidden name of a checkpoint that goes.
std::string FolderNames::removed(int64_t step) const {
  return path_ + "/." + name_of_step(step) + kRemoved;
}

std::vector<int64_t> FolderNames::steps() const {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in(path_))
    if (const int64_t step = step_of(name); step >= 0 && !is_no_folder(path_ + "/" + name))
      steps.push_back(step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<int64_t> FolderNames::complete_steps() const {
  std::vector<int64_t> complete = steps();
  std::erase_if(complete, [&](int64_t step) {
    std::error_code ignored;
    return !fs::exists(path_of(step) + "/" + serializers::kCompleteName, ignored);
  });
  return complete;
}

std::vector<std::string> FolderNames::all_unfinished() const {
  std::vector<std::string> found;
  for (const std::string& name : names_in(path_))
    if (name.starts_with("." + std::string(kStep)) &&
        (name.ends_with(kUnfinished) || name.ends_with(kRemoved)))
      found.push_back(path_ + "/" + name);
  return found;
}

void FolderNames::publish(const std::string& unfinished, int64_t step) const {
  const std::string target = path_of(step);
  sync_folder(unfinished);
  std::error_code ignored;
  std::string old;  // what is replaced, where it is then
  if (!fs::exists(target, ignored)) {
    rename_folder(unfinished, target);
  } else if (exchange_folders(unfinished, target)) {
    old = unfinished;
  } else {
    old = removed(step);
    fs::remove_all(old, ignored);
    rename_folder(target, old);
    rename_folder(unfinished, target);
  }
  sync_folder(path_);
  if (!old.empty()) fs::remove_all(old, ignored);
}

// Under another name first, so that no part of it passes for a checkpoint. False if it stays.
bool FolderNames::remove(int64_t step) const {
  std::error_code ignored;
  fs::remove_all(removed(step), ignored);
  if (::rename(path_of(step).c_str(), removed(step).c_str()) != 0) return false;
  fs::remove_all(removed(step), ignored);
  return true;
}

void FolderNames::remove_others(int64_t step, int keep) const {
  for (const int64_t later : steps())
    if (later > step) remove(later);
  const std::vector<int64_t> complete = complete_steps();
  for (size_t k = 0; k + size_t(keep) < complete.size(); ++k) remove(complete[k]);
}

void FolderNames::remove_all() const {
  require_no_other_save(*this);
  std::error_code ignored;
  for (const int64_t step : steps())
    CATENA_CHECK(IoError, remove(step), "cannot remove '", path_of(step),
                 "': ", std::strerror(errno));
  for (const std::string& unfinished : all_unfinished()) fs::remove_all(unfinished, ignored);
}

}  // namespace catena::training
