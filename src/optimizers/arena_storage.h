// Helpers for the storages of arenas' blocks: the mark of gradients, counts of writes, packs.
#pragma once

#include <memory>
#include <vector>

#include "catena/optimizers/arena.h"
#include "core/part_storage.h"

namespace catena::optimizers {

// Marks the storage of gradient blocks, whose gaps are known to hold zeros, and keeps what the
// storage owned before: the memory itself, where a user's allocator has made it.
struct GradientMark {
  std::shared_ptr<void> owner;
  void operator()(void*) const {}
};

inline void mark_as_gradient(Storage& storage) {
  storage.owner = std::shared_ptr<void>(storage.data, GradientMark{storage.owner});
}

inline bool is_marked_as_gradient(const Storage& storage) {
  return std::get_deleter<GradientMark>(storage.owner) != nullptr;
}

// The same elements, whose writes count for them alone: graphs look whether a parameter that they
// refer to was written to.
inline Array with_own_count(const Array& a) {
  const StoragePtr part = part_of(a.storage(), a.raw_data(), static_cast<size_t>(a.nbytes()));
  return Array::from_storage(part, 0, a.shape(), a.strides(), a.dtype());
}

// Whether b follows a without a gap: a layer has asked for both to lie so.
inline bool continues_pack(const Parameter& a, const Parameter& b) {
  const auto owner = [](const Parameter& p) { return p.name().substr(0, p.name().rfind('/') + 1); };
  return a.state()->is_packed && b.state()->is_packed && owner(a) == owner(b);
}

// Slots, in the order of their places, as one list for each arena.
std::vector<std::vector<ParameterArena::Slot>> cut_slots(
    const std::vector<ParameterArena::Slot>& slots, const ArenaCuts& cuts);

inline ElementRange elements_of(const ParameterArena::Slot& slot) {
  return {slot.offset, slot.offset + slot.size};
}

}  // namespace catena::optimizers
