// Lists of computations in the making.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "catena/parallel/pipeline/schedule.h"

namespace catena::parallel::pipeline {

// ValueError that begins with the name unless both are at least 1.
void check_counts(const char* name, int ranks, int micro_batches);

// Adds computations to the lists of their ranks; each kind goes through the micro-batches of a
// stage in order.
class ListMaker {
 public:
  ListMaker(std::string name, std::vector<int> rank_of_stage, int micro_batches);
  // The next micro-batch; false if there was none.
  bool add(Kind kind, int stage);
  // Micro-batches of that stage so far.
  int count(Kind kind, int stage) const { return next_[size_t(stage)][static_cast<size_t>(kind)]; }
  Schedule take() { return std::move(result_); }

 private:
  Schedule result_;
  std::vector<std::array<int, 4>> next_;  // of each stage: F, B, I, W
};

// Lists without messages. Those of ZB-H1 and ZB-V.
Schedule lists_of_zb_h1(int ranks, int micro_batches);
Schedule lists_of_zb_v(int ranks, int micro_batches);

}  // namespace catena::parallel::pipeline
