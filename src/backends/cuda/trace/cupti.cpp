#include "backends/cuda/trace/cupti.h"

#ifdef CATENA_HAS_CUPTI
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace catena::gpu {
namespace {

std::string folder_of(const char* file) {
  const std::string path = file;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// Beside the CUDA runtime that is in use, and in the toolkit.
std::vector<std::string> folders_of_toolkit() {
  std::vector<std::string> roots;
  std::vector<std::string> folders;
  Dl_info runtime{};
  if (dladdr(reinterpret_cast<void*>(&cudaGetLastError), &runtime) != 0 && runtime.dli_fname) {
    folders.push_back(folder_of(runtime.dli_fname));
    roots.push_back(folders.back() + "/..");
  }
  if (const char* home = std::getenv("CUDA_HOME"); home && *home) roots.emplace_back(home);
  roots.emplace_back("/usr/local/cuda");
  for (const std::string& root : roots)
    for (const char* folder : {"/lib64", "/lib", "/extras/CUPTI/lib64"})
      folders.push_back(root + folder);
  return folders;
}

void* open_cupti(std::string& error) {
  std::vector<std::string> candidates;
  if (const char* named = std::getenv("CATENA_CUPTI"); named && *named) {
    candidates.emplace_back(named);
  } else {
    const std::string name = "libcupti.so." + std::to_string(CUDART_VERSION / 1000);
    candidates.push_back(name);
    for (const std::string& folder : folders_of_toolkit())
      candidates.push_back(folder + "/" + name);
  }
  for (const std::string& candidate : candidates) {
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    if (error.empty()) error = dlerror();
  }
  return nullptr;
}

Cupti load_cupti() {
  std::string error;
  void* const library = open_cupti(error);
  Cupti api{jit::FunctionLookup(library)};
  if (library == nullptr)
    api.error = error;
  else if (const std::string& missing = api.functions.missing(); !missing.empty())
    api.error = "CUPTI has no " + missing;
  return api;
}

}  // namespace

const Cupti& cupti() {
  static const auto* api = new Cupti(load_cupti());  // exit handlers use it
  return *api;
}

}  // namespace catena::gpu
#endif
