#include "cli/probes.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "../src/core/standard_folders.h"
#include "base/text.h"
#include "plan/placement.h"
#include "starter/starter.h"

namespace catena::launch {
namespace {

namespace fs = std::filesystem;
using State = CheckItem::State;

std::string links_of(const GpuInventory& inventory, std::size_t gpu) {
  std::string text;
  for (std::size_t other = 0; other < inventory.links[gpu].size(); ++other) {
    if (other == gpu) continue;
    text += text.empty() ? "" : ", ";
    text.append(inventory.links[gpu][other]).append(" to cuda:").append(std::to_string(other));
  }
  return text;
}

// A file system may refuse what the permissions of its folder allow, as /proc does to root.
bool takes_files(const std::string& folder) {
  std::string name = folder + "/.catena-check-XXXXXX";
  const int fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return false;
  close(fd);
  unlink(name.c_str());
  return true;
}

// Why nothing can be kept there; "" when it can, or when the folder has yet to be made.
std::string problem_of_cache(const std::string& folder) {
  const std::string said = "'" + folder.substr(0, 200) + "' cannot hold it: ";
  const std::string cure = "; set CATENA_CACHE_DIR to a folder that you may write";
  std::error_code error;
  const fs::file_status link = fs::symlink_status(folder, error);
  if (link.type() == fs::file_type::not_found) {
    const fs::path parent = fs::absolute(folder).parent_path();
    const bool may = !fs::exists(parent, error) || access(parent.c_str(), W_OK) == 0;
    return may ? "" : said + parent.string() + " cannot be written" + cure;
  }
  if (link.type() == fs::file_type::none) return said + error.message() + cure;
  const fs::file_status status = fs::status(folder, error);
  if (!fs::exists(status)) return said + "it is a link to nothing" + cure;
  if (!fs::is_directory(status)) return said + "it is not a folder" + cure;
  return takes_files(folder) ? "" : said + "it cannot be written" + cure;
}

// The values of a kind in the cache folder: how many, their size, and how often they were found and
// made.
std::string values_of_cache(const std::string& folder, const CacheKind& kind, const char* name) {
  std::error_code error;
  std::uintmax_t bytes = 0;
  int values = 0;
  for (auto entry = fs::directory_iterator(fs::path(folder) / kind.folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored) || entry->path().extension() != kind.suffix) continue;
    ++values;
    bytes += entry->file_size(ignored);
  }
  const auto [hits, misses] = read_cache_uses(folder, kind);
  const std::string held = values == 0 ? "empty"
                                       : std::to_string(values) + " " + name + ", " +
                                             std::to_string(bytes >> 10) + " KiB";
  return held + "; " + std::to_string(hits) + " hits, " + std::to_string(misses) + " misses so far";
}

}  // namespace

CheckItem not_found(const std::string& name, bool wanted, const std::string& packages,
                    const std::string& purpose) {
  return {wanted ? State::missing : State::absent, name, "not found; " + purpose,
          wanted ? packages : ""};
}

std::string with_path(const std::string& text, const std::string& path) {
  return path.empty() ? text : text + ", " + path;
}

std::vector<std::string> check_library_folders() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path prefix = folder.parent_path(), lib = prefix / "lib";
  std::vector<std::string> folders;
  const char* named = std::getenv("CATENA_PLUGIN_PATH");
  for (const std::string& one : split(named ? named : "", ':'))
    if (!one.empty()) folders.push_back(one);
  for (const fs::path& own : {folder, lib, lib / "x86_64-linux-gnu", prefix / "src"})
    folders.push_back(own.string());
  return folders;
}

CheckContext make_check_context(const JobSpec& job) {
  return {job, find_gpus(true), check_library_folders()};
}

CheckItems probe_host(const CheckContext&) {
  const cpu_set_t allowed = allowed_cpus();
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return {{State::good, "host",
           host_name() + ", " + std::to_string(usable_cores()) + " cores (" +
               std::to_string(CPU_COUNT(&allowed)) + " hardware threads), " + size_text(memory),
           ""}};
}

CheckItems probe_shared_memory(const CheckContext&) {
  std::error_code error;
  const fs::space_info space = fs::space("/dev/shm", error);
  if (error)
    return {
        {State::missing, "/dev/shm", "not there; ranks of one host exchange data through it", ""}};
  const auto size = static_cast<double>(space.capacity);
  const std::string text =
      size_text(size) + ", " + size_text(static_cast<double>(space.available)) + " free";
  if (size >= 512.0 * (1u << 20)) return {{State::good, "/dev/shm", text, ""}};
  return {{State::missing, "/dev/shm",
           text + "; too small for NCCL, start containers with --shm-size=1g", ""}};
}

CheckItems probe_locked_memory(const CheckContext&) {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {{State::good, "locked memory", "unlimited", ""}};
  return {{State::absent, "locked memory",
           std::to_string(limit.rlim_cur >> 10) +
               " KiB; InfiniBand needs it unlimited (ulimit -l, containers: --ulimit memlock=-1)",
           ""}};
}

CheckItems probe_gpus(const CheckContext& context) {
  const GpuInventory& inventory = context.gpus;
  if (inventory.gpus.empty()) return {{State::absent, "GPUs", "none: " + inventory.problem, ""}};
  CheckItems items = {
      {State::good, "NVIDIA driver", inventory.driver + ", runs CUDA up to " + inventory.cuda, ""}};
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i) {
    const Gpu& gpu = inventory.gpus[i];
    std::string text = gpu.name;
    text.append(", ").append(size_text(static_cast<double>(gpu.memory)));
    text.append(", PCI ").append(gpu.bus_id);
    if (inventory.links.size() > 1) text.append("; ").append(links_of(inventory, i));
    items.push_back({State::good, "cuda:" + std::to_string(i), text, ""});
  }
  return items;
}

CheckItems probe_starter(const CheckContext& context) {
  const auto starter = choose_starter(context.job);
  const std::string name = starter->terms().name;
  try {
    return {{State::good, name, starter->check(), ""}};
  } catch (const UserError& error) {
    return {{State::missing, name, error.what(), starter->terms().packages}};
  }
}

// What it holds of each kind.
CheckItems probe_kernel_cache(const CheckContext&) {
  const std::string folder = cache_folder();
  if (folder.empty())
    return {
        {State::good, "kernel cache", "none; CATENA_CACHE_DIR is empty, or HOME is not set", ""}};
  if (const std::string problem = problem_of_cache(folder); !problem.empty())
    return {{State::missing, "kernel cache", problem, ""}};
  std::error_code error;
  std::string text = values_of_cache(folder, kKernelCache, "kernels");
  if (fs::exists(fs::path(folder) / kPlanCache.folder, error))
    text += "; " + values_of_cache(folder, kPlanCache, "plans of cuDNN");
  return {{State::good, "kernel cache", with_path(text, folder), ""}};
}

CheckItems probe_dataset(const CheckContext&) {
  const fs::path folder = "/usr/share/datasets/fashion-mnist";
  if (fs::exists(folder / "train-images-idx3-ubyte.gz"))
    return {{State::good, "Fashion-MNIST", folder.string(), ""}};
  return {not_found("Fashion-MNIST", true, "dataset-fashion-mnist",
                    "the examples need it or --data DIR")};
}

}  // namespace catena::launch
