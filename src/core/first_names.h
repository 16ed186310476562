// List of names for an error that says what there is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

namespace catena {

constexpr size_t kMostNames = 8;

// name_of(0), name_of(1), ...: the first eight of them, by commas, and ", ..." for others.
template <class NameOf>
std::string first_names(size_t count, NameOf name_of) {
  std::string names;
  for (size_t i = 0; i < std::min(count, kMostNames); ++i)
    names += (i == 0 ? "" : ", ") + name_of(i);
  return count > kMostNames ? names + ", ..." : names;
}

}  // namespace catena
