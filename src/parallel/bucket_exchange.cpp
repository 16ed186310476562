#include "bucket_exchange.h"

#include <algorithm>
#include <utility>

#include "bucket_reduction.h"
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/comm/internals.h"
#include "catena/core/graph.h"
#include "core/compute_dtype.h"
#include "core/part_storage.h"
#include "state_comparison.h"

namespace catena::parallel {

void GradientSlots::prepare(Device device, int64_t bytes) {
  for (Slot& slot : slots_) {
    const bool fits =
        slot.memory.defined() && slot.memory.device() == device && slot.memory.nbytes() == bytes;
    if (fits) continue;
    slot = {};
    if (bytes > 0) slot.memory = Array::uninitialized({bytes}, Dtype::kUInt8, device);
  }
}

// Launches of a graph come behind what their stream has waited for before, and what follows behind
// them: events count within one capture, or outside of all.
uint64_t GradientSlots::current_capture(const Slot& slot) const {
  return slot.memory.device().is_cuda() ? cuda::capture_id() : 0;
}

Array GradientSlots::take(size_t bucket, int64_t elements, Dtype dtype) {
  Slot& slot = slots_[bucket % kSlots];
  const auto size = static_cast<int64_t>(itemsize(dtype));
  const bool is_free = !slot.taken || slot.taken->reference_count() == 1;
  if (!slot.memory.defined() || !is_free || slot.memory.nbytes() < elements * size) return {};
  if (slot.end && slot.capture == current_capture(slot))
    current_stream(slot.memory.device()).wait(slot.end);
  slot.taken =
      part_of(slot.memory.storage(), slot.memory.raw_data(), static_cast<size_t>(elements * size));
  const Shape shape{elements};
  return Array::from_storage(slot.taken, 0, shape, contiguous_strides(shape, size), dtype);
}

void GradientSlots::is_read_until(size_t bucket, const Event& end) {
  Slot& slot = slots_[bucket % kSlots];
  if (!slot.memory.defined()) return;
  slot.end = end;
  slot.capture = current_capture(slot);
}

using optimizers::ParameterArena;

// Layout ------------------------------------------------------------------------------------------

void BucketExchange::attach(Optimizer& optimizer, int number) {
  optimizer_ = &optimizer;
  number_ = number;
  cut_for_.clear();
  update();
  // The memory that scattered sums need besides the gradients.
  if (const int64_t most = most_scattered(); most > 0)
    comm::internals(ranks_.shard()).prepare_scattered_sums(size_t(most));
}

void BucketExchange::update() {
  const auto& arenas = optimizer_->layout().arenas();
  std::vector<const void*> blocks;
  // Where ranks keep parts, the memory of gradients comes and goes.
  for (const auto& arena : arenas)
    blocks.push_back(scatters(arena) ? arena.slots()[0].parameter.state()
                                     : arena.gradient().memory.raw_data());
  if (blocks == cut_for_) return;
  check_devices(ranks_.all(), optimizer_->layout());
  cut_for_ = std::move(blocks);
  buckets_ = make_buckets(arenas, options_);
  bucket_of_.clear();
  for (size_t b = 0; b < buckets_.size(); ++b)
    for (size_t s = buckets_[b].first; s < buckets_[b].last; ++s)
      bucket_of_[arenas[buckets_[b].arena].slots()[s].parameter.state()] = b;
  const bool gives_up = options_.sharding >= Sharding::kGradients;
  whole_.prepare(ranks_.all().device(), gives_up ? most_scattered() : 0);
  device_weights_.clear();
  for (const auto& arena : arenas) {
    if (!arena.device().is_cuda()) continue;
    // A weight such as 1/3 is not rounded to 16 bits: the weights of all ranks add up to one.
    device_weights_.push_back(
        scalar_array(share_.weight(), {compute_dtype(arena.dtype()), arena.device()}));
  }
}

// Bytes of the largest arena that is reduced in parts.
int64_t BucketExchange::most_scattered() const {
  int64_t most = 0;
  for (const auto& arena : optimizer_->layout().arenas())
    if (scatters(arena)) most = std::max(most, arena.size() * int64_t(itemsize(arena.dtype())));
  return most;
}

std::optional<size_t> BucketExchange::bucket_of(const ParameterState& parameter) const {
  const auto found = bucket_of_.find(&parameter);
  return found == bucket_of_.end() ? std::nullopt : std::optional(found->second);
}

// Gradients ---------------------------------------------------------------------------------------

// Whether a bucket is reduced into the part that this rank updates.
bool BucketExchange::scatters(const ParameterArena& arena) const {
  return is_reduced_in_parts(arena, options_);
}

// Whether a part is all that this rank keeps of the arena's gradients.
bool BucketExchange::adds(const ParameterArena& arena) const {
  return scatters(arena) && options_.sharding >= Sharding::kGradients && arena.frees_gradients();
}

bool BucketExchange::adds_parts() const {
  const auto& arenas = optimizer_->layout().arenas();
  return std::any_of(arenas.begin(), arenas.end(), [&](const auto& a) { return adds(a); });
}

bool BucketExchange::keeps_parts() const {
  const auto& arenas = optimizer_->layout().arenas();
  return std::any_of(arenas.begin(), arenas.end(),
                     [](const auto& arena) { return arena.keeps_own_gradient(); });
}

void BucketExchange::reopen() {
  for (size_t i = 0; i < optimizer_->layout().arenas().size(); ++i)
    optimizer_->arena(i).reopen_gradient();
}

void BucketExchange::set_parts_aside() {
  for (size_t i = 0; i < optimizer_->layout().arenas().size(); ++i)
    optimizer_->arena(i).set_own_gradient_aside();
}

void BucketExchange::collect(size_t index) {
  if (index >= buckets_.size()) return;
  ParameterArena& arena = arena_of(index);
  if (!scatters(arena) || arena.keeps_own_gradient() || arena.has_whole_gradient()) return;
  arena.collect_gradient(whole_.take(index, arena.size(), arena.dtype()));
}

bool BucketExchange::settle(size_t index, bool adding) {
  const Bucket& bucket = buckets_[index];
  ParameterArena& arena = arena_of(index);
  if (arena.keeps_own_gradient()) return false;
  if (adding && !adds(arena)) return false;
  collect(index);
  arena.settle_gradients(bucket.first, bucket.last);
  for (size_t s = bucket.first; s < bucket.last; ++s)
    arena.slots()[s].parameter.state()->mark_written();
  return bucket.begin != bucket.end;
}

// Reductions --------------------------------------------------------------------------------------

void BucketExchange::set_share(const BatchShare& share) {
  if (std::exchange(share_, share).weight() == share.weight()) return;
  for (const Array& w : device_weights_) w.fill(share.weight());
}

// Whether that takes no multiprocessors, which rounding would.
bool BucketExchange::goes_by_copies(const ParameterArena& arena) const {
  const size_t bytes = size_t(arena.size()) * itemsize(arena.dtype());
  return scatters(arena) && options_.sharding < Sharding::kGradients &&
         comm::internals(ranks_.shard()).moves_by_copies(bytes);
}

// The operation by which this rank's gradients count. On a GPU their weight is a value that replays
// of a graph can change.
comm::Reduce BucketExchange::weighted(size_t arena, const Array& gradient) const {
  const bool is_cuda = gradient.device().is_cuda();
  if (share_.local == 0) {
    gradient.fill(0);  // a mean over no samples is not a number, which no weight would remove
    return is_cuda ? comm::Reduce(comm::Reduction::kSum) : comm::weighted(0);
  }
  if (ranks_.all().size() == 1) return comm::Reduction::kSum;  // its weight is always 1
  if (!is_cuda) return comm::weighted(share_.weight());
  multiply(gradient, device_weights_[arena], gradient);
  return comm::Reduction::kSum;
}

void BucketExchange::reduce(size_t index, const With& with) {
  const Bucket& bucket = buckets_[index];
  ParameterArena& arena = arena_of(index);
  const Array gradient = arena.gradient().part({bucket.begin, bucket.end});
  if (with.factor.defined())
    multiply(gradient, with.factor.astype(compute_dtype(gradient.dtype())), gradient);
  const bool is_mean = with.is_mean || !share_.is_given();
  BucketReduction reduction{
      gradient,
      {},
      is_mean ? comm::Reduce(comm::Reduction::kMean) : weighted(bucket.arena, gradient),
      {comm::TagKind::kBucket, static_cast<uint16_t>(number_), static_cast<int32_t>(index)}};
  if (!goes_by_copies(arena)) reduction.travels_as = travelling_dtype(arena.dtype(), options_);
  const Array own =
      scatters(arena) ? arena.own_gradient(options_.sharding >= Sharding::kGradients) : Array();
  const bool has_sum = with.has_sum && adds(arena);
  reduction.own = has_sum ? arena.own_gradient(false) : own;
  if (has_sum) reduction.sum = own;
  is_started(index, start_reduction(ranks_, reduction, with.agreement, with.losses));
  if (!scatters(arena)) return;
  arena.keep_own_gradient(own);
  whole_.is_read_until(index, last_);
  collect(index + 1);
}

void BucketExchange::is_started(size_t index, const Event& end) {
  last_ = end;
  last_of_arena_.resize(optimizer_->layout().arenas().size());
  last_of_arena_[buckets_[index].arena] = end;
}

void BucketExchange::wait() {
  if (last_) current_stream(ranks_.all().device()).wait(last_);
  last_ = {};
  last_of_arena_.clear();
}

void BucketExchange::wait_for(size_t arena) const {
  if (arena < last_of_arena_.size() && last_of_arena_[arena])
    current_stream(ranks_.all().device()).wait(last_of_arena_[arena]);
}

}  // namespace catena::parallel
