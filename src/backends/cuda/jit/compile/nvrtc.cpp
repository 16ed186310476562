// Opening NVRTC with dlopen and compiling with it. See nvrtc.h.
#include "backends/cuda/jit/compile/nvrtc.h"

#include <dlfcn.h>
#include <nvrtc.h>

#include <cstdlib>
#include <mutex>
#include <vector>

#include "backends/cuda/jit/compile/function_lookup.h"
#include "backends/cuda/jit/compile/source.h"
#include "catena/core/error.h"

namespace catena::jit {

namespace {

struct Nvrtc {
  FunctionLookup functions;
  decltype(&nvrtcVersion) version = functions("nvrtcVersion");
  decltype(&nvrtcGetErrorString) error_string = functions("nvrtcGetErrorString");
  decltype(&nvrtcCreateProgram) create = functions("nvrtcCreateProgram");
  decltype(&nvrtcDestroyProgram) destroy = functions("nvrtcDestroyProgram");
  decltype(&nvrtcCompileProgram) compile = functions("nvrtcCompileProgram");
  decltype(&nvrtcGetProgramLogSize) log_size = functions("nvrtcGetProgramLogSize");
  decltype(&nvrtcGetProgramLog) log = functions("nvrtcGetProgramLog");
  decltype(&nvrtcGetCUBINSize) cubin_size = functions("nvrtcGetCUBINSize");
  decltype(&nvrtcGetCUBIN) cubin = functions("nvrtcGetCUBIN");
  std::string error;  // empty when usable
  std::string version_text;
};

std::string& forced_path() {
  static std::string path;
  return path;
}

void* open_library(std::string& error) {
  std::vector<std::string> candidates;
  if (!forced_path().empty()) {
    candidates.push_back(forced_path());
  } else if (const char* named = std::getenv("CATENA_NVRTC"); named && *named) {
    candidates.emplace_back(named);
  } else {
    const char* names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    for (const char* name : names) candidates.emplace_back(name);
    const char* home = std::getenv("CUDA_HOME");
    for (const std::string& root :
         {std::string(home ? home : ""), std::string("/usr/local/cuda")}) {
      if (root.empty()) continue;
      for (const char* name : names) candidates.push_back(root + "/lib64/" + name);
    }
  }
  for (const std::string& candidate : candidates) {
    if (void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    if (error.empty()) error = dlerror();
  }
  return nullptr;
}

Nvrtc open_nvrtc() {
  std::string error;
  void* const library = open_library(error);
  Nvrtc api{FunctionLookup(library)};
  if (library == nullptr)
    api.error = error;
  else if (const std::string& missing = api.functions.missing(); !missing.empty())
    api.error = "NVRTC has no " + missing;
  if (!api.error.empty()) return api;
  int major = 0, minor = 0;
  api.version(&major, &minor);
  api.version_text = std::to_string(major) + "." + std::to_string(minor);
  return api;
}

const Nvrtc& nvrtc() {
  static const Nvrtc api = open_nvrtc();
  return api;
}

std::string arch_option(int arch) { return "--gpu-architecture=sm_" + std::to_string(arch); }

}  // namespace

void set_nvrtc_path(const std::string& path) { forced_path() = path; }

std::string nvrtc_version() { return nvrtc().version_text; }

Hash128 kernel_key(std::string_view source, int arch, const CompileOptions& options) {
  std::string text(source);
  for (const std::string& option : compile_options()) text += '\n' + option;
  for (const std::string& option : options) text += '\n' + option;
  text += '\n' + arch_option(arch);
  return hash128(text);
}

Hash128 disk_key(const Hash128& kernel_key) {
  return hash128(to_hex(kernel_key) + " nvrtc " + nvrtc_version());
}

std::string compile(const std::string& source, int arch, const char* what,
                    const CompileOptions& more) {
  const Nvrtc& api = nvrtc();
  if (!api.error.empty()) {
    fail<DeviceError>(
        what,
        ": this kernel is neither in the bundle nor in the disk cache and must be compiled, "
        "but NVRTC cannot be used: ",
        api.error,
        ". Install the CUDA toolkit's NVRTC library "
        "(libnvrtc.so.13 or .12), or set LD_LIBRARY_PATH to where it is or CATENA_NVRTC to the "
        "file");
  }
  nvrtcProgram program = nullptr;
  nvrtcResult status = api.create(&program, source.c_str(), what, 0, nullptr, nullptr);
  std::string cubin, log;
  if (status == NVRTC_SUCCESS) {
    std::vector<std::string> options = compile_options();
    options.insert(options.end(), more.begin(), more.end());
    options.push_back(arch_option(arch));
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    status = api.compile(program, static_cast<int>(pointers.size()), pointers.data());
    size_t size = 0;
    if (status == NVRTC_SUCCESS) {
      api.cubin_size(program, &size);
      cubin.resize(size);
      status = api.cubin(program, cubin.data());
    } else if (api.log_size(program, &size) == NVRTC_SUCCESS && size > 1) {
      log.resize(size);
      api.log(program, log.data());
      log.resize(size - 1);
    }
    api.destroy(&program);
  }
  if (status != NVRTC_SUCCESS) {
    fail<ValueError>(what, ": NVRTC ", api.version_text, " could not compile the kernel for sm_",
                     arch, ": ", api.error_string(status), log.empty() ? "" : "\n", log);
  }
  return cubin;
}

}  // namespace catena::jit
