#include "starter/mpirun_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/program.h"
#include "base/text.h"

namespace catena::launch {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kInstall = "install Open MPI: apt-get install openmpi-bin libopenmpi-dev";

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// A setting of the run-time layer, which Open MPI 5 moved to PRRTE.
void append_runtime_setting(Words& words, int major, const std::string& name,
                            const std::string& value) {
  append(words, {major >= 5 ? "--prtemca" : "--mca", name, value});
}

void append_placement(Words& words, int major) {
  // More ranks than cores is allowed, and Open MPI is told so, for it then yields while waiting.
  // Binding is the rank processes' business: mpirun knows nothing of GPUs.
  if (major >= 5)
    append(words, {"--map-by", "slot:OVERSUBSCRIBE"});
  else
    append(words, {"--oversubscribe", "--map-by", "slot"});
  append(words, {"--bind-to", "none"});
}

void append_hosts(Words& words, const std::vector<Host>& hosts, int major) {
  if (hosts.empty()) return;
  Words list;
  for (const Host& host : hosts) list.push_back(host.name + ":" + std::to_string(host.slots));
  append(words, {"--host", join(list, ",")});
  constexpr std::size_t kManyHosts = 64;
  if (hosts.size() < kManyHosts) return;
  // A tree of ssh connections loses whole branches to one slow host.
  const std::string agent = major >= 5 ? "plm_ssh_" : "plm_rsh_";
  append_runtime_setting(words, major, agent + "no_tree_spawn", "1");
  append_runtime_setting(words, major, agent + "num_concurrent", std::to_string(hosts.size()));
}

std::string format_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", seconds);
  return text;
}

// mpirun takes a lone ":" for the start of another program, and looks for its own options in all
// words of its line; what follows those would reach a shell on the other hosts.
bool must_hide(const std::string& word) { return word == ":" || looks_like_mca_option(word); }

std::string escape(const std::string& word) {
  if (!must_hide(word)) return percent_encode(word);
  char first[4];
  std::snprintf(first, sizeof(first), "%%%02X", static_cast<unsigned char>(word[0]));
  return first + percent_encode(word.substr(1));
}

// Seconds between SIGTERM and SIGKILL when mpirun itself ends the job, so that rank processes can
// end their programs and report. mpirun sleeps through all of them even if everyone is gone.
int kill_delay(const std::optional<double>& grace) {
  return grace ? 1 + static_cast<int>(std::ceil(*grace)) : 1;
}

std::string output_of(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string output;
  std::array<char, 512> part;
  while (pipe && std::fgets(part.data(), part.size(), pipe.get())) output += part.data();
  return output;
}

}  // namespace

std::optional<MpiVersion> parse_mpirun_version(const std::string& output) {
  const std::size_t name = output.find("Open MPI");
  if (name == std::string::npos) return std::nullopt;
  const std::size_t begin = output.find_first_of("0123456789", name);
  if (begin == std::string::npos) return std::nullopt;
  const std::size_t end = output.find_first_of(" \t\r\n", begin);
  MpiVersion version;
  version.text = output.substr(begin, end == std::string::npos ? end : end - begin);
  if (std::sscanf(version.text.c_str(), "%d.%d", &version.major, &version.minor) != 2)
    return std::nullopt;
  return version;
}

Mpirun find_mpirun(const std::string& name) {
  const std::optional<std::string> path = find_executable(name);
  if (!path)
    throw UserError("mpirun not found ('" + name + "' is not an executable in PATH); " + kInstall +
                        ", or name one with --mpirun",
                    127);
  const std::string output = output_of(shell_quote(*path) + " --version 2>&1 </dev/null");
  const auto version = parse_mpirun_version(output);
  if (!version)
    throw UserError("'" + *path + " --version' does not answer as Open MPI does but '" +
                        std::string(trim(output.substr(0, output.find('\n')))) + "'; " + kInstall +
                        ", or name it with --mpirun",
                    127);
  if (version->major < 4)
    throw UserError("'" + *path + "' is Open MPI " + version->text +
                    "; catena-run speaks Open MPI 4 and 5");
  return {*path, *version};
}

std::vector<std::string> to_words(const RankSettings& settings) {
  Words words = {"job=" + settings.job, "size=" + std::to_string(settings.size),
                 "devices=" + settings.devices, "timeout=" + format_seconds(settings.timeout),
                 "start-timeout=" + format_seconds(settings.start_timeout)};
  if (!settings.log_dir.empty()) words.push_back("log-dir=" + settings.log_dir);
  if (!settings.terminal.empty()) words.push_back("terminal=" + settings.terminal);
  if (!settings.bind) words.push_back("no-bind=1");
  if (settings.grace) words.push_back("grace=" + format_seconds(*settings.grace));
  if (!settings.folder.empty()) words.push_back("folder=" + percent_encode(settings.folder));
  if (settings.several_hosts) words.push_back("several-hosts=1");
  if (settings.escaped) words.push_back("escaped=1");
  return words;
}

RankSettings parse_rank_settings(const std::vector<std::string>& words) {
  RankSettings settings;
  for (const std::string& word : words) {
    const std::size_t equals = std::min(word.find('='), word.size() - 1);
    const std::string key = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    if (key == "job")
      settings.job = value;
    else if (key == "size")
      settings.size = parse_number(value).value_or(0);
    else if (key == "devices")
      settings.devices = value;
    else if (key == "timeout")
      settings.timeout = std::strtod(value.c_str(), nullptr);
    else if (key == "start-timeout")
      settings.start_timeout = std::strtod(value.c_str(), nullptr);
    else if (key == "log-dir")
      settings.log_dir = value;
    else if (key == "terminal")
      settings.terminal = value;
    else if (key == "no-bind")
      settings.bind = false;
    else if (key == "grace")
      settings.grace = std::strtod(value.c_str(), nullptr);
    else if (key == "folder")
      settings.folder = percent_decode(value);
    else if (key == "several-hosts")
      settings.several_hosts = true;
    else if (key == "escaped")
      settings.escaped = true;
    else
      throw UserError("--rank-process: unknown setting '" + word +
                      "'; all hosts need the same catena-run");
  }
  return settings;
}

std::vector<std::string> forwarded_names(const std::vector<std::string>& environment,
                                         const std::vector<EnvSetting>& settings) {
  Words names;
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

std::vector<std::string> mpirun_command(const MpirunRequest& request) {
  const int major = request.version.major;
  Words words = {request.mpirun, "--allow-run-as-root", "-n", std::to_string(request.plan.ranks)};
  append_placement(words, major);
  append_hosts(words, request.plan.hosts, major);
  append_runtime_setting(words, major, "odls_base_sigkill_timeout",
                         std::to_string(kill_delay(request.settings.grace)));
  if (!request.session_folder.empty())
    append_runtime_setting(words, major, major >= 5 ? "prte_tmpdir_base" : "orte_tmpdir_base",
                           request.session_folder);
  for (const McaSetting& setting : request.settings_of_mpi) {
    if (setting.runtime)
      append_runtime_setting(words, major, setting.name, setting.value);
    else
      append(words, {"--mca", setting.name, setting.value});
  }
  for (const std::string& name : request.forward) append(words, {"-x", name});
  append(words, request.mpi_args);
  append(words, {request.launcher, "--rank-process"});
  RankSettings settings = request.settings;
  settings.escaped = std::any_of(request.program.begin(), request.program.end(), must_hide);
  append(words, to_words(settings));
  words.push_back("--");
  for (const std::string& word : request.program)
    words.push_back(settings.escaped ? escape(word) : word);
  return words;
}

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

}  // namespace catena::launch
