// The programs that every build compiles ahead of time.
#pragma once

#include <string>
#include <vector>

namespace catena::jit {

struct BundleItem {
  std::string what, source;
};
// Every table operation in every dtype it computes in, the usual casts, copies and fills,
// reductions, arange and concatenate.
std::vector<BundleItem> bundle_list();

}  // namespace catena::jit
