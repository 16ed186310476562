// Compiles in child processes, because NVRTC compiles one program at a time in a process. See
// compile_jobs.h.
#include "backends/cuda/jit/tool/compile_jobs.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>

#include "backends/cuda/jit/compile/bundle.h"
#include "backends/cuda/jit/compile/nvrtc.h"
#include "catena/core/error.h"

namespace catena::jit {

namespace {

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

}  // namespace

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

}  // namespace catena::jit
