#include "cli/network_check.h"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "../src/comm/installation.h"
#include "base/answer.h"
#include "base/program.h"
#include "base/text.h"
#include "catena/core/printable.h"
#include "cli/probes.h"
#include "plan/surroundings.h"

namespace catena::launch {
namespace {

constexpr const char *kInterfaces = "--network-interfaces", *kTrial = "--network-trial";
constexpr double kDeadline = 15;  // seconds to meet, and that a collective may take
constexpr double kAnswer = 30;    // seconds that a host may take to name its interfaces
constexpr double kSpare = 30;     // that a job may take to start and to end

// The hosts' interfaces -----------------------------------------------------------------------

HostInterfaces ask_host(const std::string& host, const std::string& ssh) {
  HostInterfaces found{host, {}, ""};
  try {
    const std::string answer = answer_of({ssh, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
                                          host, shell_quote({own_path(), kInterfaces})},
                                         kAnswer);
    found.interfaces = parse_interfaces(answer);
    if (found.interfaces.empty()) found.problem = trim(answer.substr(0, answer.find('\n')));
  } catch (const UserError& error) {
    found.problem = error.what();
  }
  if (found.interfaces.empty() && found.problem.empty()) found.problem = "it did not answer";
  return found;
}

std::vector<HostInterfaces> ask_hosts(const std::vector<Host>& hosts) {
  const std::vector<Interface> here = interfaces_here();
  const std::string ssh = find_executable("ssh").value_or("");
  std::vector<HostInterfaces> found;
  for (const Host& host : hosts) {
    if (is_this_machine(host.name, here)) {
      found.push_back({host.name, here, ""});
      continue;
    }
    if (ssh.empty())
      throw UserError("--check " + host.name +
                      ": there is no ssh here (apt-get install openssh-client)");
    found.push_back(ask_host(host.name, ssh));
  }
  return found;
}

// Why a network does not join all hosts; "" when it may.
std::string obstacle_in(const Interface& network, const std::vector<HostInterfaces>& hosts,
                        NetworkCandidate& candidate) {
  std::map<std::uint32_t, std::string> owner;
  for (const HostInterfaces& host : hosts) {
    bool inside = false;
    for (const Interface& interface : host.interfaces) {
      if (((interface.address ^ network.address) & network.mask) != 0) continue;
      inside = true;
      auto& names = candidate.interfaces;
      if (std::find(names.begin(), names.end(), interface.name) == names.end())
        names.push_back(interface.name);
      const auto [other, is_new] = owner.emplace(interface.address, host.host);
      if (!is_new && other->second != host.host)
        return other->second + " and " + host.host + " both have " +
               format_address(interface.address) + " in it: a network inside each host";
    }
    if (!inside) return host.host + " has no address in it";
  }
  return "";
}

// The trials ----------------------------------------------------------------------------------

// What confines Open MPI, in the environment of the trial's job. Settings of the user's must not
// count: they would let each network answer for the one that they name.
std::vector<EnvSetting> settings_for(const std::string& network, bool daemons) {
  std::vector<EnvSetting> settings = {{"OMPI_MCA_pml", "ob1"},  // else UCX may pass TCP by
                                      {"OMPI_MCA_btl", "self,tcp"},
                                      {"OMPI_MCA_btl_tcp_if_include", network},
                                      {"OMPI_MCA_btl_tcp_if_exclude", std::nullopt}};
  if (!daemons) return settings;
  for (const char* name : {"OMPI_MCA_oob_tcp_if_", "PRTE_MCA_prte_if_"}) {
    settings.push_back({std::string(name) + "include", network});
    settings.push_back({std::string(name) + "exclude", std::nullopt});
  }
  return settings;
}

// Of the environment, until this object's end; no value: not set.
class ScopedEnvironment {
 public:
  explicit ScopedEnvironment(const std::vector<EnvSetting>& settings) {
    for (const EnvSetting& setting : settings) {
      const char* now = std::getenv(setting.name.c_str());
      before_.push_back({setting.name, now ? std::optional<std::string>(now) : std::nullopt});
      put(setting);
    }
  }
  ~ScopedEnvironment() {
    for (const EnvSetting& setting : before_) put(setting);
  }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  std::vector<EnvSetting> before_;
};

// Each trial has a network of its own.
void refuse_a_chosen_network(const std::vector<std::string>& mpi_args) {
  for (const std::string& word : mpi_args) {
    if (!word.ends_with("_if_include") && !word.ends_with("_if_exclude")) continue;
    throw UserError("--check of hosts with --mpi-args '" + join(mpi_args, " ") + "': " + word +
                    " chooses a network, but the check tries each one; leave it out");
  }
}

std::vector<std::string> trial_command(const JobSpec& job, const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.name + ":1");
  const std::string start = format_seconds(std::min(job.start_timeout, kDeadline));
  const std::string timeout = format_seconds(std::min(job.timeout, kDeadline));
  std::vector<std::string> words = {
      own_path(),  "-H",    join(names, ","), "--cpu", "--no-bind", "--start-timeout", start,
      "--timeout", timeout, "--grace",        "1",     "--mpirun",  job.mpirun};
  if (!job.mpi_args.empty()) {
    words.push_back("--mpi-args");
    words.push_back(join(job.mpi_args, " "));
  }
  for (const std::string& word : {std::string("--"), own_path(), std::string(kTrial)})
    words.push_back(word);
  return words;
}

NetworkTrial try_hosts(const NetworkCandidate& candidate, const JobSpec& job,
                       const std::vector<Host>& hosts, bool daemons) {
  NetworkTrial trial{candidate, false, 0, 0, candidate.obstacle};
  if (!trial.reason.empty()) return trial;
  const ScopedEnvironment environment(settings_for(candidate.network, daemons));
  const std::vector<std::string> words = trial_command(job, hosts);
  const double limit =
      std::min(job.start_timeout, kDeadline) + std::min(job.timeout, kDeadline) + kSpare;
  try {
    const std::string output = answer_of(words, limit);
    if (auto found = parse_trial(output, static_cast<int>(hosts.size()))) {
      found->candidate = candidate;
      return *found;
    }
    trial.reason = reason_of_failure(output);
  } catch (const UserError& error) {
    if (error.exit_code() > 128) throw;  // a signal
    trial.reason = "nothing happened for " + format_seconds(limit) + " s";
  }
  return trial;
}

// Of more than two hosts, those that do not work with the first.
std::string failing_pairs(const NetworkCandidate& candidate, const JobSpec& job, bool daemons) {
  std::string text;
  for (std::size_t i = 1; job.hosts.size() > 2 && i < job.hosts.size(); ++i) {
    const std::vector<Host> pair = {job.hosts[0], job.hosts[i]};
    if (!try_hosts(candidate, job, pair, daemons).works)
      text += (text.empty() ? "; not even " : ", ") + pair[0].name + " with " + pair[1].name;
  }
  return text;
}

bool has_address_in(const std::vector<Interface>& here, const std::string& network) {
  return std::any_of(here.begin(), here.end(), [&](const Interface& interface) {
    return format_network(interface) == network;
  });
}

// Output --------------------------------------------------------------------------------------

std::string format_speed(const NetworkTrial& trial) {
  char text[96];
  std::snprintf(text, sizeof(text), "works: %.0f us a small all-reduce, %.3g MB/s a large one",
                trial.latency * 1e6, trial.bandwidth / 1e6);
  return text;
}

void append_row(std::string& text, const std::vector<std::string>& cells,
                const std::vector<std::size_t>& widths) {
  for (std::size_t i = 0; i + 1 < cells.size(); ++i)
    text.append(cells[i]).append(widths[i] - cells[i].size() + 2, ' ');
  text.append(cells.back()).append("\n");
}

std::string format_settings(const NetworkTrial& best, const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(host.name + ":" + std::to_string(host.slots));
  const std::string& network = best.candidate.network;
  const std::string nccl = "'=" + join(best.candidate.interfaces, ",") + "'";
  return "\nTo use " + network + ":\n  NCCL_SOCKET_IFNAME=" + nccl +
         " catena-run --mpi-args '--mca btl_tcp_if_include " + network + "' -H " +
         join(names, ",") +
         " PROGRAM\nAs variables of the environment: OMPI_MCA_btl_tcp_if_include=" + network +
         " OMPI_MCA_oob_tcp_if_include=" + network +
         " (Open MPI 5: PRTE_MCA_prte_if_include=" + network + ") NCCL_SOCKET_IFNAME=" + nccl +
         "\n";
}

int print_unreached(const std::vector<HostInterfaces>& found) {
  int unreached = 0;
  for (const HostInterfaces& host : found) {
    if (host.problem.empty()) continue;
    ++unreached;
    std::printf("host %s could not be asked: %s\n", host.host.c_str(),
                printable(host.problem).c_str());
  }
  if (unreached > 0)
    std::printf("Each host must answer to 'ssh HOST true' without a password, and have %s.\n",
                own_path().c_str());
  return unreached;
}

// A rank of the trial ---------------------------------------------------------------------------

int be_trial_rank() {
  const CheckContext context = {{}, {}, check_library_folders()};
  const std::string file = find_libcatena(context);
  void* library = file.empty() ? nullptr : dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto run =
      library ? reinterpret_cast<comm::CheckNetwork>(dlsym(library, comm::kCheckNetworkSymbol))
              : nullptr;
  if (!run) {
    const char* why = file.empty() ? "it is not there" : dlerror();
    throw UserError("--check of hosts needs libcatena with its mpi plug-in: " +
                        std::string(why ? why : "it is of another version"),
                    1);
  }
  std::string name = "catena-run", seconds = "1";
  char* words[] = {name.data(), seconds.data(), nullptr};
  return run(2, words);
}

}  // namespace

std::string format_interfaces(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& interface : interfaces)
    text += interface.name + " " + format_address(interface.address) + "/" +
            std::to_string(std::popcount(interface.mask)) + "\n";
  return text;
}

std::vector<Interface> parse_interfaces(const std::string& text) {
  std::vector<Interface> interfaces;
  for (const std::string& line : split(text, '\n')) {
    char name[64] = {};
    unsigned a = 0, b = 0, c = 0, d = 0, bits = 0;
    int used = 0;
    const int got =
        std::sscanf(line.c_str(), "%63s %3u.%3u.%3u.%3u/%2u%n", name, &a, &b, &c, &d, &bits, &used);
    if (got != 6 || static_cast<std::size_t>(used) != line.size()) continue;
    if (std::max({a, b, c, d}) > 255 || bits > 32) continue;
    const std::uint32_t mask = bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits);
    interfaces.push_back({name, a << 24 | b << 16 | c << 8 | d, mask});
  }
  return interfaces;
}

std::vector<NetworkCandidate> network_candidates(const std::vector<HostInterfaces>& hosts) {
  std::vector<NetworkCandidate> candidates;
  for (const HostInterfaces& host : hosts) {
    for (const Interface& interface : host.interfaces) {
      if (is_loopback(interface)) continue;
      const std::string network = format_network(interface);
      const bool known =
          std::any_of(candidates.begin(), candidates.end(),
                      [&](const NetworkCandidate& one) { return one.network == network; });
      if (known) continue;
      NetworkCandidate candidate{network, {}, ""};
      candidate.obstacle = obstacle_in(interface, hosts, candidate);
      candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

std::optional<NetworkTrial> parse_trial(const std::string& output, int ranks) {
  for (const std::string& line : split(output, '\n')) {
    double latency = 0, bytes = 0, seconds = 0;
    if (std::sscanf(line.c_str(), "network-trial %lf %lf %lf", &latency, &bytes, &seconds) != 3)
      continue;
    NetworkTrial trial;
    trial.works = true;
    trial.latency = latency;
    trial.bandwidth = bytes / std::max(seconds, 1e-9) * 2 * (ranks - 1) / ranks;
    return trial;
  }
  return std::nullopt;
}

std::string reason_of_failure(const std::string& output) {
  const std::string prefix = "catena-run: ";
  std::string last = "no rank answered";
  for (const std::string& line : split(output, '\n')) {
    if (line.starts_with(prefix))  // without where to look, which nobody sees here
      return line.substr(prefix.size(), line.find("; see the messages") - prefix.size());
    if (!trim(line).empty()) last = trim(line);
  }
  return last;
}

std::string format_network_check(const std::vector<NetworkTrial>& trials,
                                 const std::vector<Host>& hosts) {
  std::vector<std::vector<std::string>> rows = {{"network", "interfaces", "result"}};
  const NetworkTrial* best = nullptr;
  for (const NetworkTrial& trial : trials) {
    rows.push_back({trial.candidate.network, join(trial.candidate.interfaces, ","),
                    trial.works ? format_speed(trial) : "no: " + trial.reason});
    if (trial.works && (!best || trial.bandwidth > best->bandwidth)) best = &trial;
  }
  std::vector<std::size_t> widths(3);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) append_row(text, row, widths);
  if (best) return text + format_settings(*best, hosts);
  return text + "\nNo network joins these hosts. See docs/guide/troubleshooting.md.\n";
}

int run_network_check(const JobSpec& job) {
  if (job.hosts.size() < 2)
    throw UserError(
        "--check of hosts: one host was named; expected two or more, for example "
        "catena-run --check node1,node2");
  refuse_a_chosen_network(job.mpi_args);
  const std::vector<HostInterfaces> found = ask_hosts(job.hosts);
  if (print_unreached(found) > 0) return 1;
  const std::vector<Interface> here = interfaces_here();
  std::vector<NetworkTrial> trials;
  bool works = false;
  for (const NetworkCandidate& candidate : network_candidates(found)) {
    const bool daemons = has_address_in(here, candidate.network);
    NetworkTrial trial = try_hosts(candidate, job, job.hosts, daemons);
    if (!trial.works && candidate.obstacle.empty())
      trial.reason += failing_pairs(candidate, job, daemons);
    works = works || trial.works;
    trials.push_back(std::move(trial));
  }
  std::fputs(printable(format_network_check(trials, job.hosts)).c_str(), stdout);
  return works ? 0 : 1;
}

std::optional<int> run_network_part(int argc, char** argv) {
  const std::string word = argc == 2 ? argv[1] : "";
  if (word == kInterfaces) {
    std::fputs(format_interfaces(interfaces_here()).c_str(), stdout);
    return 0;
  }
  if (word == kTrial) return be_trial_rank();
  return std::nullopt;
}

}  // namespace catena::launch
