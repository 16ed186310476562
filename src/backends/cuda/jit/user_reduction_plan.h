// Plan of a reduction with a map from a kernel text: its threads, blocks and splits. Pure
// arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>

namespace catena::jit {

struct UserReducePlan {
  int threads = 32;       // of a block
  int width = 1;          // adjacent results of a block, each by threads / width threads
  int64_t blocks = 1;     // along the results
  int splits = 1;         // of the elements of a result
  int64_t per_split = 0;  // elements of one split
  int64_t finish_blocks = 1;
};

// `neighbours`: adjacent results are closer in memory than the elements of one. Without
// partial_bytes there is one split.
inline UserReducePlan plan_user_reduction(int64_t results, int64_t reduced, bool neighbours,
                                          int partial_bytes, int multiprocessors) {
  UserReducePlan plan;
  if (neighbours && results > 1) {
    plan.width = 32;
    plan.threads = reduced >= 8 ? 256 : 32;
  } else {
    while (plan.threads < 256 && int64_t{plan.threads} * 4 < reduced) plan.threads *= 2;
  }
  const int64_t most = int64_t{multiprocessors} * 64;
  const int64_t groups = (results + plan.width - 1) / plan.width;
  plan.blocks = std::min(groups, most);
  plan.per_split = std::max<int64_t>(reduced, 1);
  const int64_t per_pass = int64_t{plan.threads / plan.width} * 8;
  const int64_t wanted = (int64_t{multiprocessors} * 8 + plan.blocks - 1) / plan.blocks;
  const int64_t possible = reduced / (per_pass * 2);
  if (partial_bytes > 0 && wanted > 1 && possible > 1) {
    const int64_t splits = std::min<int64_t>({wanted, possible, 32768});
    plan.per_split = ((reduced + splits - 1) / splits + per_pass - 1) / per_pass * per_pass;
    plan.splits = static_cast<int>((reduced + plan.per_split - 1) / plan.per_split);
  }
  plan.finish_blocks = std::min(results, most);
  return plan;
}

}  // namespace catena::jit
