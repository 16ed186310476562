// Storages that are parts of others and count their own writes: parameters in an arena.
#pragma once

#include <memory>

#include "catena/core/memory.h"

namespace catena {

// What a part keeps alive; the deleter of its owner, by which it is recognised.
struct WholeOfPart {
  StoragePtr whole;
  void operator()(void*) const {}
};

// `bytes` of the storage from `data` on. Writes through the part count for the part alone.
inline StoragePtr part_of(const StoragePtr& whole, void* data, size_t bytes) {
  StoragePtr part =
      borrow(whole->device, data, bytes, std::shared_ptr<void>(data, WholeOfPart{whole}));
  part->pinned = whole->pinned;
  return part;
}

// The storage of which this one is a part, or null.
inline const Storage* whole_of(const Storage& part) {
  const auto* owner = part.owner ? std::get_deleter<WholeOfPart>(part.owner) : nullptr;
  return owner ? owner->whole.get() : nullptr;
}

// How often the bytes were written to, through the storage or, of a part, through the whole.
inline uint64_t write_count(const Storage& storage) {
  const uint64_t own = storage.version.load(std::memory_order_relaxed);
  const Storage* whole = whole_of(storage);
  return whole ? own + whole->version.load(std::memory_order_relaxed) : own;
}

}  // namespace catena
