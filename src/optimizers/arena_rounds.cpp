// What arenas do in each step of training in which every process updates a part: gradients are
// collected, reduced into that part and opened again, values are let go and come back.
#include <algorithm>
#include <utility>
#include <vector>

#include "catena/optimizers/arena.h"
#include "optimizers/arena_storage.h"

namespace catena::optimizers {
namespace {

constexpr ElementRange kNowhere{-1, -1};  // not even an empty slot is there

// Fills ranges of a block, added in their order, with zeros. Those that are close together become
// one fill, with what is between them: the launch of another one would take longer.
class Clearing {
 public:
  explicit Clearing(const Block& block) : block_(block) {}

  void add(const ElementRange& next) {
    constexpr int64_t kNear = int64_t(4) << 20;  // bytes that a GPU fills in the time of a launch
    if (next.size() == 0) return;
    if ((next.begin - range_.end) * block_.memory.itemsize() > kNear) end();
    range_ = {range_.size() > 0 ? range_.begin : next.begin, next.end};
  }
  void end() {
    if (range_.size() > 0) block_.part(range_).fill(0);
    range_ = {};
  }

 private:
  const Block& block_;
  ElementRange range_;
};

}  // namespace

// Gradients ---------------------------------------------------------------------------------------

void ParameterArena::collect_gradient(const Array& memory) {
  if (has_whole_gradient()) return;
  const Array own = gradient_.memory;
  Block whole{memory, {0, size_}};
  if (!memory.defined())
    whole.memory = memory_ ? allocate(ArenaBlock::kGradient, size_, dtype())
                           : Array::uninitialized({size_}, dtype(), device());
  if (!memory.defined()) mark_as_gradient(*whole.memory.storage());
  // Passes overwrite gradients that are zero, and settle_gradients fills those that none reaches.
  const auto is_overwritten = [this](const Slot& slot) {
    return has_data_in_place(slot) && slot.parameter.state()->is_stale();
  };
  const auto is_here = [this](const Slot& slot) {
    const ParameterState& state = *slot.parameter.state();
    return has_data_in_place(slot) && state.gradient_memory().defined() && !state.is_stale();
  };
  Clearing clearing(whole);
  for (size_t s = 0; s < slots_.size(); ++s) {
    const Slot& slot = slots_[s];
    if (!is_overwritten(slot) && !is_here(slot)) clearing.add(elements_of(slot));
    clearing.add({slot.offset + slot.size, end_of(s)});  // the gap
  }
  clearing.end();
  for (const Slot& slot : slots_)
    if (is_here(slot)) slice(whole, slot).assign(slot.parameter.state()->gradient_memory());
  take_gradient_block(std::move(whole));
  own_gradient_ = own;
}

// Memory that is registered with a network is not made anew in each step.
Array ParameterArena::own_gradient(bool frees) {
  if (!frees || memory_ != nullptr) return gradient_.part(covers_);
  if (own_gradient_.defined()) return own_gradient_;
  return Array::uninitialized({covers_.size()}, dtype(), device());
}

void ParameterArena::keep_own_gradient(const Array& own) {
  const bool stays = own.storage() == gradient_.memory.storage();
  const Array whole = stays ? gradient_.memory : Array();
  take_gradient_block({own, covers_});
  whole_gradient_ = whole;
  keeps_own_gradient_ = true;
}

void ParameterArena::set_own_gradient_aside() {
  if (!std::exchange(keeps_own_gradient_, false)) return;
  gradient_.covers = kNowhere;
  for (const Slot& slot : slots_)
    if (has_data_in_place(slot)) slot.parameter.state()->bind_gradient({});
}

void ParameterArena::reopen_gradient() {
  if (!std::exchange(keeps_own_gradient_, false)) return;
  if (whole_gradient_.defined()) {
    const Array whole = whole_gradient_;
    take_gradient_block({whole, {0, size_}});
    return;
  }
  for (const Slot& slot : slots_) {
    if (gradient_.covers.contains(elements_of(slot)) || !has_data_in_place(slot)) continue;
    ParameterState& state = *slot.parameter.state();
    const bool is_zero = state.is_stale();
    state.bind_gradient({});
    if (!is_zero) state.mark_written();
  }
}

// Values ------------------------------------------------------------------------------------------

uint64_t ParameterArena::writes_of_data() const {
  uint64_t writes = 0;
  for (const Slot& slot : slots_) writes += slot.parameter.state()->data->writes();
  return writes;
}

void ParameterArena::keep_own_data(bool frees) {
  if (!has_whole_data() || covers_.size() == size_) return;
  if (!frees || memory_ != nullptr) {
    const Array whole = data_.memory;
    take_data({data_.part(covers_), covers_});
    whole_data_ = whole;
    return;
  }
  const bool is_known = own_data_.defined() && writes_of_data() == writes_when_taken_;
  const Array own =
      own_data_.defined() ? own_data_ : Array::uninitialized({covers_.size()}, dtype(), device());
  if (!is_known) own.assign(data_.part(covers_));
  take_data({own, covers_});
  for (const Slot& slot : slots_)  // copies that autocast has made, of values that are gone
    if (ParameterState& state = *slot.parameter.state(); state.data->is_absent) state.bind_low({});
}

// Every array, and every part of the block, holds the block's storage once.
bool ParameterArena::has_kept_views() const {
  if (!whole_data_.defined()) return false;
  const StoragePtr& block = whole_data_.storage();
  std::vector<const ArrayBody*> own;
  for (const Array* a : {&whole_data_, &data_.memory, &covered_.data})
    if (a->storage() == block && std::find(own.begin(), own.end(), a->body()) == own.end())
      own.push_back(a->body());
  return block->reference_count() > own.size();
}

Array ParameterArena::memory_for_data() const {
  if (has_whole_data()) return data_.memory;
  if (whole_data_.defined()) return whole_data_;
  return Array::uninitialized({size_}, dtype(), device());
}

void ParameterArena::take_whole_data(const Array& whole) {
  if (has_whole_data()) return;
  const Array own = whole_data_.defined() ? Array() : data_.memory;
  take_data({whole, {0, size_}});
  own_data_ = own;
  writes_when_taken_ = writes_of_data();
}

}  // namespace catena::optimizers
