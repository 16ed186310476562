// Known bug of a library. Its provider declines such calls, so that the next one computes.
#pragma once

#include <span>

namespace catena {

// One bug of a library in problems of one kind.
template <class Problem>
struct KnownBug {
  const char* reason;  // library, version, what is wrong
  bool (*applies)(const Problem&);
};

// The first bug that the problem would meet, or null.
template <class Problem>
const KnownBug<Problem>* known_bug(std::span<const KnownBug<Problem>> bugs,
                                   const Problem& problem) {
  for (const KnownBug<Problem>& bug : bugs)
    if (bug.applies(problem)) return &bug;
  return nullptr;
}

}  // namespace catena
