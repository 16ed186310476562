// Division of global batches over ranks: disjoint, complete, with exact averaging weights.
#pragma once

#include <cstdint>
#include <span>

#include "catena/core/rank_of.h"
#include "catena/datasets/iterator.h"

namespace catena::datasets {

using catena::RankOf;

// One rank's slice of `count` samples.
struct Share {
  int64_t begin = 0, end = 0;  // positions in the batch, end excluded
  // (end - begin) / count: the weighted sum over ranks of means over slices is the mean over all.
  double weight = 0;
  int64_t size() const { return end - begin; }
};

// Contiguous slices whose lengths differ by at most one, that of rank 0 among the longest; a rank
// may get none (weight 0). The slice of a rank is the union of those of two ranks where there are
// twice as many. Throws ValueError unless 0 <= rank < ranks and count >= 0.
Share scatter(int64_t count, RankOf who);

// This rank's part of each global batch of an iterator. All ranks run equal iterators, so the order
// of samples does not depend on their number and no communication is needed.
class ScatteredIterator {
 public:
  ScatteredIterator(PositionIterator order, RankOf who = {});

  // This rank's samples of one global batch.
  struct Part {
    std::span<const int64_t> positions;  // may be empty while others have samples
    int64_t global_count = 0;            // 0: the iterator has finished
    double weight = 0;                   // of this rank's mean in the global mean
  };
  // The next batch's part.
  Part next();

  // The iterator of global batches, setting its position, and this rank.
  const PositionIterator& order() const { return order_; }
  void set_state(const IteratorState& state) { order_.set_state(state); }
  RankOf who() const { return who_; }

 private:
  PositionIterator order_;
  RankOf who_;
};

}  // namespace catena::datasets
