// The classes of linear_cross_entropy where ranks share them, which the layers of ranks implement.
#pragma once

#include <memory>

#include "catena/autograd/function_call.h"
#include "catena/core/stream.h"
#include "catena/functions/loss/linear_cross_entropy.h"

namespace catena::functions {

// Each rank has neighbouring classes, their rows of W, and all tokens. All ranks make the same
// calls in the same order; those that return an event may run beside the current stream until it
// waits for that.
class ClassesOverRanks {
 public:
  ClassesOverRanks(int ranks, int64_t first, int64_t classes)
      : ranks(ranks), first(first), classes(classes) {}
  virtual ~ClassesOverRanks() = default;

  // All ranks' arrays `own`, contiguous (n, ...), in `all`, (ranks n, ...).
  virtual Event gather(const Array& own, const Array& all) const = 0;
  // x becomes the sum over the ranks, the same bits on all.
  virtual Event sum(const Array& x) const = 0;
  // The largest of all ranks' numbers, by elements.
  virtual Array largest(const Array& x) const = 0;
  // What all ranks have alike, for work that differs by rank; and the sum of what they make. Both
  // are differentiable.
  virtual Variable copied(const Variable& x) const = 0;
  virtual Variable summed(const Variable& part) const = 0;

  const int ranks;
  const int64_t first, classes;  // of this rank; of all together
};

// The loss of a call with the operands h, W, t and, if there is one, b. ranks: null if this one has
// all classes.
Variable linear_cross_entropy(FunctionCall& call, const LinearCrossEntropyOptions& options,
                              const std::shared_ptr<const ClassesOverRanks>& ranks);

}  // namespace catena::functions
