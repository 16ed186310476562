#include "catena/core/plugin.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "catena/core/abi_tag.h"
#include "catena/core/backend.h"
#include "catena/core/entry_scope.h"
#include "catena/core/error.h"
#include "catena/core/fork_mutex.h"
#include "catena/core/log.h"
#include "core/hint.h"
#include "core/library_file.h"
#include "core/standard_folders.h"

namespace catena {
namespace {

struct LoadResult {
  bool tried = false;
  std::string error;
};

struct Loader {
  RecursiveForkMutex mutex;  // an entry function may load what it builds on
  std::map<std::string, LoadResult> results;
};

Loader& loader() {
  static Loader* instance = new Loader;  // never destroyed: plug-ins may be used by exit handlers
  return *instance;
}

// Folder of the library this code is in.
std::filesystem::path library_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&abi_tag), &info) == 0 || info.dli_fname == nullptr)
    return ".";
  std::error_code error;
  auto path = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::filesystem::path(info.dli_fname).parent_path() : path.parent_path();
}

// The loader's message, with advice if a library that the plug-in is linked to is missing.
std::string loader_text() {
  const std::string text = dlerror();
  if (text.find("cannot open shared object file") == std::string::npos) return text;
  return text + "; install this library, or set LD_LIBRARY_PATH to its folder" + kPackagesHint;
}

// The caller holds the lock. Returns the reason of a failure, or nothing.
std::string open_plugin(const std::string& name) {
  const std::filesystem::path found = find_plugin(plugin_folders(library_folder()), name);
  if (found.empty()) {
    return message("plug-in '", name, "' is not built or not installed: no libcatena_", name,
                   ".so in ", library_folder().string(),
                   ", its folder catena or CATENA_PLUGIN_PATH");
  }
  if (const std::string problem = problem_of_library_file(found.string()); !problem.empty())
    return message("plug-in '", name, "' does not load: ", problem);
  void* handle = dlopen(found.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return message("plug-in '", name, "' does not load: ", loader_text());
  using TagFunction = const char* (*)();
  using EntryFunction = void (*)();
  auto tag = reinterpret_cast<TagFunction>(dlsym(handle, "catena_plugin_abi_tag"));
  auto entry = reinterpret_cast<EntryFunction>(dlsym(handle, "catena_plugin_entry"));
  if (tag == nullptr || entry == nullptr)
    return message("plug-in '", name, "': ", found.string(), " is not a catena plug-in");
  if (std::strcmp(tag(), abi_tag()) != 0) {
    return message("plug-in '", name, "' is of another build: ", found.string(),
                   " was made for catena ", tag(), ", this is ", abi_tag(),
                   "; rebuild the plug-in against this catena");
  }
  try {
    const CallbackScope callback;  // the caller puts the function that was called before the text
    entry();
  } catch (const std::exception& e) {
    return message("plug-in '", name, "': ", e.what());
  }
  logging::info("loaded plug-in '", name, "' from ", found.string());
  return {};
}

}  // namespace

const char* abi_tag() { return CATENA_ABI_TAG; }

std::string load_plugin(const char* name) {
  Loader& l = loader();
  std::lock_guard lock(l.mutex);
  LoadResult& result = l.results[name];
  if (!result.tried) {
    result.tried = true;  // before the entry runs, which may ask for itself
    result.error = open_plugin(name);
    if (result.error.empty() && std::string_view(name) == catena::name(DeviceType::kCuda))
      load_companions(DeviceType::kCuda);
  }
  return result.error;
}

std::string plugin_error(const char* name) {
  Loader& l = loader();
  std::lock_guard lock(l.mutex);
  const auto it = l.results.find(name);
  return it == l.results.end() ? std::string() : it->second.error;
}

void wait_for_plugins() { const std::lock_guard lock(loader().mutex); }

}  // namespace catena
