// Folders in which catena keeps and looks for files: the one place that says so, for the library
// and for `catena-run --check`, which is not linked with it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

// Where plug-ins are looked for, in this order: CATENA_PLUGIN_PATH, the folder of libcatena, and
// the folder `catena` in it, where packages put them.
inline std::vector<std::filesystem::path> plugin_folders(
    const std::filesystem::path& library_folder) {
  std::vector<std::filesystem::path> folders;
  const char* named = std::getenv("CATENA_PLUGIN_PATH");
  std::string_view rest = named ? named : "";
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    if (colon != 0) folders.emplace_back(rest.substr(0, colon));
    rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
  }
  folders.push_back(library_folder);
  folders.push_back(library_folder / "catena");
  return folders;
}

// The file of a plug-in in the first of the folders that has it; empty: none has.
inline std::filesystem::path find_plugin(const std::vector<std::filesystem::path>& folders,
                                         const std::string& name) {
  for (const std::filesystem::path& folder : folders) {
    const std::filesystem::path file = folder / ("libcatena_" + name + ".so");
    std::error_code error;
    if (std::filesystem::exists(file, error)) return file;
  }
  return {};
}

// The cache folder: CATENA_CACHE_DIR, else CUPY_CACHE_DIR, else $XDG_CACHE_HOME/catena, else
// ~/.cache/catena; "" when there is none, or CATENA_CACHE_DIR is empty.
inline std::string cache_folder() {
  if (const char* folder = std::getenv("CATENA_CACHE_DIR")) return folder;
  if (const char* folder = std::getenv("CUPY_CACHE_DIR"); folder && *folder) return folder;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::string(cache) + "/catena";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::string(home) + "/.cache/catena";
  return "";
}

// What the cache folder keeps: one folder for each kind, with one file for each value.
struct CacheKind {
  const char* folder;  // in the cache folder
  const char* suffix;  // of the files
};
inline constexpr CacheKind kKernelCache{"kernels", ".cubin"};  // what NVRTC compiled
inline constexpr CacheKind kPlanCache{"plans", ".plan"};       // what cuDNN chose for problems

// How often values of a kind were found in the cache and made, by all processes so far.
struct CacheUses {
  std::uint64_t hits = 0, misses = 0;
};
// The file in the cache folder that holds them.
inline std::string cache_uses_file(const std::string& folder, const CacheKind& kind) {
  return folder + "/" + kind.folder + "/counts";
}
// Zeros when it is not there. Neither follows a link nor waits for a pipe of that name.
inline CacheUses read_cache_uses(const std::string& folder, const CacheKind& kind) {
  CacheUses uses;
  constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
  const int file = ::open(cache_uses_file(folder, kind).c_str(), kFlags);
  if (file < 0) return {};
  const bool whole = ::read(file, &uses, sizeof(uses)) == ssize_t(sizeof(uses));
  ::close(file);
  return whole ? uses : CacheUses{};
}

}  // namespace catena
