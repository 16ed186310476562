// How the parameters of one device and dtype are cut into arenas by their sizes.
#include "optimizers/arena_storage.h"

namespace catena::optimizers {
namespace {

using Slots = std::vector<ParameterArena::Slot>;

int64_t bytes_of(const ParameterArena::Slot& slot) {
  return slot.size * static_cast<int64_t>(itemsize(slot.parameter.dtype()));
}

bool may_cut_before(const Slots& slots, size_t i) {
  return !continues_pack(slots[i - 1].parameter, slots[i].parameter);
}

// First slot of the last arena: as many trailing slots as fit, if they are not all.
size_t tail_begins(const Slots& slots, int64_t limit) {
  size_t begin = slots.size();
  int64_t bytes = 0;
  for (size_t i = slots.size(); i-- > 0;) {
    bytes += bytes_of(slots[i]);
    if (bytes > limit) return begin;
    if (i > 0 && may_cut_before(slots, i)) begin = i;
  }
  return slots.size();
}

}  // namespace

std::vector<Slots> cut_slots(const Slots& slots, const ArenaCuts& cuts) {
  if (cuts.bytes <= 0) return {slots};
  const size_t tail = tail_begins(slots, cuts.last_bytes);
  std::vector<Slots> result(1);
  int64_t limit = cuts.first_bytes, bytes = 0;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (i > 0 && (i == tail || bytes >= limit) && may_cut_before(slots, i)) {
      result.emplace_back();
      limit = cuts.bytes;
      bytes = 0;
    }
    result.back().push_back(slots[i]);
    if (i < tail) bytes += bytes_of(slots[i]);
  }
  return result;
}

}  // namespace catena::optimizers
