// Reports of rank processes and output of the starter, put together from pieces.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/program_digest.h"
#include "base/text.h"
#include "wire/rank_report.h"

namespace catena::launch {

// Lines of each rank's report stream.
class ReportLines {
 public:
  // The reports that are complete with these bytes.
  std::vector<RankReport> feed(int rank, std::string_view bytes) {
    std::vector<RankReport> reports;
    for (const std::string& line : take_lines(partial_[rank], bytes))
      reports.push_back(parse_rank_report(line));
    return reports;
  }

 private:
  std::map<int, std::string> partial_;
};

// Lines of the starter itself. What it says before the first rank is there is not shown if another
// attempt follows.
class StarterLines {
 public:
  using OnLine = std::function<void(std::string_view line)>;
  explicit StarterLines(OnLine on_line) : on_line_(std::move(on_line)) {}

  // Forgets what is held, and holds what comes.
  void hold() { held_.emplace(); }
  void release() {
    if (!held_) return;
    const std::vector<std::string> lines = std::move(*held_);
    held_.reset();
    for (const std::string& line : lines) on_line_(line);
  }
  void add(std::string_view line) {
    if (held_)
      held_->emplace_back(line);
    else
      on_line_(line);
  }

 private:
  OnLine on_line_;
  std::optional<std::vector<std::string>> held_;
};

// The programs of all hosts, which must be the same.
class HostDigests {
 public:
  // A host's, if the report has them; what differs from another host's.
  std::optional<FileDifference> add(const StartReport& start) {
    if (start.digests.empty()) return std::nullopt;
    by_host_[start.host] = start.digests;
    const auto& [first_host, first] = *by_host_.begin();
    for (const auto& [host, digests] : by_host_)
      if (auto difference = find_difference(first_host, first, host, digests)) return difference;
    return std::nullopt;
  }

 private:
  std::map<std::string, Digests> by_host_;
};

}  // namespace catena::launch
