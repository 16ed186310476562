// Slices of a batch: training that gives the same parameters, bit for bit, on any number of ranks.
//
//   catena::config().deterministic = true;
//   auto optimizer = create_multi_node_optimizer(optimizers::Adam(), comm, {.slices = 8});
//   optimizer.setup(model);
//   for (const datasets::Batch& batch : ...) {  // of RankOf{comm->rank(), comm->size()}
//     optimizer.zero_grads();
//     for (const auto& slice : optimizer.slices(batch.size(), batch.global_count))
//       F::softmax_cross_entropy(model(slice(batch.x())), slice(batch.t())).backward();
//     optimizer.update();
//   }
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>

#include "catena/array/array.h"

namespace catena::parallel {

class SliceRun;  // the library's own

// Samples [begin, end) of a batch.
struct SliceBounds {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};
// Those of slice `number` of `slices` in a batch of `samples`. Slices are contiguous, their sizes
// differ by at most one, and each is the union of two slices of 2 * slices; so the part of a rank
// (datasets::scatter) is made of whole slices.
SliceBounds slice_bounds(int64_t samples, int number, int slices);

// A slice that this rank runs.
class BatchSlice {
 public:
  // Among the slices of the global batch, and its rows in this rank's batch.
  int number() const { return number_; }
  int64_t begin() const { return used(begin_); }
  int64_t end() const { return used(begin_ + size_); }
  int64_t size() const { return used(size_); }
  // size() / samples of this rank: what the slice's mean counts for in that of the rank's batch.
  double share() const { return double(size_) / double(of_); }
  // The slice's rows of an array with a row for each sample of this rank's batch. They are a copy
  // unless they begin where a new array would: a kernel may choose its way by the alignment.
  // ShapeError for another number of rows.
  Array operator()(const Array& batch) const;

 private:
  friend class BatchSlices;
  int64_t used(int64_t value) const {
    *used_ = true;
    return value;
  }
  int number_ = 0;
  int64_t begin_ = 0, size_ = 0, of_ = 0;
  std::shared_ptr<bool> used_ = std::make_shared<bool>(false);  // of copies too: its rows are known
};

// This rank's slices of a batch, one after the other, for a range-based for; made by
// MultiNodeOptimizer::slices. Slices without samples are left out. In the body of the loop:
//  - one backward pass, from the mean over the slice's samples; all but the last of several inside
//    no_sync(). Gradients begin at zero, and what the body leaves of them is the slice's;
//  - random numbers, from any generator, are those of the slice;
//  - persistent arrays are those of the slice (see MultiNodeOptimizer::slices).
// A body that makes no gradient is a GradientError that names the slice. A body that asks neither
// for the slice's rows nor for where they are is a ValueError: it computes the same in each slice.
// What cannot be seen is a body that asks, and computes something else all the same: the gradient
// is then that of what it computed. A loop that is left early, by break, return or an exception,
// has to be started again after zero_grads; update() without that is a GradientError that says so.
class BatchSlices {
 public:
  class Iterator {
   public:
    using value_type = BatchSlice;
    using difference_type = std::ptrdiff_t;
    const BatchSlice& operator*() const { return slices_->slice_; }
    const BatchSlice* operator->() const { return &slices_->slice_; }
    Iterator& operator++() {
      slices_->advance();
      return *this;
    }
    void operator++(int) { slices_->advance(); }
    bool operator==(std::default_sentinel_t) const { return slices_->is_done_; }

   private:
    friend class BatchSlices;
    explicit Iterator(BatchSlices* slices) : slices_(slices) {}
    BatchSlices* slices_;
  };

  // `run` null: one slice, the whole.
  BatchSlices(std::shared_ptr<SliceRun> run, int64_t n_local, int64_t n_global);
  ~BatchSlices();
  BatchSlices(const BatchSlices&) = delete;
  BatchSlices& operator=(const BatchSlices&) = delete;

  // Starts the first slice. Once.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  void advance();
  void check_body() const;

  std::shared_ptr<SliceRun> run_;
  int64_t n_local_, n_global_;
  BatchSlice slice_;
  bool is_done_ = false;
};

}  // namespace catena::parallel
