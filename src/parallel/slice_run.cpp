#include "slice_run.h"

#include <algorithm>

#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/comm/internals.h"
#include "catena/core/config.h"
#include "catena/core/memory.h"
#include "comm/agreement.h"
#include "core/compute_dtype.h"
#include "tree_reduction.h"

namespace catena::parallel {
namespace {

using optimizers::ParameterArena;

// In the dtype of sums; in place where that is the gradient's.
Array weighted_leaf(const Array& gradient, double weight) {
  const Array leaf = gradient.astype(compute_dtype(gradient.dtype()), false);
  if (weight != 1) multiply(leaf, weight, leaf);
  return leaf;
}

size_t levels_for(int leaves) {
  size_t levels = 0;
  while ((1 << levels) < leaves) ++levels;
  return levels;
}

bool fits(const Arrays& levels, size_t count, const ParameterArena& arena) {
  return levels.size() == count &&
         (count == 0 || (levels[0].size() == arena.size() && levels[0].device() == arena.device() &&
                         levels[0].dtype() == compute_dtype(arena.dtype())));
}

}  // namespace

void SliceSums::begin(const std::vector<ParameterArena>& arenas, int leaves, const Stream& user) {
  levels_.resize(arenas.size());
  for (size_t a = 0; a < arenas.size(); ++a) {
    const ParameterArena& arena = arenas[a];
    const size_t count = levels_for(leaves);
    if (fits(levels_[a], count, arena)) continue;
    levels_[a].clear();
    for (size_t l = 0; l < count; ++l) {
      levels_[a].push_back(
          Array::uninitialized({arena.size()}, compute_dtype(arena.dtype()), arena.device()));
      record_use(*levels_[a].back().storage(), user);
    }
  }
}

void SliceSums::add(size_t arena, const Array& gradient, double weight, int leaf) const {
  const Arrays& levels = levels_[arena];
  if (leaf % 2 == 0) {
    levels[0].assign(gradient);
    if (weight != 1) multiply(levels[0], weight, levels[0]);
    return;
  }
  Array sum = weighted_leaf(gradient, weight);
  for (size_t level = 0; (leaf >> level) % 2 == 1; ++level) {
    const bool is_last = (leaf >> (level + 1)) % 2 == 0;
    const Array& out = levels[is_last ? level + 1 : level];
    catena::add(levels[level], sum, out);
    sum = out;
  }
}

Array SliceSums::finish(size_t arena, const optimizers::ElementRange& elements,
                        const Array& gradient, double weight) const {
  const Array sum = weighted_leaf(gradient, weight);
  for (const Array& level : levels_[arena])
    catena::add(level(Slice(elements.begin, elements.end)), sum, sum);
  return sum;
}

namespace {

// Blocks of four words that a slice may draw before it meets the next slice's.
constexpr uint64_t kBlocksOfASlice = uint64_t(1) << 32;

bool share_a_device(Communicator& comm) {
  if (comm.name() != "threads") return false;
  const Device device = comm.device();
  const auto all = comm.all_gather_object(to_string(device));
  return std::count(all.begin(), all.end(), to_string(device)) > 1;
}

}  // namespace

RandomState& SliceNumbers::generator() {
  return own_ ? *own_ : random::default_state(comm_.device());
}

void SliceNumbers::after_setup() {
  own_.reset();
  const RandomState::State first = comm_.broadcast_object(generator().state());
  // Of all ranks or of none, so that those whose device is their own do not go ahead.
  if (comm_.all_reduce_value(int64_t(share_a_device(comm_)), comm::Reduction::kMax) > 0)
    own_.emplace(first.seed);
  generator().set_state(first);
}

void SliceNumbers::begin_step() {
  first_ = generator().reserve(kBlocksOfASlice * static_cast<uint64_t>(slices_), comm_.device());
}

RandomBits SliceNumbers::of(int slice) const {
  RandomBits bits = first_;
  bits.offset += kBlocksOfASlice * static_cast<uint64_t>(slice);
  return bits;
}

void SliceNumbers::check() {
  const RandomState::State own = generator().state();
  const auto difference =
      comm::Agreement().add("the seed", own.seed).add("the position", own.offset).compare(comm_);
  if (difference)
    difference->fail(comm_, message("multi-node optimizer with slices: the random generators of "
                                    "the ranks have come apart: ",
                                    difference->text(),
                                    "; between the steps draw the same on all ranks, or from a "
                                    "RandomState of your own"));
}

using optimizers::ParameterArena;

SliceRun::SliceRun(Communicator& comm, int slices)
    : comm_(comm),
      slices_(slices),
      persistents_(std::make_shared<SlicePersistents>(comm, slices)),
      numbers_(comm, slices) {
  constexpr const char* kWho = "create_multi_node_optimizer";
  CATENA_CHECK(ValueError, is_power_of_two(slices), kWho, ": .slices is ", slices,
               ", expected a power of two: they are summed in a balanced binary tree");
  CATENA_CHECK(ValueError, slices % comm.size() == 0, kWho, ": ", slices,
               " slices cannot be divided over ", comm.size(),
               " ranks; run 1, 2, 4, ... ranks, at most as many as slices");
}

void SliceRun::after_setup(Optimizer& optimizer) {
  CATENA_CHECK(ValueError, config().deterministic,
               "setup: slices give equal bits only with deterministic kernels; set "
               "config().deterministic = true, or CATENA_DETERMINISTIC=1");
  optimizer_ = &optimizer;
  discard();
  persistents_->after_setup(optimizer.persistents());
  numbers_.after_setup();
}

void SliceRun::discard() {
  draws_.reset();
  no_sync_.reset();
  is_open_ = false;
  index_ = left_in_ = -1;
}

void SliceRun::leave() {
  const int at = index_;
  discard();
  left_in_ = at;
}

// Slices ------------------------------------------------------------------------------------------

SliceBounds SliceRun::bounds(int index) const {
  return slice_bounds(samples_, first() + index, slices_);
}

SliceBounds SliceRun::rows() const {
  const SliceBounds own = bounds(index_);
  const int64_t begin = bounds(0).begin;
  return {own.begin - begin, own.end - begin};
}

// What the mean over the slice counts for, relative to a slice of average size. The sum over all is
// divided by their number at the end, which is exact: equal slices are not multiplied by anything.
double SliceRun::weight(int index) const {
  const int64_t own = bounds(index).size();
  return own == 0 ? 1 : double(own) * slices_ / double(samples_);  // of none: zeros
}

void SliceRun::begin(int64_t n_local, int64_t n_global) {
  CATENA_CHECK(ValueError, optimizer_ != nullptr,
               "slices: the optimizer is not set up; call setup(model) first");
  const Parameters& parameters = optimizer_->layout().parameters();
  const bool is_zero = std::all_of(parameters.begin(), parameters.end(),
                                   [](const Parameter& p) { return p.state()->is_stale(); });
  CATENA_CHECK(GradientError, is_zero,
               "slices: there are gradients already; call zero_grads() first, once a step");
  discard();
  samples_ = n_global;
  const int64_t own = bounds(local() - 1).end - bounds(0).begin;
  CATENA_CHECK(ValueError, n_local == own, "slices: rank ", comm_.rank(), " has ", n_local,
               " samples of a batch of ", n_global, ", but its slices, ", first(), " to ",
               first() + local() - 1, " of ", slices_, ", have ", own,
               "; give the iterator datasets::RankOf{comm.rank(), comm.size()}");
  sums_.begin(optimizer_->layout().arenas(), local(), comm_.side_stream());
  persistents_->begin_step();
  numbers_.begin_step();
}

bool SliceRun::next() {
  while (true) {
    if (is_open_) end_slice();
    if (is_last()) return false;
    ++index_;
    begin_slice();
    if (bounds(index_).size() > 0) return true;
  }
}

void SliceRun::begin_slice() {
  is_open_ = true;
  persistents_->begin_slice(index_);
  draws_.emplace(numbers_.of(number()));
  if (!is_last()) no_sync_.emplace(comm_);
}

// Without one the slice would count with zeros.
void SliceRun::require_gradient() const {
  const Parameters& parameters = optimizer_->layout().parameters();
  const bool has_one = std::any_of(parameters.begin(), parameters.end(),
                                   [](const Parameter& p) { return !p.state()->is_stale(); });
  CATENA_CHECK(GradientError, has_one || bounds(index_).size() == 0, "slices: slice ", number(),
               " of ", slices_,
               " has ended without a gradient of any parameter; call backward() in the body of the "
               "loop, on the mean loss of the slice (times 0 to leave it out), and zero_grads() "
               "and update() outside of the loop");
}

// Of the last slice the gradients stay where they are, for reduce.
void SliceRun::end_slice() {
  require_gradient();
  draws_.reset();
  no_sync_.reset();
  is_open_ = false;
  persistents_->end_slice(index_);
  if (is_last()) return;
  const auto& arenas = optimizer_->layout().arenas();
  for (size_t a = 0; a < arenas.size(); ++a) {
    arenas[a].settle_gradients();
    sums_.add(a, arenas[a].gradient().memory, weight(index_), index_);
  }
  for (const Parameter& p : optimizer_->layout().parameters()) p.zero_grad();
}

void SliceRun::require_last() const {
  if (is_last()) return;
  constexpr const char* kLoop =
      "for (const auto& slice : optimizer.slices(n_local, n_global)) { ... backward(); }";
  if (left_in_ >= 0)
    fail<GradientError>(
        "multi-node optimizer with slices: the loop over slices was left in slice ",
        first() + left_in_, " of this rank's slices ", first(), " to ", first() + local() - 1,
        ", by break, return or an exception, so that the step is not whole; call zero_grads() and "
        "run the loop to its end, on all ranks. A slice whose loss is multiplied by 0 is left out");
  if (index_ >= 0)
    fail<GradientError>("multi-node optimizer with slices: slice ", number(), " of ", slices_,
                        " is running; call update() after the loop");
  fail<GradientError>(
      "multi-node optimizer with slices: no slices were run since zero_grads; run "
      "every step as ",
      kLoop, ", on all ranks");
}

void SliceRun::reduce(size_t arena, const optimizers::ElementRange& elements) {
  require_last();
  const comm::PurposeScope purpose(&comm_, "slices");
  const Array gradient = optimizer_->layout().arenas()[arena].gradient().part(elements);
  if (gradient.device().is_cuda())
    record_use(*gradient.storage(), current_stream(gradient.device()));
  const Array sum = sums_.finish(arena, elements, gradient, weight(index_));
  tree_all_reduce(comm_, sum, 1.0 / slices_);
  if (sum.raw_data() != gradient.raw_data()) gradient.assign(sum);
}

}  // namespace catena::parallel
