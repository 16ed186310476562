#include "check.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "../src/comm/installation.h"
#include "gpus.h"
#include "mpirun_command.h"
#include "placement.h"
#include "program.h"
#include "text.h"

namespace catena::launch {

namespace {

namespace fs = std::filesystem;
using State = CheckItem::State;
using Items = std::vector<CheckItem>;

std::string gibibytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f GiB", bytes / (1u << 30));
  return text;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// A shared library that is looked at and then left loaded: some do not survive dlclose.
class Library {
 public:
  explicit Library(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_) return;
      const char* error = dlerror();
      if (error_.empty() && error) error_ = error;
    }
  }
  bool loaded() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  template <typename Function>
  Function find(const char* symbol) const {
    return reinterpret_cast<Function>(dlsym(handle_, symbol));
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

std::string version_text(std::int64_t number, std::int64_t major_unit, std::int64_t minor_unit) {
  return std::to_string(number / major_unit) + "." +
         std::to_string(number % major_unit / minor_unit) + "." +
         std::to_string(number % minor_unit);
}

std::string with_path(std::string version, const std::string& path) {
  if (path.empty()) return version;
  return version.append(", ").append(path);
}

CheckItem not_found(const std::string& name, bool wanted, const std::string& packages,
                    const std::string& purpose) {
  return {wanted ? State::missing : State::absent, name, "not found; " + purpose,
          wanted ? packages : ""};
}

// Vendor libraries ----------------------------------------------------------------------------

CheckItem check_cudart(bool wanted) {
  const Library library({"libcudart.so.13", "libcudart.so.12", "libcudart.so"});
  if (!library.loaded())
    return not_found("CUDA runtime", wanted, "cuda-toolkit-13-0",
                     "GPUs cannot be used (NVIDIA's own package source has it)");
  int number = 0;
  const auto version = library.find<int (*)(int*)>("cudaRuntimeGetVersion");
  if (version) version(&number);
  return {State::good, "CUDA runtime",
          with_path(std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10),
                    library.path("cudaRuntimeGetVersion")),
          ""};
}

CheckItem check_nvrtc(bool wanted) {
  const std::string named = environment("CATENA_NVRTC");
  using Names = std::vector<std::string>;
  const Library library(named.empty() ? Names{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}
                                      : Names{named});
  if (!library.loaded() && !named.empty())
    return {CheckItem::State::missing, "NVRTC",
            "CATENA_NVRTC names '" + named +
                "', which cannot be loaded; unset it or name libnvrtc's file",
            ""};
  if (!library.loaded())
    return not_found("NVRTC", wanted, "cuda-toolkit-13-0",
                     "kernels that users write themselves cannot be compiled");
  int major = 0;
  int minor = 0;
  const auto version = library.find<int (*)(int*, int*)>("nvrtcVersion");
  if (version) version(&major, &minor);
  return {
      State::good, "NVRTC",
      with_path(std::to_string(major) + "." + std::to_string(minor), library.path("nvrtcVersion")),
      ""};
}

CheckItem check_nccl(bool wanted) {
  const Library library({"libnccl.so.2"});
  if (!library.loaded())
    return not_found("NCCL", wanted, "libnccl2 libnccl-dev",
                     "ranks cannot exchange device memory directly");
  int number = 0;
  const auto version = library.find<int (*)(int*)>("ncclGetVersion");
  if (version) version(&number);
  return {State::good, "NCCL",
          with_path(version_text(number, 10000, 100), library.path("ncclGetVersion")), ""};
}

// Files ---------------------------------------------------------------------------------------

fs::path cache_folder() {
  for (const char* name : {"CATENA_CACHE_DIR", "CUPY_CACHE_DIR"}) {
    if (!environment(name).empty()) return environment(name);
  }
  if (!environment("XDG_CACHE_HOME").empty())
    return fs::path(environment("XDG_CACHE_HOME")) / "catena";
  return fs::path(environment("HOME")) / ".cache" / "catena";
}

struct CacheUses {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
};

// Two numbers that the cache keeps beside the kernels (src/backends/cuda/jit/compile/disk_cache.h).
CacheUses cache_uses(const fs::path& folder) {
  CacheUses uses;
  std::ifstream file(folder / "kernels" / "uses", std::ios::binary);
  file.read(reinterpret_cast<char*>(&uses), sizeof(uses));
  return file ? uses : CacheUses{};
}

CheckItem check_dataset() {
  const fs::path folder = "/usr/share/datasets/fashion-mnist";
  if (fs::exists(folder / "train-images-idx3-ubyte.gz"))
    return {State::good, "Fashion-MNIST", folder.string(), ""};
  return not_found("Fashion-MNIST", true, "dataset-fashion-mnist",
                   "the examples need it or --data DIR");
}

CheckItem check_shared_memory() {
  struct statvfs status {};
  if (statvfs("/dev/shm", &status) != 0)
    return {State::missing, "/dev/shm", "not there; ranks of one host exchange data through it",
            ""};
  const double size = static_cast<double>(status.f_blocks) * static_cast<double>(status.f_frsize);
  const double free = static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
  const std::string text = gibibytes(size) + ", " + gibibytes(free) + " free";
  if (size < 512.0 * (1u << 20))
    return {State::missing, "/dev/shm",
            text +
                "; too small for NCCL, start containers with "
                "--shm-size=1g",
            ""};
  return {State::good, "/dev/shm", text, ""};
}

CheckItem check_locked_memory() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {State::good, "locked memory", "unlimited", ""};
  return {State::absent, "locked memory",
          std::to_string(limit.rlim_cur >> 10) +
              " KiB; InfiniBand needs it unlimited (ulimit -l, containers: --ulimit memlock=-1)",
          ""};
}

std::vector<std::string> plugin_folders() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = program.parent_path();
  const fs::path prefix = folder.parent_path();
  std::vector<std::string> folders;  // in the order in which libcatena looks
  for (const std::string& named : split(environment("CATENA_PLUGIN_PATH"), ':'))
    if (!named.empty()) folders.push_back(named);
  for (const fs::path& own :
       {folder, prefix / "lib", prefix / "lib" / "catena", prefix / "lib" / "x86_64-linux-gnu",
        prefix / "lib" / "x86_64-linux-gnu" / "catena", prefix / "src"})
    folders.push_back(own.string());
  return folders;
}

// The first of `files` that the first folder with any of them has.
std::string find_file(const std::vector<std::string>& folders,
                      const std::vector<std::string>& files) {
  for (const std::string& folder : folders)
    for (const std::string& file : files)
      if (fs::exists(folder + "/" + file)) return folder + "/" + file;
  return "";
}

std::string links_of(const GpuInventory& inventory, std::size_t gpu) {
  std::string text;
  for (std::size_t other = 0; other < inventory.links[gpu].size(); ++other) {
    if (other == gpu) continue;
    text += text.empty() ? "" : ", ";
    text.append(inventory.links[gpu][other]).append(" to cuda:").append(std::to_string(other));
  }
  return text;
}

void append(Items& items, const Items& more) {
  items.insert(items.end(), more.begin(), more.end());
}

}  // namespace

Items check_machine() {
  const cpu_set_t allowed = allowed_cpus();
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const int cores = usable_cores();
  return {{State::good, "host",
           host_name() + ", " + std::to_string(cores) + " cores (" +
               std::to_string(CPU_COUNT(&allowed)) + " hardware threads), " + gibibytes(memory),
           ""},
          check_shared_memory(),
          check_locked_memory()};
}

Items check_gpus() {
  const GpuInventory inventory = find_gpus(true);
  if (inventory.gpus.empty()) return {{State::absent, "GPUs", "none: " + inventory.problem, ""}};
  Items items = {
      {State::good, "NVIDIA driver", inventory.driver + ", runs CUDA up to " + inventory.cuda, ""}};
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i) {
    const Gpu& gpu = inventory.gpus[i];
    std::string text = gpu.name;
    text.append(", ").append(gibibytes(static_cast<double>(gpu.memory)));
    text.append(", PCI ").append(gpu.bus_id);
    if (inventory.links.size() > 1) text.append("; ").append(links_of(inventory, i));
    items.push_back({State::good, "cuda:" + std::to_string(i), text, ""});
  }
  return items;
}

Items check_libraries(bool has_gpus) {
  return {check_cudart(has_gpus), check_nvrtc(has_gpus), check_nccl(has_gpus)};
}

Items check_mpi(const std::string& mpirun) {
  Items items;
  try {
    const Mpirun found = find_mpirun(mpirun);
    items.push_back(
        {State::good, "mpirun", "Open MPI " + found.version.text + ", " + found.path, ""});
  } catch (const UserError& error) {
    items.push_back({State::missing, "mpirun", error.what(), "openmpi-bin"});
  }
  const auto compiler = find_executable("mpicxx");
  const bool wanted = find_file(plugin_folders(), {"libcatena_mpi.so"}).empty();
  if (compiler)
    items.push_back({State::good, "mpicxx", *compiler, ""});
  else
    items.push_back(
        not_found("mpicxx", wanted, "libopenmpi-dev", "the MPI plug-in is built with it"));
  return items;
}

namespace {

std::string version_of(const Library& catena) {
  const auto ask = catena.find<comm::CheckVersion>(comm::kCheckVersionSymbol);
  return ask ? ask() : "of another version";
}

// What libcatena says of a plug-in, or, without it, the loader.
std::string problem_of_plugin(const Library& catena, const std::string& name,
                              const std::string& path) {
  const auto ask =
      catena.loaded() ? catena.find<comm::CheckPlugin>(comm::kCheckPluginSymbol) : nullptr;
  if (ask) return ask(name.c_str());
  const Library library({path});
  return library.loaded() ? "" : "does not load: " + library.error();
}

}  // namespace

Items check_plugins(const std::vector<std::string>& folders, bool has_gpus) {
  const std::string core = find_file(folders, {"libcatena.so", CATENA_SONAME});
  const Library catena(core.empty() ? std::vector<std::string>{} : std::vector{core});
  Items items;
  if (core.empty())
    items.push_back({State::absent, "libcatena", "not built or not installed", ""});
  else if (catena.loaded())
    items.push_back({State::good, "libcatena", with_path(version_of(catena), core), ""});
  else
    items.push_back({State::missing, "libcatena", "does not load: " + catena.error(), ""});
  for (const std::string plugin : {"mpi", "cuda", "nccl", "cudnn", "onednn"}) {
    const std::string name = "libcatena_" + plugin;
    const std::string path = find_file(folders, {name + ".so"});
    if (path.empty()) {
      // These two only make faster what works without them: nothing to say where nobody wants them.
      const bool optional = plugin == "cudnn" || plugin == "onednn";
      if (!optional) items.push_back({State::absent, name, "not built or not installed", ""});
      continue;
    }
    const std::string problem = problem_of_plugin(catena, plugin, path);
    const bool for_gpus = plugin == "cuda" || plugin == "nccl" || plugin == "cudnn";
    if (problem.empty())
      items.push_back({State::good, name, path, ""});
    else
      items.push_back({for_gpus && !has_gpus ? State::absent : State::missing, name, problem, ""});
  }
  const auto kernels =
      catena.loaded() ? catena.find<comm::CheckKernels>(comm::kCheckKernelsSymbol) : nullptr;
  if (const std::string text = kernels ? kernels() : ""; !text.empty())
    items.push_back({State::good, "GPU kernels", text, ""});
  int best = 0;
  if (const auto cpu =
          catena.loaded() ? catena.find<comm::CheckCpu>(comm::kCheckCpuSymbol) : nullptr) {
    const std::string text = cpu(&best);
    items.push_back({best ? State::good : State::missing, "CPU kernels", text, ""});
  }
  return items;
}

CheckItem check_kernel_cache() {
  const fs::path folder = cache_folder();
  std::error_code error;
  std::uintmax_t bytes = 0;
  int kernels = 0;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored) || entry->path().extension() != ".cubin") continue;
    ++kernels;
    bytes += entry->file_size(ignored);
  }
  std::string text =
      kernels == 0 ? "empty"
                   : std::to_string(kernels) + " kernels, " + std::to_string(bytes >> 10) + " KiB";
  const auto [hits, misses] = cache_uses(folder);
  text += "; " + std::to_string(hits) + " hits, " + std::to_string(misses) + " misses so far";
  return {State::good, "kernel cache", with_path(std::move(text), folder.string()), ""};
}

Items check_files() { return {check_kernel_cache(), check_dataset()}; }

std::string format_check(const Items& items) {
  std::string text;
  std::set<std::string> packages;
  std::size_t width = 0;
  for (const CheckItem& item : items) width = std::max(width, item.name.size());
  for (const CheckItem& item : items) {
    const char* state = item.state == State::good     ? "ok       "
                        : item.state == State::absent ? "-        "
                                                      : "MISSING  ";
    text.append(state).append(item.name).append(width + 2 - item.name.size(), ' ');
    text.append(item.text).append("\n");
    for (const std::string& package : split_words(item.packages)) packages.insert(package);
  }
  if (packages.empty()) return text;
  const std::vector<std::string> names(packages.begin(), packages.end());
  text.append("\nTo install what is missing:\n  ").append(geteuid() == 0 ? "" : "sudo ");
  return text.append("apt-get install ").append(join(names, " ")).append("\n");
}

int run_check(const Options& options) {
  Items items = check_machine();
  const Items gpus = check_gpus();
  const bool has_gpus = gpus.size() > 1;
  append(items, gpus);
  append(items, check_mpi(options.mpirun));
  append(items, check_libraries(has_gpus));
  append(items, check_plugins(plugin_folders(), has_gpus));
  append(items, check_files());
  std::fputs(format_check(items).c_str(), stdout);
  const bool missing = std::any_of(items.begin(), items.end(), [](const CheckItem& item) {
    return item.state == State::missing;
  });
  return missing ? 1 : 0;
}

}  // namespace catena::launch
