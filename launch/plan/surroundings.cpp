#include "plan/surroundings.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "plan/network.h"

namespace catena::launch {
namespace {

// "120x40", or "" when standard output is not a terminal.
std::string terminal_size() {
  winsize size{};
  if (!isatty(STDOUT_FILENO)) return "";
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return "80x24";
  return std::to_string(size.ws_col) + "x" + std::to_string(size.ws_row);
}

// The folder that catena-run was started in, by the name that the user knows it by.
std::string working_folder() {
  std::error_code error;
  const std::string real = std::filesystem::current_path(error).string();
  // $PWD keeps the symbolic links that the user came through; their targets may differ elsewhere.
  const char* named = std::getenv("PWD");
  struct stat here {
  }, there{};
  const bool same = named && named[0] == '/' && stat(named, &there) == 0 && stat(".", &here) == 0 &&
                    here.st_ino == there.st_ino && here.st_dev == there.st_dev;
  return same ? named : real;
}

}  // namespace

void require_working_folder() {
  std::error_code error;
  (void)std::filesystem::current_path(error);
  if (error)
    throw UserError("the working folder cannot be used: " + error.message() +
                    "; it was removed, perhaps; cd to a folder that is there");
}

std::string own_path() {
  char path[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length <= 0) throw UserError("cannot find the path of catena-run in /proc/self/exe");
  return path;
}

JobSpec add_surroundings(JobSpec spec) {
  spec.id = new_job_id();
  spec.launcher = own_path();
  spec.terminal = terminal_size();
  if (spec.remote) spec.folder = working_folder();
  spec.forward = forwarded_names(environment_of(spec), spec.env);
  spec.network = choose_network(spec.hosts, spec.in_allocation, interfaces_here());
  return spec;
}

std::string make_log_dir(const std::string& name) {
  if (name.empty()) return "";
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(name);
  std::filesystem::create_directories(path, error);
  if (!error && access(path.c_str(), W_OK) != 0) error = {errno, std::generic_category()};
  if (error)
    throw UserError("--log-dir '" + name + "' cannot be written: " + error.message() +
                    "; give a folder that can");
  return path.lexically_normal().string();
}

std::vector<std::string> forwarded_names(const std::vector<std::string>& environment,
                                         const std::vector<EnvSetting>& settings) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const std::string& entry : environment) {
    const std::string name = entry.substr(0, entry.find('='));
    const bool family = name.starts_with("CATENA_") || name.starts_with("NCCL_") ||
                        name.starts_with("OMP_") || name == "CUDA_VISIBLE_DEVICES" ||
                        name == "PATH" || name == "LD_LIBRARY_PATH";
    if (family) add(name);
  }
  std::sort(names.begin(), names.end());
  for (const EnvSetting& setting : settings) add(setting.name);
  return names;
}

void check_env(const std::vector<EnvSetting>& settings) {
  for (const EnvSetting& setting : settings)
    if (!setting.value && !std::getenv(setting.name.c_str()))
      throw UserError("--env " + setting.name + ": the variable is not set; use --env " +
                      setting.name + "=VALUE");
}

}  // namespace catena::launch
