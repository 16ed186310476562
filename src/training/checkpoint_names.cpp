#include "training/checkpoint_names.h"

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

// Under another name first, so that no part of it passes for a checkpoint. False if it stays.
bool remove_step(const std::string& folder, int64_t step) {
  const std::string name = name_of_step(step), hidden = folder + "/." + name + kRemoved;
  std::error_code ignored;
  fs::remove_all(hidden, ignored);
  if (::rename((folder + "/" + name).c_str(), hidden.c_str()) != 0) return false;
  fs::remove_all(hidden, ignored);
  return true;
}

}  // namespace

std::string name_of_step(int64_t step) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%0*lld", int(kDigits), static_cast<long long>(step));
  return std::string(kStep) + digits;
}

std::string name_of_unfinished(int64_t step, const std::string& id) {
  return "." + name_of_step(step) + "." + id + kUnfinished;
}

std::vector<int64_t> steps_in(const std::string& folder) {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in(folder))
    if (const int64_t step = step_of(name); step >= 0 && !is_no_folder(folder + "/" + name))
      steps.push_back(step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::string> unfinished_in(const std::string& folder) {
  std::vector<std::string> found;
  for (const std::string& name : names_in(folder))
    if (name.starts_with("." + std::string(kStep)) &&
        (name.ends_with(kUnfinished) || name.ends_with(kRemoved)))
      found.push_back(folder + "/" + name);
  return found;
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

namespace {

// Whether the folders have changed places, at once. Not every file system can.
bool exchange_folders(const std::string& a, const std::string& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

void publish(const std::string& folder, const std::string& unfinished, int64_t step) {
  const std::string target = folder + "/" + name_of_step(step);
  sync_folder(unfinished);
  std::error_code ignored;
  std::string old;  // what is replaced, where it is then
  if (!fs::exists(target, ignored)) {
    rename_folder(unfinished, target);
  } else if (exchange_folders(unfinished, target)) {
    old = unfinished;
  } else {
    old = folder + "/." + name_of_step(step) + kRemoved;
    fs::remove_all(old, ignored);
    rename_folder(target, old);
    rename_folder(unfinished, target);
  }
  sync_folder(folder);
  if (!old.empty()) fs::remove_all(old, ignored);
}

std::vector<int64_t> complete_steps_in(const std::string& folder) {
  std::vector<int64_t> steps = steps_in(folder);
  std::erase_if(steps, [&](int64_t step) {
    std::error_code ignored;
    return !fs::exists(folder + "/" + name_of_step(step) + "/" + serializers::kCompleteName,
                       ignored);
  });
  return steps;
}

void remove_others(const std::string& folder, int64_t step, int keep) {
  for (const int64_t later : steps_in(folder))
    if (later > step) remove_step(folder, later);
  const std::vector<int64_t> steps = complete_steps_in(folder);
  for (size_t k = 0; k + size_t(keep) < steps.size(); ++k) remove_step(folder, steps[k]);
}

void remove_all_steps(const std::string& folder) {
  require_no_other_save(folder);
  std::error_code ignored;
  for (const int64_t step : steps_in(folder))
    CATENA_CHECK(IoError, remove_step(folder, step), "cannot remove '", folder, "/",
                 name_of_step(step), "': ", std::strerror(errno));
  for (const std::string& unfinished : unfinished_in(folder)) fs::remove_all(unfinished, ignored);
}

}  // namespace catena::training
