#include "starter/mpirun_command.h"

#include <cmath>
#include <cstdio>

#include "base/answer.h"
#include "base/program.h"
#include "base/text.h"
#include "wire/job_words.h"

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
  // More ranks than cores is allowed, and Open MPI gets the option for it, because it then yields
  // while waiting. Binding is the rank processes' business: mpirun knows nothing of GPUs.
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

// mpirun takes a lone ":" for the start of another program, and looks for its own options in all
// words of its line; what follows those would reach a shell on the other hosts.
bool must_hide(const std::string& word) { return word == ":" || looks_like_mca_option(word); }

// Seconds between SIGTERM and SIGKILL when mpirun itself ends the job, so that rank processes can
// end their programs and report. mpirun sleeps through all of them even if everyone is gone.
int kill_delay(const std::optional<double>& grace) {
  return grace ? 1 + static_cast<int>(std::ceil(*grace)) : 1;
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

namespace {

// What MPICH's process manager, Intel MPI's and their relatives answer.
bool is_hydra(const std::string& output) {
  return output.find("HYDRA") != std::string::npos || output.find("MPICH") != std::string::npos;
}

}  // namespace

Mpirun find_mpirun(const std::string& name) {
  const std::optional<std::string> path = find_executable(name);
  if (!path)
    throw UserError("mpirun not found ('" + name + "' is not an executable in PATH); " + kInstall +
                        ", or name one with --mpirun",
                    127);
  const std::string output = answer_of({*path, "--version"});
  const auto version = parse_mpirun_version(output);
  if (!version && is_hydra(output))
    throw UserError("'" + *path +
                        "' belongs to MPICH, whose jobs catena-run does not start. Start the "
                        "program with it directly (" +
                        name + " -n 4 ./train, see cluster/mpich/README.md); or " + kInstall +
                        ", or name it with --mpirun",
                    127);
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

std::vector<std::string> mpirun_command(const JobSpec& spec, const MpirunDialect& dialect) {
  const int major = dialect.major;
  Words words = {spec.mpirun, "--allow-run-as-root", "-n", std::to_string(spec.ranks)};
  append_placement(words, major);
  append_hosts(words, spec.hosts, major);
  append_runtime_setting(words, major, "odls_base_sigkill_timeout",
                         std::to_string(kill_delay(spec.grace)));
  if (!dialect.session_folder.empty())
    append_runtime_setting(words, major, major >= 5 ? "prte_tmpdir_base" : "orte_tmpdir_base",
                           dialect.session_folder);
  for (const McaSetting& setting : dialect.settings) {
    if (setting.runtime)
      append_runtime_setting(words, major, setting.name, setting.value);
    else
      append(words, {"--mca", setting.name, setting.value});
  }
  for (const std::string& name : spec.forward) append(words, {"-x", name});
  append(words, spec.mpi_args);
  append(words, rank_process_command(spec, must_hide));
  return words;
}

}  // namespace catena::launch
