// The bytes that ranks hold in the course of a simulated schedule.
#pragma once

#include <compare>
#include <cstddef>
#include <vector>

namespace catena::parallel::pipeline {

class MemoryUse {
 public:
  explicit MemoryUse(int ranks) : changes_(static_cast<size_t>(ranks)) {}
  void add(int rank, double time, double bytes) {
    if (bytes != 0) changes_[size_t(rank)].push_back({time, bytes});
  }
  // What a rank holds at most. Of changes at the same time, those that free come first.
  std::vector<double> peaks();

 private:
  struct Change {
    double time, bytes;
    auto operator<=>(const Change&) const = default;
  };
  std::vector<std::vector<Change>> changes_;
};

}  // namespace catena::parallel::pipeline
