// List of names for the error of one that is not among them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/edit_distance.h"
#include "core/first_names.h"

namespace catena {

// "there are: a, b", or of more than eight names "nearest of 812 are: ...", those most like
// `asked`.
inline std::string nearest_names(std::string_view asked, const std::vector<std::string>& names) {
  if (names.empty()) return "there are: none";
  std::vector<std::pair<size_t, size_t>> near;  // distance, place in the list
  for (size_t i = 0; i < names.size(); ++i) near.emplace_back(0, i);
  const bool all = names.size() <= kMostNames;
  if (!all) {
    for (auto& [distance, i] : near) distance = edit_distance(asked, names[i]);
    std::ranges::partial_sort(near, near.begin() + kMostNames);
  }
  return (all ? "there are: " : "nearest of " + std::to_string(names.size()) + " are: ") +
         first_names(names.size(), [&](size_t i) { return names[near[i].second]; });
}

}  // namespace catena
