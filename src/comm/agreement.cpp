#include "agreement.h"

#include <algorithm>
#include <charconv>

#include "catena/comm/internals.h"
#include "catena/comm/transport.h"

namespace catena::comm {
namespace {

// In front of a digest: no value begins so.
constexpr char kDigest[] = "\x01";

using Group = Difference::Group;

std::vector<std::string_view> lines_of(const std::string& text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// The ranks by what they have as line i.
std::vector<Group> groups_of(const std::vector<std::vector<std::string_view>>& lines, size_t i) {
  std::vector<Group> groups;
  for (size_t r = 0; r < lines.size(); ++r) {
    const std::string_view line = i < lines[r].size() ? lines[r][i] : "\t";
    const size_t tab = line.find('\t');
    const std::string_view name = line.substr(0, tab), value = line.substr(tab + 1);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& g) { return g.name == name && g.value == value; });
    if (group == groups.end())
      group = groups.insert(group, {std::string(name), std::string(value), {}});
    group->ranks.push_back(int(r));
  }
  return groups;
}

std::string in_one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return line;
}

}  // namespace

// Difference --------------------------------------------------------------------------------------

const std::string& Difference::a_name() const {
  return groups_[0].name.empty() ? groups_[1].name : groups_[0].name;
}

bool Difference::has_one_name() const {
  return std::all_of(groups_.begin(), groups_.end(),
                     [&](const Group& g) { return g.name.empty() || g.name == a_name(); });
}

std::string Difference::text_of_digests() const {
  std::vector<int> others;
  for (const Group& group : groups_)
    if (&group != &groups_[0]) others.insert(others.end(), group.ranks.begin(), group.ranks.end());
  std::sort(others.begin(), others.end());
  return message(a_name(), " on ", list_(others), others.size() == 1 ? " differs" : " differ",
                 " from that on ", list_({groups_[0].ranks[0]}));
}

std::string Difference::text() const {
  const bool has_digests = std::any_of(groups_.begin(), groups_.end(), [](const Group& group) {
    return group.value.starts_with(kDigest);
  });
  if (has_one_name() && has_digests) return text_of_digests();
  const char* is = a_name().ends_with(" are") ? " " : " is ";
  std::string text = has_one_name() ? a_name() + is : "";
  for (const Group& group : groups_) {
    const char* comma = &group == &groups_[0] ? "" : ", ";
    const bool is_shown = !group.name.empty() && !group.value.starts_with(kDigest);
    if (has_one_name())
      text += message(comma, is_shown ? group.value : "none", " on ", list_(group.ranks));
    else
      text += message(comma, list_(group.ranks), group.ranks.size() == 1 ? " has " : " have ",
                      group.name.empty() ? "nothing more" : group.name,
                      is_shown ? " " + group.value : "");
  }
  return text;
}

int Difference::odd_rank() const {
  if (groups_.size() != 2) return -1;
  const std::vector<int>&a = groups_[0].ranks, &b = groups_[1].ranks;
  if (a.size() + b.size() < 3) return -1;
  return a.size() == 1 ? a[0] : b.size() == 1 ? b[0] : -1;
}

void Difference::fail(Communicator& comm, const std::string& text) const {
  const auto inside = internals(comm);
  inside.note_failure(text, true, inside.rank_in_job(odd_rank()));
  throw ValueError(text);
}

std::string shortest_text(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

// Agreement ---------------------------------------------------------------------------------------

Agreement& Agreement::add_line(std::string_view name, const char* kind, const std::string& value) {
  text_ += in_one_line(name) + '\t' + kind + in_one_line(value) + '\n';
  return *this;
}

Agreement& Agreement::add(std::string_view name, double value) {
  return add_line(name, "", shortest_text(value));
}

Agreement& Agreement::add_digest(std::string_view name, uint64_t digest) {
  return add_line(name, kDigest, std::to_string(digest));
}

bool Agreement::is_equal(Communicator& comm, uint64_t hash) {
  if (comm.size() == 1) return true;
  const std::vector<uint64_t> all = comm.all_gather_object(hash);
  return std::all_of(all.begin(), all.end(), [&](uint64_t one) { return one == all[0]; });
}

std::optional<Difference> Agreement::exchange(Communicator& comm) const {
  return compare(comm.all_gather_bytes(text_),
                 [&comm](const std::vector<int>& ranks) { return list_ranks(comm, ranks); });
}

std::optional<Difference> Agreement::compare(Communicator& comm) const {
  if (is_equal(comm, hash())) return {};
  return exchange(comm);
}

std::optional<Difference> Agreement::compare(const std::vector<std::string>& texts,
                                             Difference::NameRanks name_ranks) {
  if (!name_ranks) name_ranks = [](const std::vector<int>& ranks) { return list_ranks(ranks); };
  std::vector<std::vector<std::string_view>> lines;
  size_t most = 0;
  for (const std::string& text : texts)
    most = std::max(most, lines.emplace_back(lines_of(text)).size());
  for (size_t i = 0; i < most; ++i)
    if (std::vector<Group> groups = groups_of(lines, i); groups.size() > 1)
      return Difference(std::move(groups), std::move(name_ranks));
  return {};
}

}  // namespace catena::comm
