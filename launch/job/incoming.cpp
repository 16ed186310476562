#include "job/incoming.h"

namespace catena::launch {

std::vector<RankReport> ReportLines::feed(int rank, std::string_view bytes) {
  std::vector<RankReport> reports;
  std::string& partial = partial_[rank];
  partial += bytes;
  for (std::size_t end = partial.find('\n'); end != std::string::npos; end = partial.find('\n')) {
    reports.push_back(parse_rank_report(partial.substr(0, end)));
    partial.erase(0, end + 1);
  }
  return reports;
}

void StarterLines::release() {
  if (!held_) return;
  const std::vector<std::string> lines = std::move(*held_);
  held_.reset();
  for (const std::string& line : lines) on_line_(line);
}

void StarterLines::add(std::string_view line) {
  if (held_)
    held_->emplace_back(line);
  else
    on_line_(line);
}

std::optional<FileDifference> HostDigests::add(const StartReport& start) {
  if (start.digests.empty()) return std::nullopt;
  by_host_[start.host] = start.digests;
  const auto& [first_host, first] = *by_host_.begin();
  for (const auto& [host, digests] : by_host_)
    if (auto difference = find_difference(first_host, first, host, digests)) return difference;
  return std::nullopt;
}

}  // namespace catena::launch
