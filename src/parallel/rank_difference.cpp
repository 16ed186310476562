#include "rank_difference.h"

#include <algorithm>

#include "catena/comm/internals.h"
#include "catena/comm/transport.h"

namespace catena::parallel {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<RankGroup> first_difference(const std::vector<std::string>& texts) {
  std::vector<std::vector<std::string>> lines;
  size_t most = 0;
  for (const std::string& text : texts) {
    lines.push_back(split(text, '\n'));
    most = std::max(most, lines.back().size());
  }
  for (size_t i = 0; i < most; ++i) {
    std::vector<RankGroup> groups;
    for (size_t r = 0; r < lines.size(); ++r) {
      const std::string line = i < lines[r].size() ? lines[r][i] : "";
      auto group = std::find_if(groups.begin(), groups.end(),
                                [&](const RankGroup& g) { return g.line == line; });
      if (group == groups.end()) group = groups.insert(group, {line, {}});
      group->ranks.push_back(static_cast<int>(r));
    }
    if (groups.size() > 1) return groups;
  }
  return {};
}

std::string describe_values(const std::vector<RankGroup>& groups) {
  const auto value_of = [](const std::string& line) { return line.substr(line.find('\t') + 1); };
  std::string values;
  for (const RankGroup& group : groups)
    values += message(values.empty() ? "" : ", ", value_of(group.line), " on ",
                      comm::list_ranks(group.ranks));
  return message(split(groups[0].line, '\t')[0], " is ", values);
}

int odd_rank_of(const std::vector<RankGroup>& groups) {
  if (groups.size() != 2) return -1;
  const std::vector<int>&a = groups[0].ranks, &b = groups[1].ranks;
  if (a.size() + b.size() < 3) return -1;
  return a.size() == 1 ? a[0] : b.size() == 1 ? b[0] : -1;
}

void fail_for_difference(Communicator& comm, const std::vector<RankGroup>& groups,
                         const std::string& text) {
  const auto internals = comm::internals(comm);
  internals.note_failure(text, true, internals.rank_in_job(odd_rank_of(groups)));
  throw ValueError(text);
}

}  // namespace catena::parallel
