// The bugs of cuDNN that its provider avoids. Tests of convolutions are in
// tests/kernels/known_bugs_test.cpp, those of attention in tests/kernels/cudnn_attention_test.cpp.
#pragma once

#include "backends/common/known_bug.h"
#include "backends/cudnn/attention_plan.h"
#include "backends/cudnn/problem.h"

namespace catena::cudnn {

// The first bug that the problem would meet, or null.
const KnownBug<Problem>* known_bug(const Problem& problem);
const KnownBug<AttentionProblem>* known_bug(const AttentionProblem& problem);

}  // namespace catena::cudnn
