// Run of a rank over its slices of a batch (batch_slices.h).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "catena/array/random_source.h"
#include "catena/array/random_state.h"
#include "catena/comm/communicator.h"
#include "catena/optimizers/arena.h"
#include "catena/optimizers/optimizer.h"
#include "catena/parallel/batch_slices.h"
#include "catena/parallel/no_sync.h"
#include "slice_persistents.h"

namespace catena::parallel {

// Every step takes the same number of blocks from the generator of each rank, and every slice has
// its part of them. The generators are equal on all ranks: they are rank 0's after setup. They are
// the devices' default ones, so that a checkpoint of these goes on; but ranks that are threads and
// share a device, and with it its generator, have one of their own each.
class SliceNumbers {
 public:
  SliceNumbers(Communicator& comm, int slices) : comm_(comm), slices_(slices) {}

  // Collective.
  void after_setup();
  void begin_step();
  // Where the numbers of a slice begin in this step.
  RandomBits of(int slice) const;
  // Collective: ValueError on all ranks unless their generators are equal.
  void check();

 private:
  RandomState& generator();

  Communicator& comm_;
  int slices_;
  std::optional<RandomState> own_;
  RandomBits first_;
};

// The sums of a rank's slices, of every arena, as a binary counter: while leaf k is added, level l
// holds the sum of 2^l neighbouring leaves if bit l of k is set. So log2(leaves) blocks of the size
// of the gradients are kept, none where a rank has one slice. Sums are in float32 for gradients of
// 16 bits.
class SliceSums {
 public:
  // Before the first of `leaves` leaves, a power of two; `user` is a stream that will use the sums.
  void begin(const std::vector<optimizers::ParameterArena>& arenas, int leaves, const Stream& user);
  // Adds the gradients of an arena, times `weight`, as this leaf; not for the last.
  void add(size_t arena, const Array& gradient, double weight, int leaf) const;
  // Adds these elements of the last leaf: the sum of all leaves, in the memory of `gradient` if it
  // has the dtype of the sums.
  Array finish(size_t arena, const optimizers::ElementRange& elements, const Array& gradient,
               double weight) const;

 private:
  std::vector<Arrays> levels_;  // of each arena
};

// Rank r of n runs slices [r, r + 1) * slices / n, one after the other. The gradients of all but
// the last are added up here; those of the last are joined with them bucket by bucket, while its
// backward pass is running, and then with those of the other ranks.
//
// A step:  discard (zero_grads) ── begin ── next, next, ... until it is false ── reduce of every
// bucket, from the last slice's backward pass or from update ── discard.
class SliceRun {
 public:
  // ValueError unless `slices` is a power of two that the ranks divide.
  SliceRun(Communicator& comm, int slices);

  int slices() const { return slices_; }
  int local() const { return slices_ / comm_.size(); }  // of them on each rank
  // Collective. ValueError unless config().deterministic.
  void after_setup(Optimizer& optimizer);

  // GradientError unless the gradients are zero, ValueError when n_local is not the number of
  // samples of this rank's slices in a batch of n_global.
  void begin(int64_t n_local, int64_t n_global);
  // Ends the slice that runs and begins the next one that has samples. False when there is none.
  // GradientError when the slice that runs has no gradient.
  bool next();
  // Of the slice that runs.
  int number() const { return first() + index_; }
  int index() const { return index_; }  // among this rank's
  SliceBounds rows() const;
  // Forgets the step: gradients were zeroed, or the parameters updated.
  void discard();
  // The same where the loop was left before its end, which errors then say.
  void leave();

  // These gradients of an arena become the mean over the batch. Collective, on the current stream.
  // GradientError unless the last slice has begun.
  void reduce(size_t arena, const optimizers::ElementRange& elements);
  // GradientError that says how the loop was run instead, unless the last slice has begun.
  void require_last() const;
  // Collective, now and then: ValueError when the ranks draw different random numbers.
  void check() { numbers_.check(); }

 private:
  int first() const { return comm_.rank() * local(); }
  bool is_last() const { return index_ + 1 == local(); }
  SliceBounds bounds(int index) const;
  double weight(int index) const;
  void begin_slice();
  void require_gradient() const;
  void end_slice();

  Communicator& comm_;
  int slices_;
  Optimizer* optimizer_ = nullptr;
  SliceSums sums_;
  std::shared_ptr<SlicePersistents> persistents_;
  SliceNumbers numbers_;
  int64_t samples_ = 0;  // of the batch, over all ranks
  int index_ = -1;       // the slice that runs, or ran last, among this rank's
  int left_in_ = -1;     // the slice in which the loop was left; -1: it was not
  bool is_open_ = false;
  std::optional<NoSync> no_sync_;
  std::optional<RandomSourceScope> draws_;
};

}  // namespace catena::parallel
