// The probes of libraries: of vendors, libcatena and its plug-ins.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "../src/comm/installation.h"
#include "../src/core/library_file.h"
#include "../src/core/standard_folders.h"
#include "base/program.h"
#include "cli/probes.h"

namespace catena::launch {
namespace {

namespace fs = std::filesystem;
using State = CheckItem::State;
using Names = std::vector<std::string>;

// A shared library that is opened and stays loaded: some do not survive dlclose.
class Library {
 public:
  // The first of these files that loads.
  explicit Library(const Names& names) {
    for (const std::string& name : names) {
      // A bare name is looked for by the loader.
      error_ = name.find('/') == std::string::npos ? "" : problem_of_library_file(name);
      if (!error_.empty()) return;
      handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) return;
      const char* error = dlerror();
      if (error_.empty() && error) error_ = error;
    }
  }
  bool loaded() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  // nullptr when it is not loaded, or has no such function.
  template <typename Function>
  Function find(const char* symbol) const {
    return handle_ ? reinterpret_cast<Function>(dlsym(handle_, symbol)) : nullptr;
  }
  // The file that `symbol` came from.
  std::string path(const char* symbol) const {
    Dl_info info{};
    void* address = dlsym(handle_, symbol);
    return address && dladdr(address, &info) != 0 ? info.dli_fname : "";
  }

 private:
  void* handle_ = nullptr;
  std::string error_;
};

constexpr const char *kCudaPackages = "cuda-toolkit-13-0", *kNcclPackages = "libnccl2 libnccl-dev",
                     *kMpiPackages = "libopenmpi-dev";

// Vendor libraries ----------------------------------------------------------------------------

using AskOneNumber = int (*)(int*);
using AskTwoNumbers = int (*)(int*, int*);

std::string cudart_version(const Library& library, const char* symbol) {
  int number = 0;
  if (const auto ask = library.find<AskOneNumber>(symbol)) ask(&number);
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

std::string nvrtc_version(const Library& library, const char* symbol) {
  int major = 0, minor = 0;
  if (const auto ask = library.find<AskTwoNumbers>(symbol)) ask(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string nccl_version(const Library& library, const char* symbol) {
  int number = 0;
  if (const auto ask = library.find<AskOneNumber>(symbol)) ask(&number);
  return std::to_string(number / 10000) + "." + std::to_string(number % 10000 / 100) + "." +
         std::to_string(number % 100);
}

struct VendorLibrary {
  const char* name;
  Names files;
  const char* variable;  // of the environment, that names a file instead; nullptr: there is none
  const char* file;      // what that file is
  const char* symbol;
  std::string (*version)(const Library& library, const char* symbol);
  const char* packages;
  const char* purpose;
};

const std::vector<VendorLibrary>& vendor_libraries() {
  static const std::vector<VendorLibrary> libraries = {
      {"CUDA runtime",
       {"libcudart.so.13", "libcudart.so.12", "libcudart.so"},
       nullptr,
       nullptr,
       "cudaRuntimeGetVersion",
       cudart_version,
       kCudaPackages,
       "GPUs cannot be used (NVIDIA's own package source has it)"},
      {"NVRTC",
       {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
       "CATENA_NVRTC",
       "libnvrtc's file",
       "nvrtcVersion",
       nvrtc_version,
       kCudaPackages,
       "kernels that users write themselves cannot be compiled"},
      {"NCCL",
       {"libnccl.so.2"},
       nullptr,
       nullptr,
       "ncclGetVersion",
       nccl_version,
       kNcclPackages,
       "ranks cannot exchange device memory directly"}};
  return libraries;
}

CheckItem probe_vendor_library(const VendorLibrary& vendor, bool wanted) {
  const char* set = vendor.variable ? std::getenv(vendor.variable) : nullptr;
  const std::string named = set ? set : "";
  const Library library(named.empty() ? vendor.files : Names{named});
  if (library.loaded())
    return {State::good, vendor.name,
            with_path(vendor.version(library, vendor.symbol), library.path(vendor.symbol)), ""};
  if (named.empty()) return not_found(vendor.name, wanted, vendor.packages, vendor.purpose);
  return {State::missing, vendor.name,
          std::string(vendor.variable) + " names '" + named +
              "', which cannot be loaded; unset it or name " + vendor.file,
          ""};
}

// libcatena -----------------------------------------------------------------------------------

Library open_libcatena(const CheckContext& context) {
  const std::string file = find_libcatena(context);
  return Library(file.empty() ? Names{} : Names{file});
}

// Where libcatena looks for its plug-ins; without it, where it would.
std::vector<fs::path> folders_of_plugins(const CheckContext& context) {
  const std::string file = find_libcatena(context);
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  if (!error) return plugin_folders(real.parent_path());
  std::vector<fs::path> folders;
  for (const std::string& folder : context.library_folders)
    for (const fs::path& one : plugin_folders(folder)) folders.push_back(one);
  return folders;
}

struct Plugin {
  const char* name;
  bool for_gpus;
  bool companion;  // only makes faster what works without it
};
constexpr Plugin kPlugins[] = {{"mpi", false, false},
                               {"cuda", true, false},
                               {"nccl", true, false},
                               {"cudnn", true, true},
                               {"onednn", false, true}};

// What libcatena says of a plug-in, or, without it, the loader; "" when it can be used.
std::string problem_of_plugin(const Library& catena, const char* name, const std::string& path) {
  if (const auto ask = catena.find<comm::CheckPlugin>(comm::kCheckPluginSymbol)) return ask(name);
  const Library library({path});
  return library.loaded() ? "" : "does not load: " + library.error();
}

// The apt packages of the library that a plug-in lacks, going by what is said of it.
std::string packages_for(const std::string& problem) {
  static const std::pair<const char*, const char*> packages[] = {
      {"libdnnl.so", "libdnnl-dev"},  // the library's own package has another name on each system
      {"libcudnn.so.9", "libcudnn9-cuda-13"},
      {"libcublasLt.so", kCudaPackages},
      {"libcudart.so", kCudaPackages},
      {"libnccl.so", kNcclPackages},
      {"libmpi.so", kMpiPackages}};
  if (problem.find("cannot open shared object file") == std::string::npos) return "";
  for (const auto& [library, names] : packages)
    if (problem.find(library) != std::string::npos) return names;
  return "";
}

std::string named_library(const std::string& name, int major, int minor, int patch,
                          const std::string& file) {
  return name + " " + std::to_string(major) + "." + std::to_string(minor) + "." +
         std::to_string(patch) + " of " + file;
}

// "oneDNN 2.6.0 of /usr/lib/x86_64-linux-gnu/libdnnl.so.2"; "" for plug-ins of other libraries.
// Symbols of a plug-in that is loaded are looked for in what it is linked to as well.
std::string library_of_plugin(const std::string& path) {
  const Library plugin({path});
  if (const auto ask = plugin.find<const int* (*)()>("dnnl_version")) {
    const int* v = ask();  // begins with major, minor and patch in every version
    return named_library("oneDNN", v[0], v[1], v[2], plugin.path("dnnl_version"));
  }
  if (const auto ask = plugin.find<std::size_t (*)()>("cudnnGetVersion")) {
    const int v = static_cast<int>(ask());
    return named_library("cuDNN", v / 10000, v % 10000 / 100, v % 100,
                         plugin.path("cudnnGetVersion"));
  }
  return "";
}

CheckItem item_of_plugin(const Library& catena, const Plugin& plugin, const std::string& path,
                         bool has_gpus) {
  const std::string name = std::string("libcatena_") + plugin.name;
  const std::string problem = problem_of_plugin(catena, plugin.name, path);
  if (problem.empty()) {
    const std::string library = library_of_plugin(path);
    return {State::good, name, library.empty() ? path : path + ", with " + library, ""};
  }
  if (plugin.for_gpus && !has_gpus) return {State::absent, name, problem, ""};
  return {State::missing, name, problem, packages_for(problem)};
}

}  // namespace

std::string find_libcatena(const CheckContext& context) {
  for (const std::string& folder : context.library_folders)
    for (const char* file : {"libcatena.so", CATENA_SONAME})
      if (fs::exists(folder + "/" + file)) return folder + "/" + file;
  return "";
}

CheckItems probe_mpi_compiler(const CheckContext& context) {
  if (const auto compiler = find_executable("mpicxx"))
    return {{State::good, "mpicxx", *compiler, ""}};
  const bool wanted = find_plugin(folders_of_plugins(context), "mpi").empty();
  return {not_found("mpicxx", wanted, kMpiPackages, "the MPI plug-in is built with it")};
}

CheckItems probe_vendor_libraries(const CheckContext& context) {
  CheckItems items;
  for (const VendorLibrary& vendor : vendor_libraries())
    items.push_back(probe_vendor_library(vendor, context.has_gpus()));
  return items;
}

CheckItems probe_libcatena(const CheckContext& context) {
  const std::string file = find_libcatena(context);
  if (file.empty()) return {{State::absent, "libcatena", "not built or not installed", ""}};
  const Library catena = open_libcatena(context);
  if (!catena.loaded())
    return {{State::missing, "libcatena", "does not load: " + catena.error(), ""}};
  const auto ask = catena.find<comm::CheckVersion>(comm::kCheckVersionSymbol);
  return {{State::good, "libcatena", with_path(ask ? ask() : "of another version", file), ""}};
}

CheckItems probe_plugins(const CheckContext& context) {
  const Library catena = open_libcatena(context);
  const std::vector<fs::path> folders = folders_of_plugins(context);
  CheckItems items;
  for (const Plugin& plugin : kPlugins) {
    const std::string name = std::string("libcatena_") + plugin.name;
    const std::string path = find_plugin(folders, plugin.name).string();
    if (path.empty()) {
      items.push_back({State::absent, name,
                       plugin.companion ? "not built or not installed; catena's own kernels serve"
                                        : "not built or not installed",
                       ""});
      continue;
    }
    items.push_back(item_of_plugin(catena, plugin, path, context.has_gpus()));
  }
  return items;
}

CheckItems probe_kernels(const CheckContext& context) {
  const Library catena = open_libcatena(context);
  CheckItems items;
  const auto gpu = catena.find<comm::CheckKernels>(comm::kCheckKernelsSymbol);
  if (const std::string text = gpu ? gpu() : ""; !text.empty())
    items.push_back({State::good, "GPU kernels", text, ""});
  int good = 1, best = 0;
  const auto providers = catena.find<comm::CheckProviders>(comm::kCheckProvidersSymbol);
  if (const std::string text = providers ? providers(&good) : ""; !text.empty())
    items.push_back({good ? State::good : State::missing, "providers", text, ""});
  if (const auto cpu = catena.find<comm::CheckCpu>(comm::kCheckCpuSymbol)) {
    const std::string text = cpu(&best);
    items.push_back({best ? State::good : State::missing, "CPU kernels", text, ""});
  }
  return items;
}

}  // namespace catena::launch
