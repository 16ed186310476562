// catena-kernels: compiles standard kernels ahead of time with NVRTC, several at a time. The build
// makes its bundles with it, which needs no GPU. Users run it as `catena-run --prepare`.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/jit/compile/bundle.h"
#include "backends/cuda/jit/compile/function_lookup.h"
#include "backends/cuda/jit/compile/nvrtc.h"
#include "backends/cuda/jit/tool/bundle_list.h"
#include "catena/core/error.h"
#include "core/disk_cache.h"

namespace {

using namespace catena;
using namespace catena::jit;
namespace fs = std::filesystem;

constexpr char kUsage[] =
    R"(usage: catena-kernels --prepare [--arch N] [--programs core|full] [--cache DIR] [--jobs N]
       catena-kernels --arch N --out FILE [--programs core|full] [--cache DIR] [--jobs N]

  --prepare    compiles all standard kernels for the GPUs of this machine into the kernel cache, so
               that no program waits for a compiler
  --arch N     for this architecture, e.g. 90; then no GPU is needed
  --out FILE   writes a bundle for the folder of the cuda plug-in: catena_kernels_90.bundle. Kernels
               that the file has already are kept
  --programs   core: what ordinary training requests; full: all standard kernels [full]
  --cache DIR  the folder of the kernel cache [$CATENA_CACHE_DIR, $XDG_CACHE_HOME/catena or
               ~/.cache/catena for --prepare; none for --out]
  --nvrtc FILE NVIDIA's run-time compiler [searched]
  --jobs N     kernels compiled at a time [one a core]
)";

struct Options {
  bool prepare = false, core_only = false;
  int arch = 0;
  std::string out, cache;
  int jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
};

[[noreturn]] void fail_usage(const std::string& what) {
  throw catena::ValueError("catena-kernels: " + what + "; see catena-kernels --help");
}

int number(const std::string& name, const std::string& value) {
  char* end = nullptr;
  const long result = std::strtol(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0' || result < 1 || result > 100000)
    fail_usage(name + " '" + value + "': expected a number above 0");
  return static_cast<int>(result);
}

void set_option(Options& options, const std::string& name, const std::string& value) {
  if (name == "--arch") {
    options.arch = number(name, value);
  } else if (name == "--out") {
    options.out = value;
  } else if (name == "--cache") {
    options.cache = value;
  } else if (name == "--nvrtc") {
    set_nvrtc_path(value);
  } else if (name == "--jobs") {
    options.jobs = number(name, value);
  } else if (name == "--programs") {
    if (value != "core" && value != "full")
      fail_usage("--programs '" + value + "': expected core or full");
    options.core_only = value == "core";
  } else {
    fail_usage("unknown option '" + name + "'");
  }
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--prepare") {
      options.prepare = true;
      continue;
    }
    if (i + 1 == argc) fail_usage("'" + name + "' is not an option, or its value is missing");
    set_option(options, name, argv[++i]);
  }
  if (options.prepare == !options.out.empty()) fail_usage("expected either --prepare or --out");
  if (!options.prepare && options.arch == 0) fail_usage("--out needs --arch");
  if (options.prepare && options.cache.empty()) options.cache = catena::cache_folder();
  if (options.prepare && options.cache.empty())
    fail_usage("there is no folder for the kernel cache; give --cache DIR or set CATENA_CACHE_DIR");
  return options;
}

// The programs of the list that are not in `bundle`, each once.
std::vector<const BundleItem*> missing_in(const Bundle* bundle, const std::vector<BundleItem>& list,
                                          int arch) {
  std::vector<const BundleItem*> missing;
  std::set<Hash128> seen;
  for (const BundleItem& item : list) {
    const Hash128 key = kernel_key(item.source, arch);
    if (seen.insert(key).second && !(bundle && bundle->find(key))) missing.push_back(&item);
  }
  return missing;
}

// The kernels of `bundle` that are still programs of this version.
std::map<Hash128, std::string> still_valid(const Bundle* bundle, int arch) {
  std::map<Hash128, std::string> cubins;
  if (bundle == nullptr) return cubins;
  for (const BundleItem& item : full_programs()) {
    const Hash128 key = kernel_key(item.source, arch);
    if (const auto cubin = bundle->find(key)) cubins[key] = std::string(*cubin);
  }
  return cubins;
}

// The GPUs of this machine -----------------------------------------------------------------------

struct Driver {
  FunctionLookup functions;
  decltype(&cuInit) init = functions("cuInit");
  decltype(&cuDeviceGetCount) count = functions("cuDeviceGetCount");
  decltype(&cuDeviceGetAttribute) attribute = functions("cuDeviceGetAttribute");
};

[[noreturn]] void no_gpu(const std::string& reason) {
  fail<DeviceError>("no GPU to prepare kernels for: ", reason,
                    "; run this on the machine that has the GPUs, or name their architecture "
                    "(catena-kernels --prepare --arch 90)");
}

Driver open_driver() {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) no_gpu(std::string("the NVIDIA driver does not load: ") + dlerror());
  const Driver driver{FunctionLookup(handle)};
  if (const std::string& missing = driver.functions.missing(); !missing.empty())
    no_gpu("the NVIDIA driver has no " + missing);
  return driver;
}

// The architectures of the visible GPUs, according to the driver, for example {90}, each once.
// Throws DeviceError, which says what to do, if there is no driver or no GPU.
std::vector<int> gpu_archs() {
  const Driver driver = open_driver();
  int count = 0;
  if (const CUresult error = driver.init(0); error != CUDA_SUCCESS)
    no_gpu("the NVIDIA driver answers with error " + std::to_string(error));
  if (driver.count(&count) != CUDA_SUCCESS || count == 0)
    no_gpu("the NVIDIA driver sees none (CUDA_VISIBLE_DEVICES may hide them)");
  std::vector<int> archs;
  for (CUdevice device = 0; device < count; ++device) {
    int major = 0, minor = 0;
    driver.attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    driver.attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    const int arch = major * 10 + minor;
    if (std::find(archs.begin(), archs.end(), arch) == archs.end()) archs.push_back(arch);
  }
  return archs;
}

// Compiling in child processes, because NVRTC compiles one program at a time in a process --------

struct CompileJobs {
  int arch = 0;
  int processes = 1;
  const DiskCache* cache = nullptr;  // if given, it is searched first and filled
  std::string scratch;               // prefix of the names of temporary files
  bool progress = false;             // reports progress on standard error
};
struct Compiled {
  std::map<Hash128, std::string> cubins;  // by kernel_key()
  size_t made = 0;                        // compiled now, not found in the cache
};

using Items = std::span<const BundleItem* const>;

// What the processes share.
struct Shared {
  std::atomic<size_t> next{0}, done{0}, made{0};
};

Shared& make_shared_memory() {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CATENA_CHECK(IoError, memory != MAP_FAILED,
               "catena-kernels: mmap: ", std::string(std::strerror(errno)));
  return *new (memory) Shared;
}

std::string part_name(const CompileJobs& jobs, int process) {
  return jobs.scratch + ".part" + std::to_string(process);
}

std::string compile_one(const CompileJobs& jobs, const BundleItem& item, Shared& shared) {
  bool made = true;
  const auto make = [&] { return compile(item.source, jobs.arch, item.what.c_str()); };
  std::string cubin =
      jobs.cache ? jobs.cache->get(disk_key(kernel_key(item.source, jobs.arch)), make, &made)
                 : make();
  if (made) ++shared.made;
  return cubin;
}

// Runs in a child process: takes items until none is left. Returns the exit status.
int compile_items(const CompileJobs& jobs, Items items, Shared& shared, int process) {
  std::map<Hash128, std::string> cubins;
  try {
    for (size_t i = shared.next++; i < items.size(); i = shared.next++) {
      cubins[kernel_key(items[i]->source, jobs.arch)] = compile_one(jobs, *items[i], shared);
      ++shared.done;
    }
    write_bundle(part_name(jobs, process), cubins);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    shared.next = items.size();
    return 1;
  }
}

void print_progress(const CompileJobs& jobs, size_t done, size_t count) {
  static const bool terminal = isatty(STDERR_FILENO);
  static size_t last = 0;
  const size_t tenth = done * 10 / count;
  if (!jobs.progress || done == last || (!terminal && tenth == last * 10 / count)) return;
  last = done;
  std::fprintf(stderr, "%ssm_%d: %zu of %zu kernels%s", terminal ? "\r" : "", jobs.arch, done,
               count, terminal && done < count ? "" : "\n");
}

// Whether all child processes succeeded.
bool wait_for(const CompileJobs& jobs, std::vector<pid_t> children, const Shared& shared,
              size_t count) {
  bool good = true;
  while (!children.empty()) {
    for (size_t i = 0; i < children.size();) {
      int status = 0;
      if (waitpid(children[i], &status, WNOHANG) != children[i]) {
        ++i;
        continue;
      }
      good = good && status == 0;
      children.erase(children.begin() + std::ptrdiff_t(i));
    }
    print_progress(jobs, shared.done, count);
    if (!children.empty()) usleep(20000);
  }
  return good;
}

void collect(const CompileJobs& jobs, Items items, int processes, Compiled& result) {
  for (int process = 0; process < processes; ++process) {
    const std::string name = part_name(jobs, process);
    if (const auto part = Bundle::open(name)) {
      for (const BundleItem* item : items) {
        const Hash128 key = kernel_key(item->source, jobs.arch);
        if (const auto cubin = part->find(key)) result.cubins[key] = std::string(*cubin);
      }
    }
    std::filesystem::remove(name);
  }
}

// Compiles the programs, each once. Throws Error if one cannot be compiled; the reason is on
// standard error.
Compiled compile_programs(const CompileJobs& jobs, Items items) {
  Compiled result;
  if (items.empty()) return result;
  Shared& shared = make_shared_memory();
  const int processes = std::min(jobs.processes, static_cast<int>(items.size()));
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    const pid_t child = fork();
    if (child == 0) _exit(compile_items(jobs, items, shared, process));
    CATENA_CHECK(IoError, child > 0, "catena-kernels: fork: ", std::string(std::strerror(errno)));
    children.push_back(child);
  }
  const bool good = wait_for(jobs, children, shared, items.size());
  collect(jobs, items, processes, result);
  result.made = shared.made;
  munmap(&shared, sizeof(Shared));
  CATENA_CHECK(Error, good, "catena-kernels: a kernel could not be compiled for sm_", jobs.arch);
  return result;
}

// The two ways to use the program ----------------------------------------------------------------

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void make_bundle(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto list = options.core_only ? core_programs() : full_programs();
  const auto previous = Bundle::open(options.out);
  const auto missing = missing_in(previous.get(), list, options.arch);
  const DiskCache cache(options.cache);
  const CompileJobs jobs{options.arch, options.jobs, options.cache.empty() ? nullptr : &cache,
                         options.out, isatty(STDERR_FILENO) != 0};
  Compiled compiled = compile_programs(jobs, missing);
  compiled.cubins.merge(still_valid(previous.get(), options.arch));
  write_bundle(options.out, compiled.cubins);
  std::printf("kernel bundle for sm_%d: %zu programs, %zu compiled, %.1f MiB, %.1f s\n",
              options.arch, compiled.cubins.size(), compiled.made,
              double(fs::file_size(options.out)) / 1048576, seconds_since(start));
}

// The bundle beside the plug-ins of this build or installation, if there is one.
std::unique_ptr<Bundle> own_bundle(int arch) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
  const std::string name = "catena_kernels_" + std::to_string(arch) + ".bundle";
  for (const std::string& lib : {std::string("lib"), std::string(CATENA_INSTALL_LIBDIR)}) {
    if (auto bundle = Bundle::open(folder / lib / name)) return bundle;
  }
  return nullptr;
}

void prepare(const Options& options) {
  const auto archs = options.arch ? std::vector<int>{options.arch} : gpu_archs();
  const std::string version = nvrtc_version();
  if (version.empty()) compile("", 90, "catena-kernels --prepare");  // throws, saying why
  std::error_code error;
  fs::create_directories(options.cache + "/kernels", error);
  CATENA_CHECK(IoError, access((options.cache + "/kernels").c_str(), W_OK) == 0,
               "catena-kernels: the kernel cache '", options.cache,
               "' cannot be written; set CATENA_CACHE_DIR to a folder that you can write");
  for (const int arch : archs) {
    const auto start = std::chrono::steady_clock::now();
    const auto list = options.core_only ? core_programs() : full_programs();
    const auto bundle = own_bundle(arch);
    const auto missing = missing_in(bundle.get(), list, arch);
    const size_t distinct = missing_in(nullptr, list, arch).size();
    const DiskCache cache(options.cache);
    const std::string scratch = options.cache + "/kernels/prepare" + std::to_string(getpid());
    const Compiled compiled =
        compile_programs({arch, options.jobs, &cache, scratch, true}, missing);
    std::printf(
        "kernels for sm_%d: %zu in the bundle, %zu in %s (%zu compiled now by NVRTC %s), %.1f s\n",
        arch, distinct - missing.size(), missing.size(), options.cache.c_str(), compiled.made,
        version.c_str(), seconds_since(start));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2 && (std::string(argv[1]) == "--help" || std::string(argv[1]) == "-h")) {
      std::fputs(kUsage, stdout);
      return 0;
    }
    const Options options = parse(argc, argv);
    options.prepare ? prepare(options) : make_bundle(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
