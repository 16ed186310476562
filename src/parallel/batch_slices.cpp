#include "catena/parallel/batch_slices.h"

#include "core/nested_share.h"
#include "slice_run.h"

namespace catena::parallel {
namespace {

// What the pools of the devices give.
bool begins_like_a_new_array(const Array& a) {
  const uintptr_t alignment = a.device().is_cpu() ? 64 : 256;
  return reinterpret_cast<uintptr_t>(a.raw_data()) % alignment == 0;
}

}  // namespace

SliceBounds slice_bounds(int64_t samples, int number, int slices) {
  CATENA_CHECK(ValueError, samples >= 0 && slices > 0 && number >= 0 && number < slices,
               "slice_bounds: slice ", number, " of ", slices, " of ", samples,
               " samples, expected 0 <= number < slices and samples >= 0");
  return {begin_of_share(samples, number, slices),
          begin_of_share(samples, int64_t(number) + 1, slices)};
}

Array BatchSlice::operator()(const Array& batch) const {
  CATENA_CHECK(ShapeError, batch.ndim() > 0 && batch.shape()[0] == of_, "BatchSlice: an array of ",
               batch.shape(), ", expected one row for each of the ", of_,
               " samples of this rank's batch");
  *used_ = true;
  if (size_ == of_ && begins_like_a_new_array(batch)) return batch;
  const Array rows = batch(catena::Slice(begin_, begin_ + size_));
  return begins_like_a_new_array(rows) ? rows : rows.copy();
}

BatchSlices::BatchSlices(std::shared_ptr<SliceRun> run, int64_t n_local, int64_t n_global)
    : run_(std::move(run)), n_local_(n_local), n_global_(n_global) {
  slice_.of_ = n_local;
}

BatchSlices::~BatchSlices() {
  if (run_ && !is_done_) run_->leave();
}

BatchSlices::Iterator BatchSlices::begin() {
  if (run_) {
    run_->begin(n_local_, n_global_);
    advance();
  } else {
    slice_.size_ = n_local_;
    is_done_ = n_local_ == 0;
  }
  return Iterator(this);
}

void BatchSlices::check_body() const {
  CATENA_CHECK(ValueError, *slice_.used_ || slice_.size_ == slice_.of_ || slice_.size_ == 0,
               "slices: the body of the loop did not use slice ", slice_.number_, ", which has ",
               slice_.size_, " of the ", slice_.of_,
               " samples of this rank's batch; compute its loss from slice(x) of each array x of "
               "the batch, not from the whole batch");
}

void BatchSlices::advance() {
  check_body();
  is_done_ = !run_ || !run_->next();
  if (is_done_) return;
  const SliceBounds rows = run_->rows();
  slice_.number_ = run_->number();
  slice_.begin_ = rows.begin;
  slice_.size_ = rows.size();
  *slice_.used_ = false;
}

}  // namespace catena::parallel
