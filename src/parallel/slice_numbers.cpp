#include "slice_numbers.h"

#include <algorithm>

#include "catena/array/random.h"
#include "comm/agreement.h"

namespace catena::parallel {
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

}  // namespace catena::parallel
