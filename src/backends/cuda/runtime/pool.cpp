#include "backends/cuda/runtime/pool.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "backends/cuda/runtime/pool_arena.h"
#include "catena/core/error.h"

namespace catena::gpu {
namespace {

// A request without a fitting free block polls the blocks that wait for events. So does every call
// once this many blocks wait.
constexpr size_t kPollThreshold = 64;
constexpr size_t kBlockChunk = 64;  // block records allocated at once

std::atomic<Pool::ReleaseHook> g_release_hook{nullptr};

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t segment_size(size_t size, bool exact) {
  if (size <= kSmallLimit) return kSmallSegment;
  if (size <= kMediumLimit && !exact) return kMediumSegment;
  return round_up(size, kLargeUnit);
}

}  // namespace

Pool::Pool(std::string name, Device device, bool pinned, StreamState* home,
           std::unique_ptr<RawMemory> raw)
    : name_(std::move(name)), device_(device), pinned_(pinned), home_(home), raw_(std::move(raw)) {}

// No storage may be alive. Only tests call this: the pools of devices live as long as the process.
Pool::~Pool() {
  poll(true);
  for (auto& [stream, arena] : arenas_) {
    arena->large.clear();
    for (auto& segment : arena->segments) raw_->release(segment->memory);
  }
}

void Pool::set_release_hook(ReleaseHook hook) { g_release_hook.store(hook); }

Arena& Pool::arena_of(StreamState* stream, PrivatePool* graph) {
  if (!graph && last_arena_ && stream == last_stream_) [[likely]]
    return *last_arena_;
  auto& slot = (graph ? graph->arenas_ : arenas_)[stream];
  if (!slot) {
    slot = std::make_unique<Arena>();
    slot->stream = stream;
    // A graph's memory outlives side streams of its step, and no new stream may get their address.
    if (graph) slot->keep = IntrusivePtr<StreamState>(stream);
  }
  if (!graph) {
    last_stream_ = stream;
    last_arena_ = slot.get();
  }
  return *slot;
}

StoragePtr Pool::allocate(size_t bytes, StreamState* stream, PrivatePool* graph) {
  const size_t size = round_up(std::max<size_t>(bytes, 1), kUnit);
  Block* block;
  {
    std::lock_guard lock(mutex_);
    if (size < bytes) out_of_memory(bytes);
    Arena& arena = arena_of(stream, graph);
    if (pending_.size() >= kPollThreshold) [[unlikely]]
      poll(false);
    block = take(arena, size);
    if (!block) [[unlikely]] {
      poll(false);
      block = take(arena, size);
      if (!block) block = grow(arena, size, false);
      if (!block && !raw_->capturing()) {
        poll(true);
        release_segments();
        block = grow(arena, size, true);
      }
      if (!block) out_of_memory(bytes);
    }
    statistics_.in_use += block->size;
    statistics_.peak_in_use = std::max(statistics_.peak_in_use, statistics_.in_use);
    ++statistics_.allocations;
  }
  auto* storage = new (block->storage) Storage;
  storage->device = device_;
  storage->pinned = pinned_;
  storage->data = block->address;
  storage->bytes = block->size;
  storage->block = block;
  storage->deleter = &Pool::delete_storage;
  return StoragePtr(storage);
}

Block* Pool::take(Arena& arena, size_t size) {
  Block* block = arena.best_fit(size);
  if (!block) return nullptr;
  arena.erase(*block);
  split(*block, size);
  return block;
}

// Splits the rest off a block that is not in a free list. Large blocks keep a small rest.
void Pool::split(Block& block, size_t size) {
  const size_t rest = block.size - size;
  if (rest == 0 || (!block.segment->small && rest <= kSmallLimit)) return;
  Block* tail = new_block();
  tail->segment = block.segment;
  tail->address = block.address + size;
  tail->size = rest;
  tail->previous = &block;
  tail->next = block.next;
  if (tail->next) tail->next->previous = tail;
  block.next = tail;
  block.size = size;
  block.segment->arena->insert(*tail);
}

// A block from a new segment, or null when the device or the limit refuses it.
Block* Pool::grow(Arena& arena, size_t size, bool exact) {
  size_t bytes = segment_size(size, exact);
  if (!is_within_limit(bytes)) return nullptr;
  void* memory = raw_->allocate(bytes);
  if (!memory) return nullptr;
  ++statistics_.device_allocations;
  reserved_ += bytes;
  auto segment = std::make_unique<Segment>(
      Segment{this, &arena, static_cast<char*>(memory), bytes, size <= kSmallLimit});
  Block* block = new_block();
  block->segment = segment.get();
  segment->first = block;
  block->address = segment->memory;
  block->size = bytes;
  arena.segments.push_back(std::move(segment));
  split(*block, size);
  return block;
}

void Pool::record_use(Block& block, const Stream& stream) {
  std::lock_guard lock(mutex_);
  if (stream.state() == block.segment->arena->stream) return;
  for (const Stream& used : block.uses) {
    if (used == stream) return;
  }
  block.uses.push_back(stream);
}

void Pool::delete_storage(Storage* storage) {
  Block& block = block_of(*storage);
  const ReleaseHook hook = g_release_hook.load(std::memory_order_acquire);
  if (hook && hook(block)) return;
  give_back(block);
}

void Pool::give_back(Block& block) noexcept { block.segment->pool->release(block); }

void Pool::release(Block& block) noexcept {
  std::launder(reinterpret_cast<Storage*>(block.storage))->~Storage();
  // Streams are released after the lock, because releasing the last handle calls retire_stream.
  Uses uses = std::move(block.uses);
  block.uses.clear();
  Pending pending{&block, {}};
  for (const Stream& stream : uses) {
    if (void* event = raw_->record(stream)) pending.events.push_back(event);
  }
  std::lock_guard lock(mutex_);
  statistics_.in_use -= block.size;
  if (pending.events.empty())
    put_back(block);
  else
    pending_.push_back(std::move(pending));
}

// Merges a block with its free neighbours and puts it into its free list.
void Pool::put_back(Block& block) noexcept {
  Arena& arena = *block.segment->arena;
  Block* merged = &block;
  if (Block* before = block.previous; before && before->free) {
    arena.erase(*before);
    before->size += block.size;
    before->next = block.next;
    if (before->next) before->next->previous = before;
    recycle_block(block);
    merged = before;
  }
  if (Block* after = merged->next; after && after->free) {
    arena.erase(*after);
    merged->size += after->size;
    merged->next = after->next;
    if (merged->next) merged->next->previous = merged;
    recycle_block(*after);
  }
  arena.insert(*merged);
}

// Takes back blocks whose events are done, or waits for all of them on request.
void Pool::poll(bool wait) noexcept {
  size_t kept = 0;
  for (Pending& pending : pending_) {
    bool done = true;
    while (!pending.events.empty()) {
      void* event = pending.events.back();
      if (!raw_->done(event) && !(wait && raw_->wait(event))) {
        done = false;
        break;
      }
      raw_->recycle(event);
      pending.events.pop_back();
    }
    if (done) {
      put_back(*pending.block);
    } else {
      if (&pending_[kept] != &pending) pending_[kept] = std::move(pending);
      ++kept;
    }
  }
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(kept), pending_.end());
}

// Returns completely free segments to the device. Work of their stream may still use their bytes,
// so this waits for it first; uses by other streams have been waited for.
void Pool::release_segments() {
  for (auto& [stream, arena] : arenas_)
    if (arena->free_blocks > 0 && raw_->synchronize(stream)) release_segments_of(*arena);
}

// A completely free segment is one block of its full size.
void Pool::release_segments_of(Arena& arena) {
  for (auto& segment : arena.segments) {
    Block& first = *segment->first;
    if (!first.free || first.size != segment->size) continue;
    arena.erase(first);
    recycle_block(first);
    raw_->release(segment->memory);
    reserved_ -= segment->size;
    segment = nullptr;
  }
  std::erase(arena.segments, nullptr);
}

void Pool::free_all_blocks() {
  std::lock_guard lock(mutex_);
  poll(true);
  release_segments();
}

bool Pool::is_within_limit(size_t more) const {
  return statistics_.limit == 0 || reserved_ + outside_ + more <= statistics_.limit;
}

bool Pool::count_outside(size_t bytes) {
  std::lock_guard lock(mutex_);
  if (!is_within_limit(bytes) && !raw_->capturing()) {
    poll(true);
    release_segments();
  }
  if (!is_within_limit(bytes)) return false;
  outside_ += bytes;
  return true;
}

void Pool::discount_outside(size_t bytes) {
  std::lock_guard lock(mutex_);
  outside_ -= bytes;
}

void Pool::set_limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  statistics_.limit = bytes;
}

void Pool::reset_peak() {
  std::lock_guard lock(mutex_);
  statistics_.peak_in_use = statistics_.in_use;
}

PoolStatistics Pool::statistics() const {
  std::lock_guard lock(mutex_);
  PoolStatistics result = statistics_;
  result.cached = reserved_ - statistics_.in_use;
  result.free_blocks = pending_.size();
  for (const auto& [stream, arena] : arenas_) result.free_blocks += arena->free_blocks;
  return result;
}

// Moves every segment of one arena, free blocks included, into another.
void Pool::adopt(Arena& from, Arena& into) {
  while (Block* block = from.small.best_fit(kUnit)) {
    from.erase(*block);
    into.insert(*block);
  }
  while (!from.large.empty()) {
    Block& block = *from.large.begin();
    from.erase(block);
    into.insert(block);
  }
  for (auto& segment : from.segments) {
    segment->arena = &into;
    into.segments.push_back(std::move(segment));
  }
  from.segments.clear();
}

void Pool::retire_stream(StreamState* stream) noexcept {
  std::lock_guard lock(mutex_);
  const auto found = arenas_.find(stream);
  if (stream == home_ || found == arenas_.end()) return;
  adopt(*found->second, arena_of(home_, nullptr));
  if (last_stream_ == stream) last_arena_ = nullptr;
  arenas_.erase(stream);
}

Block* Pool::new_block() {
  if (!spare_blocks_) {
    block_chunks_.push_back(std::make_unique<Block[]>(kBlockChunk));
    for (size_t i = 0; i < kBlockChunk; ++i) recycle_block(block_chunks_.back()[i]);
  }
  Block* block = spare_blocks_;
  spare_blocks_ = block->next;
  block->previous = block->next = nullptr;
  return block;
}

void Pool::recycle_block(Block& block) {
  block.next = spare_blocks_;
  spare_blocks_ = &block;
}

void Pool::out_of_memory(size_t asked) {
  const std::string users = statistics_.limit == 0 ? raw_->users() : std::string();
  fail<OutOfMemoryError>(
      "out of memory on ", name_, ": asked for ", asked, " bytes; in use ", statistics_.in_use,
      ", cached ", reserved_ - statistics_.in_use, ", shared with other processes ", outside_,
      ", free ", raw_->free_bytes(), ", ",
      statistics_.limit == 0 ? "no limit set" : message("limit ", statistics_.limit),
      raw_->capturing() ? "; a graph is being captured, so cached memory could not"
                          " be returned to the device"
                        : "",
      users.empty() ? "" : "; ", users);
}

PrivatePool::PrivatePool(Pool& pool) : pool_(pool) {}

PrivatePool::~PrivatePool() {
  std::lock_guard lock(pool_.mutex_);
  Arena& home = pool_.arena_of(pool_.home_, nullptr);
  for (auto& [stream, arena] : arenas_) pool_.adopt(*arena, home);
}

std::vector<Stream> PrivatePool::streams() const {
  std::vector<Stream> result;
  std::lock_guard lock(pool_.mutex_);
  for (const auto& [stream, arena] : arenas_)
    if (stream) result.emplace_back(stream);
  return result;
}

void PrivatePool::leave_to(const Stream& next, const std::vector<Stream>& users) {
  std::lock_guard lock(pool_.mutex_);
  Arena& into = pool_.arena_of(next.state(), nullptr);
  for (auto& [stream, arena] : arenas_) {
    for (const auto& segment : arena->segments)
      for (Block* block = segment->first; block; block = block->next)
        if (!block->free) block->uses.insert(block->uses.end(), users.begin(), users.end());
    pool_.adopt(*arena, into);
  }
}

bool PrivatePool::owns(const Block& block) const {
  std::lock_guard lock(pool_.mutex_);
  const auto found = arenas_.find(block.segment->arena->stream);
  return found != arenas_.end() && found->second.get() == block.segment->arena;
}

}  // namespace catena::gpu
