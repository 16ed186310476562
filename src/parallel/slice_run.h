// Run of a rank over its slices of a batch (batch_slices.h).
#pragma once

#include <memory>
#include <optional>

#include "catena/array/random_source.h"
#include "catena/optimizers/optimizer.h"
#include "catena/parallel/batch_slices.h"
#include "catena/parallel/no_sync.h"
#include "slice_numbers.h"
#include "slice_persistents.h"
#include "slice_sums.h"

namespace catena::parallel {

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
