// Free blocks of one stream, found by size. Part of the pool; used under its lock.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cuda/runtime/pool.h"

namespace catena::gpu {

inline constexpr size_t kUnit = 512;                      // sizes are multiples of this
inline constexpr size_t kSmallSegment = size_t{2} << 20;  // small blocks are cut from these
inline constexpr size_t kSmallLimit = size_t{1} << 20;    // larger requests have separate segments
inline constexpr size_t kMediumLimit = size_t{10} << 20;  // up to here they share segments of
inline constexpr size_t kMediumSegment = size_t{20} << 20;
inline constexpr size_t kLargeUnit = size_t{2} << 20;  // larger segments are rounded up to this

struct Segment {
  Pool* pool;
  Arena* arena;
  char* memory;
  size_t size;
  bool small;
  Block* first = nullptr;  // at its beginning
};

// Small blocks in lists by exact size, with a two-level bitmap: a best fit takes a few
// instructions.
class SmallBins {
 public:
  void insert(Block& block) {
    const size_t bin = block.size / kUnit - 1;
    block.bin_previous = nullptr;
    block.bin_next = heads_[bin];
    if (block.bin_next) block.bin_next->bin_previous = &block;
    heads_[bin] = &block;
    words_[bin / 64] |= uint64_t{1} << (bin % 64);
    summary_ |= uint64_t{1} << (bin / 64);
  }
  void erase(Block& block) {
    const size_t bin = block.size / kUnit - 1;
    if (block.bin_next) block.bin_next->bin_previous = block.bin_previous;
    if (block.bin_previous) {
      block.bin_previous->bin_next = block.bin_next;
      return;
    }
    heads_[bin] = block.bin_next;
    if (heads_[bin]) return;
    words_[bin / 64] &= ~(uint64_t{1} << (bin % 64));
    if (words_[bin / 64] == 0) summary_ &= ~(uint64_t{1} << (bin / 64));
  }
  // The most recently freed block of the smallest size that fits, or null.
  Block* best_fit(size_t size) const {
    const size_t bin = size / kUnit - 1;
    if (heads_[bin]) return heads_[bin];
    const size_t word = bin / 64;
    const uint64_t here = words_[word] & (~uint64_t{0} << (bin % 64));
    if (here) return heads_[word * 64 + size_t(std::countr_zero(here))];
    if (word == 63) return nullptr;
    const uint64_t above = summary_ & (~uint64_t{0} << (word + 1));
    if (!above) return nullptr;
    const size_t w = size_t(std::countr_zero(above));
    return heads_[w * 64 + size_t(std::countr_zero(words_[w]))];
  }

 private:
  static constexpr size_t kBins = kSmallSegment / kUnit;
  static_assert(kBins == 64 * 64);
  Block* heads_[kBins] = {};
  uint64_t words_[64] = {};
  uint64_t summary_ = 0;
};

struct Arena {
  StreamState* stream = nullptr;
  IntrusivePtr<StreamState> keep;
  SmallBins small;
  boost::intrusive::set<Block, boost::intrusive::compare<Block::Less>> large;
  std::vector<std::unique_ptr<Segment>> segments;
  size_t free_blocks = 0;

  void insert(Block& block) {
    block.free = true;
    ++free_blocks;
    if (block.segment->small)
      small.insert(block);
    else
      large.insert(block);
  }
  void erase(Block& block) {
    block.free = false;
    --free_blocks;
    if (block.segment->small)
      small.erase(block);
    else
      large.erase(large.iterator_to(block));
  }
  Block* best_fit(size_t size) {
    if (size <= kSmallLimit) return small.best_fit(size);
    const auto found = large.lower_bound(
        size, [](const auto& a, const auto& b) { return size_of(a) < size_of(b); });
    return found == large.end() ? nullptr : &*found;
  }

 private:
  static size_t size_of(size_t size) { return size; }
  static size_t size_of(const Block& block) { return block.size; }
};

}  // namespace catena::gpu
