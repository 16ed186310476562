// Blocks that cover a part of their arena, and the 16-bit copies of parameters.
#include <algorithm>

#include "catena/optimizers/arena.h"
#include "optimizers/arena_storage.h"

namespace catena::optimizers {

namespace {

// Whether the array begins where the block has the slot.
bool begins_in(const Block& block, const ParameterArena::Slot& slot, const Array& array) {
  const int64_t bytes = (slot.offset - block.covers.begin) * block.memory.itemsize();
  return array.defined() &&
         array.raw_data() == static_cast<const char*>(block.memory.raw_data()) + bytes;
}

}  // namespace

bool ParameterArena::has_data_in_place(const Slot& slot) const {
  const ParameterState& state = *slot.parameter.state();
  return has_whole_data() ? begins_in(data_, slot, state.variable.data()) : state.data->is_absent;
}

bool ParameterArena::in_place() const {
  return std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    if (!has_data_in_place(slot)) return false;
    const Array& memory = slot.parameter.state()->gradient_memory();
    return !gradient_.covers.contains(elements_of(slot)) ||
           (begins_in(gradient_, slot, memory) && memory.storage() == gradient_.memory.storage());
  });
}

// The parameter's values are those in the block, or, if they are not all there, nowhere.
void ParameterArena::seat_data(const Slot& slot) const {
  if (has_whole_data())
    slot.parameter.rebind_data(with_own_count(slice(data_, slot)));
  else
    slot.parameter.release_data();
}

void ParameterArena::seat_gradient(const Slot& slot) const {
  if (gradient_.covers.contains(elements_of(slot)))
    slot.parameter.state()->bind_gradient(slice(gradient_, slot));
  else
    slot.parameter.state()->release_gradient();
}

// Parameters that have left the arena stay where they are.
void ParameterArena::take_data(Block&& block) {
  std::vector<const Slot*> here;
  for (const Slot& slot : slots_)
    if (has_data_in_place(slot)) here.push_back(&slot);
  data_ = std::move(block);
  whole_data_ = own_data_ = {};
  for (const Slot* slot : here) seat_data(*slot);
  covered_ = range(covers_);
}

void ParameterArena::take_gradient_block(Block&& block) {
  gradient_ = std::move(block);
  whole_gradient_ = own_gradient_ = {};
  keeps_own_gradient_ = false;
  for (const Slot& slot : slots_)
    if (has_data_in_place(slot)) seat_gradient(slot);
  covered_ = range(covers_);
}

void ParameterArena::note_write() const {
  data_.memory.note_write();
  for (const Slot& slot : slots_)
    if (slot.parameter.state()->data->is_absent) ++slot.parameter.state()->data->moved_writes;
}

// 16-bit copies -----------------------------------------------------------------------------------

// Whether the slot's parameter has its 16-bit copy in low().
bool ParameterArena::has_low(const Slot& slot) const {
  const Array& memory = slot.parameter.state()->low_memory();
  return low().defined() && memory.defined() &&
         whole_of(*memory.storage()) == low().storage().get();
}

void ParameterArena::give_up_low() {
  for (const Slot& slot : slots_)
    if (has_low(slot)) slot.parameter.state()->bind_low({});
  covered_.low = {};
}

void ParameterArena::adopt_low() {
  if (dtype() != Dtype::kFloat32 || covers_.size() != size()) return;
  for (const Slot& slot : slots_) {
    ParameterState& state = *slot.parameter.state();
    const Array memory = state.low_memory();
    if (!memory.defined() || has_low(slot) || memory.device() != device()) continue;
    if (!low().defined()) covered_.low = allocate(ArenaBlock::kLow, size(), memory.dtype());
    if (memory.dtype() != low().dtype()) continue;
    const bool is_current = state.is_low_current();
    const Array place = with_own_count(slice(low(), slot));
    if (is_current) place.assign(memory);
    state.bind_low(place);
    if (is_current) state.mark_low_current();
  }
}

void ParameterArena::refresh_low() const {
  if (!low().defined()) return;
  for (const Slot& slot : slots_)
    if (has_low(slot)) slot.parameter.state()->low(low().dtype());
}

void ParameterArena::mark_low_current() const {
  if (!low().defined()) return;
  low().note_write();
  for (const Slot& slot : slots_)
    if (has_low(slot) && has_data_in_place(slot)) slot.parameter.state()->mark_low_current();
}

bool ParameterArena::is_low_current() const {
  return std::all_of(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return !has_low(slot) || slot.parameter.state()->is_low_current();
  });
}

}  // namespace catena::optimizers
