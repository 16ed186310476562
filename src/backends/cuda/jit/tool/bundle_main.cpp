// Host tool of the build: compiles the standard kernels for one architecture into a bundle. Uses
// NVRTC and needs no GPU. Kernels that the previous bundle has already are taken from it.
//
//   catena_bundle --arch 90 --out catena_kernels_90.bundle [--nvrtc libnvrtc.so] [--jobs N]
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
#include <fstream>
#include <map>
#include <new>
#include <thread>
#include <vector>

#include "backends/cuda/jit/compile/bundle.h"
#include "backends/cuda/jit/compile/nvrtc.h"
#include "backends/cuda/jit/tool/bundle_list.h"
#include "catena/core/error.h"

namespace {

using namespace catena::jit;

struct Options {
  int arch = 0;
  std::string out;
  int jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--arch")
      options.arch = std::atoi(value.c_str());
    else if (name == "--out")
      options.out = value;
    else if (name == "--nvrtc")
      set_nvrtc_path(value);
    else if (name == "--jobs")
      options.jobs = std::max(1, std::atoi(value.c_str()));
    else
      throw catena::ValueError("catena_bundle: unknown option " + name);
  }
  if (options.arch == 0 || options.out.empty())
    throw catena::ValueError("catena_bundle: --arch and --out are needed");
  return options;
}

struct Pending {
  Hash128 key;
  const BundleItem* item;
};

std::string part_name(const Options& options, int job) {
  return options.out + ".part" + std::to_string(job);
}

// Runs in a child process (NVRTC compiles one program at a time in a process): takes items off the
// shared counter until none is left. Returns the exit status.
int compile_items(const Options& options, const std::vector<Pending>& pending,
                  std::atomic<size_t>& next, int job) {
  std::map<Hash128, std::string> cubins;
  for (size_t i = next++; i < pending.size(); i = next++) {
    try {
      cubins[pending[i].key] =
          compile(pending[i].item->source, options.arch, pending[i].item->what.c_str());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      next = pending.size();
      return 1;
    }
  }
  write_bundle(part_name(options, job), cubins);
  return 0;
}

void compile_all(const Options& options, const std::vector<Pending>& pending,
                 const std::vector<BundleItem>& list, int arch,
                 std::map<Hash128, std::string>& cubins) {
  void* shared = mmap(nullptr, sizeof(std::atomic<size_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& next = *new (shared) std::atomic<size_t>(0);
  std::vector<pid_t> children;
  for (int job = 0; job < options.jobs; ++job) {
    const pid_t child = fork();
    if (child == 0) _exit(compile_items(options, pending, next, job));
    if (child < 0)
      throw catena::IoError(std::string("catena_bundle: fork: ") + std::strerror(errno));
    children.push_back(child);
  }
  bool failed = false;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed = failed || status != 0;
  }
  for (int job = 0; job < options.jobs; ++job) {
    const std::string name = part_name(options, job);
    if (const auto part = Bundle::open(name)) {
      for (const BundleItem& item : list) {
        const Hash128 key = kernel_key(item.source, arch);
        if (const auto cubin = part->find(key)) cubins[key] = std::string(*cubin);
      }
    }
    std::filesystem::remove(name);
  }
  if (failed) throw catena::Error("catena_bundle: a kernel could not be compiled");
}

int run(int argc, char** argv) {
  const auto start = std::chrono::steady_clock::now();
  const Options options = parse(argc, argv);
  const std::vector<BundleItem> list = bundle_list();
  std::map<Hash128, std::string> cubins;
  std::vector<Pending> pending;
  {
    const auto previous = Bundle::open(options.out);
    std::map<Hash128, bool> seen;
    for (const BundleItem& item : list) {
      const Hash128 key = kernel_key(item.source, options.arch);
      if (!seen.emplace(key, true).second) continue;
      if (const auto cubin = previous ? previous->find(key) : std::nullopt)
        cubins[key] = std::string(*cubin);
      else
        pending.push_back({key, &item});
    }
  }
  const size_t reused = cubins.size();
  if (!pending.empty()) compile_all(options, pending, list, options.arch, cubins);
  write_bundle(options.out, cubins);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("kernel bundle for sm_%d: %zu programs, %zu compiled, %zu reused, %.1f MiB, %.1f s\n",
              options.arch, cubins.size(), pending.size(), reused,
              double(std::filesystem::file_size(options.out)) / 1048576, seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
