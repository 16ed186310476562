// catena-kernels: compiles standard kernels ahead of time with NVRTC, several at a time. The build
// makes its bundles with it, which needs no GPU. Users run it as `catena-run --prepare`.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

#include "backends/cuda/jit/compile/bundle.h"
#include "backends/cuda/jit/compile/nvrtc.h"
#include "backends/cuda/jit/tool/compile_jobs.h"
#include "backends/cuda/jit/tool/gpu_archs.h"
#include "catena/core/error.h"

namespace {

using namespace catena::jit;
using catena::DiskCache;
using catena::Hash128;
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
