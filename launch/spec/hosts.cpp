#include "spec/hosts.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/text.h"

namespace catena::launch {
namespace {

// More than a job can have, and far from where sums end.
constexpr int kMostSlots = 1 << 20;
constexpr std::size_t kLongestHostfile = 16 << 20;

void add_host(std::vector<Host>& hosts, const Host& host) {
  const auto known = std::find_if(hosts.begin(), hosts.end(),
                                  [&](const Host& other) { return other.name == host.name; });
  if (known == hosts.end())
    hosts.push_back(host);
  else
    known->slots += host.slots;
  for (Host& one : hosts) one.slots = std::min(one.slots, kMostSlots);
}

int parse_slots(const std::string& text, const std::string& where) {
  const auto slots = parse_number(text);
  if (!slots || *slots < 1)
    throw UserError(where + ": '" + text + "' is not a number of slots; expected 1 or more");
  return std::min(*slots, kMostSlots);
}

// "name" or "name:slots".
Host parse_host(const std::string& text, const std::string& where) {
  const std::size_t colon = text.rfind(':');
  Host host{text.substr(0, colon), 1};
  if (host.name.find(':') != std::string::npos)
    throw UserError(where + ": '" + text +
                    "' has more than one colon; expected NAME or NAME:SLOTS (an address of IPv6 "
                    "needs a name, in /etc/hosts for instance)");
  if (host.name.empty())
    throw UserError(where + ": '" + text + "' has no host name; expected NAME or NAME:SLOTS");
  // A list copied from elsewhere may have blanks that look like others, or codes for a terminal.
  if (std::any_of(host.name.begin(), host.name.end(), [](char c) { return c <= ' ' || c > '~'; }))
    throw UserError(where + ": '" + text +
                    "' is not the name of a host; expected NAME or NAME:SLOTS, in ASCII");
  if (colon != std::string::npos) host.slots = parse_slots(text.substr(colon + 1), where);
  return host;
}

// "slots=4", or "slots" "=" "4" glued together by the caller.
void apply_setting(Host& host, const std::string& word, const std::string& where) {
  const std::size_t equals = word.find('=');
  const std::string key = word.substr(0, equals);
  if (equals == std::string::npos)
    throw UserError(where + ": unexpected '" + word + "'; expected slots=N");
  if (key == "slots" || key == "count" || key == "cpu")
    host.slots = parse_slots(word.substr(equals + 1), where);
  else if (key != "max-slots" && key != "max_slots" && key != "user" && key != "username")
    throw UserError(where + ": unknown setting '" + key + "'; expected slots=N");
}

Host parse_hostfile_line(const std::string& line, const std::string& where) {
  // Open MPI allows blanks around the equals sign.
  std::string glued;
  for (const std::string& word : split_words(line)) {
    const bool joins = word.starts_with('=') || (!glued.empty() && glued.back() == '=');
    if (!glued.empty() && !joins) glued += ' ';
    glued += word;
  }
  const std::vector<std::string> words = split_words(glued);
  Host host = parse_host(words.front(), where);
  for (std::size_t i = 1; i < words.size(); ++i) apply_setting(host, words[i], where);
  return host;
}

}  // namespace

std::vector<Host> parse_host_list(const std::string& text) {
  std::vector<Host> hosts;
  for (const std::string& part : split(text, ','))
    add_host(hosts, parse_host(std::string(trim(part)), "-H " + text));
  return hosts;
}

std::vector<Host> parse_hostfile(std::istream& lines, const std::string& file_name) {
  std::vector<Host> hosts;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string text(trim(std::string_view(line).substr(0, line.find('#'))));
    if (!text.empty())
      add_host(hosts, parse_hostfile_line(text, file_name + ":" + std::to_string(number)));
  }
  if (hosts.empty())
    throw UserError(file_name +
                    ": no host in this hostfile; expected lines such as 'name slots=4'");
  return hosts;
}

std::vector<Host> read_hostfile(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw UserError("cannot read hostfile '" + path + "': " + std::strerror(errno));
  std::string text(kLongestHostfile, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file)
    throw UserError("'" + path +
                    "' is not a hostfile: it has more than 16 MiB; expected lines such as "
                    "'name slots=4'");
  text.resize(static_cast<std::size_t>(file.gcount()));
  std::istringstream lines(text);
  return parse_hostfile(lines, path);
}

int total_slots(const std::vector<Host>& hosts) {
  int slots = 0;
  for (const Host& host : hosts) slots = std::min(slots + host.slots, kMostSlots);
  return slots;
}

std::vector<int> ranks_per_host(const std::vector<Host>& hosts, int ranks) {
  std::vector<int> counts;
  for (const Host& host : hosts) {
    counts.push_back(std::min(host.slots, ranks));
    ranks -= counts.back();
  }
  return counts;
}

std::vector<std::string> host_of_each_rank(const std::vector<Host>& hosts, int ranks) {
  std::vector<std::string> names;
  const std::vector<int> counts = ranks_per_host(hosts, ranks);
  for (std::size_t i = 0; i < hosts.size(); ++i)
    names.insert(names.end(), static_cast<std::size_t>(counts[i]), hosts[i].name);
  return names;
}

}  // namespace catena::launch
