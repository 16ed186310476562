#include "starter/mpirun_settings.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace catena::launch {
namespace {

namespace fs = std::filesystem;

// "--mca" -> "mca"; "" for a word that is not an option.
std::string option_name(const std::string& word) {
  if (!word.starts_with('-')) return "";
  const std::size_t begin = word.find_first_not_of('-');
  return begin == std::string::npos ? "" : word.substr(begin, word.find('=') - begin);
}

// mca, gmca, omca, prtemca, pmixmca and so on: "NAME VALUE" follow.
bool names_parameter(const std::string& option) { return option.ends_with("mca"); }

// Open MPI 4 and 5 each have their own prefixes in the environment.
constexpr std::array kPrefixes = {"OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_"};

// Ranks of one host reach each other through shared memory. Without this they and Open MPI's own
// protocol would listen on all networks, for anybody.
void leave_tcp_out(std::vector<McaSetting>& settings, const McaParameters& set) {
  if (set.set_by_user("btl")) return;
  const std::string site = set.value("btl").value_or("");
  if (site.empty())
    settings.push_back({false, "btl", "^tcp"});
  else if (site.starts_with('^') && site.find("tcp") == std::string::npos)
    settings.push_back({false, "btl", site + ",tcp"});
}

bool is_of_transports(const std::string& parameter) {
  const std::string framework = parameter.substr(0, parameter.find('_'));
  return framework == "pml" || framework == "mtl" || framework == "btl";
}

void add_unless_set(std::vector<McaSetting>& settings, const McaParameters& set, bool runtime,
                    const std::string& family, const std::string& kind, const std::string& value) {
  // The two exclude each other.
  if (set.has(family + "include") || set.has(family + "exclude")) return;
  settings.push_back({runtime, family + kind, value});
}

void add_to_both(std::vector<McaSetting>& settings, const McaParameters& set, int major,
                 const std::string& kind, const std::string& value) {
  add_unless_set(settings, set, false, "btl_tcp_if_", kind, value);
  add_unless_set(settings, set, true, major >= 5 ? "prte_if_" : "oob_tcp_if_", kind, value);
}

}  // namespace

McaParameters::McaParameters(const std::vector<std::string>& mpi_args,
                             const std::vector<std::string>& environment,
                             const std::string& mpirun) {
  for (const std::string& entry : environment) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    for (const std::string prefix : kPrefixes)
      if (entry.starts_with(prefix) && equals >= prefix.size() && equals < entry.size())
        by_user_[entry.substr(prefix.size(), equals - prefix.size())] = entry.substr(equals + 1);
  }
  for (std::size_t i = 0; i + 2 < mpi_args.size(); ++i)
    if (names_parameter(option_name(mpi_args[i]))) by_user_[mpi_args[i + 1]] = mpi_args[i + 2];
  std::error_code error;
  const fs::path prefix = fs::canonical(mpirun, error).parent_path().parent_path();
  const char* home = std::getenv("HOME");
  for (const fs::path& path : {fs::path("/etc/openmpi/openmpi-mca-params.conf"),
                               prefix / "etc" / "openmpi-mca-params.conf",
                               fs::path(home ? home : "") / ".openmpi" / "mca-params.conf"}) {
    std::ifstream file(path);
    if (file) read_file(file);
  }
}

void McaParameters::read_file(std::istream& lines) {
  std::string line;
  while (std::getline(lines, line)) {
    line.erase(std::min(line.find('#'), line.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    by_file_[std::string(trim(line.substr(0, equals)))] = trim(line.substr(equals + 1));
  }
}

std::optional<std::string> McaParameters::value(const std::string& name) const {
  for (const auto* settings : {&by_user_, &by_file_})
    if (const auto found = settings->find(name); found != settings->end()) return found->second;
  return std::nullopt;
}

std::vector<McaSetting> network_settings(const Network& network, const McaParameters& set,
                                         int major) {
  std::vector<McaSetting> settings;
  if (!network.leaves_host) {
    leave_tcp_out(settings, set);
  } else if (!network.shared.empty()) {
    add_to_both(settings, set, major, "include", join(network.shared, ","));
  } else if (!network.bridges.empty()) {
    // The first two are Open MPI's own.
    add_to_both(settings, set, major, "exclude", "127.0.0.1/8,sppp," + join(network.bridges, ","));
  }
  return settings;
}

std::vector<McaSetting> host_name_settings(const std::vector<Host>& hosts, const McaParameters& set,
                                           int major) {
  const std::string setting = major >= 5 ? "prte_keep_fqdn_hostnames" : "orte_keep_fqdn_hostnames";
  const bool cut = std::any_of(hosts.begin(), hosts.end(), [](const Host& host) {
    return host.name.find('.') != std::string::npos &&
           host.name.find_first_not_of("0123456789.") != std::string::npos;
  });
  if (!cut || set.has(setting)) return {};
  return {{true, setting, "1"}};
}

std::vector<std::string> chosen_transports(const std::vector<std::string>& mpi_args,
                                           const std::vector<std::string>& environment) {
  const std::string prefix = kPrefixes.front();  // the others are of daemons
  std::vector<std::string> chosen;
  for (const std::string& entry : environment) {
    const std::string name = entry.substr(0, entry.find('='));
    if (name.starts_with(prefix) && is_of_transports(name.substr(prefix.size())))
      chosen.push_back(entry);
  }
  for (std::size_t i = 0; i + 2 < mpi_args.size(); ++i)
    if (names_parameter(option_name(mpi_args[i])) && is_of_transports(mpi_args[i + 1]))
      chosen.push_back(join({mpi_args[i], mpi_args[i + 1], mpi_args[i + 2]}, " "));
  return chosen;
}

std::string problem_of_host_name(const std::string& name) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t strange =
      name.find_first_not_of(std::string(kLetters).append(kDigits).append("-."));
  if (strange != std::string::npos)
    return std::string("it takes letters, digits, '-' and '.', not '") + name[strange] + "'";
  // Copied into 50 bytes without a check. With Debian's 4.1.4 the first that ends mpirun is of 57.
  constexpr std::size_t kLongestStart = 56;
  if (std::min(name.find_first_of(kDigits), name.size()) <= kLongestStart) return "";
  return "it takes at most " + std::to_string(kLongestStart) + " characters before the first digit";
}

bool looks_like_mca_option(const std::string& word) {
  const std::string name = option_name(word);
  return names_parameter(name) || name == "am" || name == "tune";
}

}  // namespace catena::launch
