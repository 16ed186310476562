// The bugs of oneDNN that its provider avoids. Each has a test in
// tests/kernels/known_bugs_test.cpp.
#pragma once

#include "backends/common/known_bug.h"
#include "backends/onednn/plan.h"

namespace catena::onednn {

// The first bug that the problem would meet, or null.
const KnownBug<Problem>* known_bug(const Problem& problem);

}  // namespace catena::onednn
