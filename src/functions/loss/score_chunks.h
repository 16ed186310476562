// Chunks of tokens, whose scores are made, turned into losses and gradients, and overwritten.
#pragma once

#include <optional>

#include "functions/loss/losses_over_ranks.h"

namespace catena::functions {

struct Wanted {
  bool h = false, W = false, b = false;
  bool any() const { return h || W || b; }
};

// Of the sum of the losses, or of the losses times given factors. Undefined where not wanted; those
// of W and b, (classes, 1), are of the compute type, and that of h where ranks add it up.
struct Gradients {
  Array h, W, b;
};

// `ranks`: null if this one has all classes. `who` is what errors name.
class ScoreChunks {
 public:
  ScoreChunks(const char* who, const Matrices& m, const LinearCrossEntropyOptions& options,
              const ClassesOverRanks* ranks);

  // Sets losses, (tokens, 1) of the compute type. factors: as losses, or undefined for 1. Once.
  Gradients run(const Array& losses, const Array& factors, const Wanted& wanted);

 private:
  struct Chunk {
    Slice part;
    int64_t count;
    Array rows;  // of scores_
    Array z;     // the columns of products
    Statistics statistics;
  };
  Gradients room_for(const Wanted& wanted) const;
  Chunk scores_from(int64_t begin) const;
  // The scores by their gradient.
  void replace(const Chunk& chunk, const Array& losses, const Array& factors, bool losses_only);

  const Matrices& m_;
  const LinearCrossEntropyOptions& options_;
  std::optional<LossesOverRanks> shared_;
  // The weights and the bias that products take. For many tokens they end with zeros for what fills
  // rows of scores up, since products of whole rows are faster.
  Array W_, b_;
  int64_t step_;  // tokens of a chunk
  // Chunks that are begun before the first is finished: the message of that travels meanwhile.
  int64_t ahead_;
  // (1 + ahead, step, columns): the classes, and what fills rows up to whole packs.
  Array scores_;
  Array weights_, spread_, total_;  // of the kernel in place
};

}  // namespace catena::functions
