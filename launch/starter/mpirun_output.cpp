#include "starter/mpirun_output.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <utility>

#include "base/text.h"

namespace catena::launch {
namespace {

// Blocks about the end of a job, of Open MPI 4 (mpirun) and 5 (prterun).
constexpr std::array kNotices = {"non-zero exit code. Per user-direction",
                                 "processes exited with non-zero status",
                                 "noticed that process rank",
                                 "has exited due to process rank",
                                 "MPI_ABORT was invoked",
                                 "exiting improperly",
                                 "was killed by signal",
                                 "has lost communication with a remote daemon",
                                 "unable to reliably start one or more daemons",
                                 "unable to launch the specified application",
                                 "unable to find the specified executable",
                                 "does not know how to route a message",
                                 "exited without calling"};
constexpr std::array kLines = {"sent help message",
                               "orte_base_help_aggregate",
                               "prte_base_help_aggregate",
                               "Forwarding signal",
                               "total processes failed to start",
                               "killing job",
                               "Abort is in progress",
                               "orte/util/show_help.c"};

// What ssh says when it does not get through.
constexpr std::array kUnreached = {"Could not resolve hostname",
                                   "Name or service not known",
                                   "connect to host",
                                   "No route to host",
                                   "Connection refused",
                                   "Connection timed out",
                                   "Connection closed",
                                   "Connection reset",
                                   "Permission denied (",
                                   "Host key verification failed"};

// Of these, what a host says that is just starting, or whose network is.
constexpr std::array kForNow = {"No route to host", "Connection refused", "Connection timed out",
                                "Connection reset", "Connection closed"};

// Of a program that MPI has not connected: the function is MPI_Init or MPI_Init_thread.
constexpr std::array kInitFailed = {"MPI_INIT has failed", "An error occurred in MPI_Init"};

// As a whole word: "h1" is not in "h12".
bool contains_name(const std::string& text, const std::string& name) {
  const auto belongs = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  };
  for (std::size_t at = text.find(name); !name.empty() && at != std::string::npos;
       at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !belongs(text[at - 1])) && (end == text.size() || !belongs(text[end])))
      return true;
  }
  return false;
}

// Open MPI leaves the domain out; an address has none.
std::string short_name(const std::string& host) {
  const bool address = host.find_first_not_of("0123456789.") == std::string::npos;
  return address ? host : host.substr(0, host.find('.'));
}

bool is_rule(const std::string& line) {
  return line.size() > 40 && line.find_first_not_of('-') == std::string::npos;
}

std::optional<int> number_after(const std::string& text, const std::string& phrase) {
  const std::size_t at = text.find(phrase);
  int value = 0;
  if (at == std::string::npos || std::sscanf(text.c_str() + at + phrase.size(), " %d", &value) != 1)
    return std::nullopt;
  return value;
}

std::string word_after(const std::string& text, const std::string& phrase) {
  const std::size_t at = text.find(phrase);
  if (at == std::string::npos) return "";
  const std::vector<std::string> words = split_words(text.substr(at + phrase.size()));
  return words.empty() ? "" : words.front();
}

}  // namespace

void MpirunOutput::feed(std::string_view bytes) {
  for (std::string& line : take_lines(rest_, bytes)) {
    if (line.ends_with('\r')) line.pop_back();
    take_line(line);
  }
}

void MpirunOutput::finish() {
  if (!rest_.empty()) take_line(std::string(std::exchange(rest_, "")));
  if (in_block_) close_block();
}

// Each rank says this itself; mpirun's notices may come too late.
void MpirunOutput::see_error_of_rank(int, std::string_view bytes) {
  const std::size_t pml = bytes.find("PML ");
  if (pml != bytes.npos && bytes.find(" cannot be selected", pml) != bytes.npos)
    findings_.mpi_init_failed = true;
}

void MpirunOutput::take_line(const std::string& line) {
  if (is_rule(line)) {
    if (in_block_)
      close_block();
    else
      in_block_ = true;
  } else if (in_block_) {
    block_ += line + "\n";
  } else if (contains_any(line, kLines)) {
    withheld_ += line + "\n";
  } else {
    pass_on(line);
  }
}

void MpirunOutput::pass_on(const std::string& line) {
  learn_of_hosts(line);
  learn_of_mpi(line);
  on_line_(line);
}

void MpirunOutput::learn_of_hosts(const std::string& line) {
  // "plm_rsh_agent" of Open MPI 4, "plm_ssh_agent" of 5.
  if (line.find("sh_agent\" was set to a path") != std::string::npos)
    findings_.no_connection = true;
  if (!findings_.unreached_host.empty() || !contains_any(line, kUnreached)) return;
  const auto named = std::find_if(hosts_.begin(), hosts_.end(), [&](const std::string& host) {
    return contains_name(line, host) || contains_name(line, short_name(host));
  });
  if (named == hosts_.end() && !findings_.unreached_reason.empty()) return;
  findings_.unreached_reason = line;
  findings_.unreached_for_now = contains_any(line, kForNow);
  if (named != hosts_.end()) findings_.unreached_host = *named;
}

void MpirunOutput::learn_of_mpi(const std::string& line) {
  findings_.mpi_init_failed = findings_.mpi_init_failed || contains_any(line, kInitFailed);
}

void MpirunOutput::close_block() {
  in_block_ = false;
  const std::string block = std::exchange(block_, "");
  if (contains_any(block, kNotices)) {
    learn(block);
    withheld_ += block;
    return;
  }
  for (const std::string& line : split(trim(block), '\n')) pass_on(line);
}

void MpirunOutput::learn(const std::string& text) {
  if (const auto rank = number_after(text, "MPI_ABORT was invoked on rank")) {
    findings_.abort_rank = rank;
    findings_.abort_code = number_after(text, "errorcode").value_or(1);
  }
  if (text.find("unable to reliably start") != std::string::npos) findings_.daemons_failed = true;
  if (text.find("has lost communication") != std::string::npos) {
    findings_.daemons_failed = true;
    findings_.lost_host =
        word_after(text.substr(std::min(text.find("Remote daemon"), text.size())), "on node ");
  }
  if (text.find("unable to launch the specified") != std::string::npos ||
      text.find("unable to find the specified") != std::string::npos)
    findings_.broken_host = word_after(text, "Node: ");
  const auto rank = number_after(text, "process rank");
  const auto signal = number_after(text, "exited on signal");
  if (rank && signal && text.find("noticed") != std::string::npos) {
    findings_.killed_rank = rank;
    findings_.killed_signal = *signal;
    findings_.killed_host = word_after(text, "on node ");
  }
}

}  // namespace catena::launch
