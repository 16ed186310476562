#include "starter/slurm_nodes.h"

#include <array>
#include <optional>

#include "base/answer.h"
#include "base/program.h"
#include "base/text.h"

namespace catena::launch {
namespace {

// "MIXED+DRAIN", "DOWN*", "IDLE+NOT_RESPONDING"; a star says that the node does not answer.
constexpr std::array kUnusable = {"DOWN",          "FAIL",    "NOT_RESPONDING", "POWERED_DOWN",
                                  "POWERING_DOWN", "UNKNOWN", "REBOOT",         "*"};

// The value of a word "key=value"; "" when there is none.
std::string value_of(const std::string& text, const std::string& key) {
  for (const std::string& word : split_words(text))
    if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
  return "";
}

}  // namespace

std::string parse_job_nodes(const std::string& answer) {
  const std::string nodes = value_of(answer, "NodeList");
  return nodes == "(null)" ? "" : nodes;
}

std::vector<std::string> parse_usable_nodes(const std::string& answer) {
  std::vector<std::string> names;
  for (const std::string& line : split(answer, '\n')) {
    const std::string name = value_of(line, "NodeName"), state = value_of(line, "State");
    if (!name.empty() && !state.empty() && !contains_any(state, kUnusable)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> usable_nodes_of(const std::string& job) {
  const std::optional<std::string> scontrol = find_executable("scontrol");
  if (!scontrol) return {};
  const std::string nodes = parse_job_nodes(answer_of({*scontrol, "show", "job", job}));
  if (nodes.empty()) return {};
  return parse_usable_nodes(answer_of({*scontrol, "-o", "show", "node", nodes}));
}

}  // namespace catena::launch
