// Caching memory pool of one device (or of pinned host memory).
//
// Memory comes from the device in segments and is handed out in blocks. A block belongs to the
// stream on which it was allocated and is reused in that stream's order, which needs no waiting.
// Other streams that used a block are recorded on it, and it is reused only after their events. The
// pool uses CUDA only through RawMemory, so that its logic is tested without a GPU.
#pragma once

#include <boost/container/small_vector.hpp>
#include <boost/intrusive/set.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "catena/core/memory.h"
#include "catena/core/stream.h"

namespace catena::gpu {

// What the pool needs from the device. Functions marked noexcept run in destructors.
class RawMemory {
 public:
  virtual ~RawMemory() = default;
  virtual void* allocate(size_t bytes) = 0;  // null: the device has no more
  virtual void release(void* memory) noexcept = 0;
  virtual size_t free_bytes() noexcept = 0;  // left on the device
  // Who has the memory, "" when it is not known.
  virtual std::string users() noexcept { return {}; }
  // Returns when the stream's work is done; at once for null. False when that cannot be waited for,
  // because the stream is captured.
  virtual bool synchronize(StreamState* stream) noexcept = 0;
  // An event after the stream's enqueued work. Null if the stream cannot be used any more (at
  // process end); null counts as done.
  virtual void* record(const Stream& stream) noexcept = 0;
  virtual bool done(void* event) noexcept = 0;
  // Returns when the event is done. False when it cannot be waited for, because another thread
  // captures a graph.
  virtual bool wait(void* event) noexcept = 0;
  virtual void recycle(void* event) noexcept = 0;
  // Whether the calling thread captures a graph: nothing may be waited for or returned then.
  virtual bool capturing() noexcept = 0;
};

class Pool;
struct Arena;
struct Segment;

// One piece of a segment: live, free in its arena, or waiting for events.
struct Block : boost::intrusive::set_base_hook<> {
  alignas(Storage) unsigned char storage[sizeof(Storage)];  // made when handed out
  Segment* segment = nullptr;
  char* address = nullptr;
  size_t size = 0;
  Block* previous = nullptr;  // neighbours in the segment
  Block* next = nullptr;
  Block* bin_previous = nullptr;
  Block* bin_next = nullptr;
  bool free = false;
  boost::container::small_vector<Stream, 1> uses;

  struct Less {
    bool operator()(const Block& a, const Block& b) const {
      return a.size != b.size ? a.size < b.size : a.address < b.address;
    }
  };
};

// Memory for the allocations of one graph capture. It returns to the pool with the graph: to the
// home stream, unless leave_to() was called.
class PrivatePool {
 public:
  explicit PrivatePool(Pool& pool);
  ~PrivatePool();
  PrivatePool(const PrivatePool&) = delete;
  PrivatePool& operator=(const PrivatePool&) = delete;
  bool owns(const Block& block) const;
  // Those for which it has memory.
  std::vector<Stream> streams() const;
  // All memory passes to `next`. Arrays that are still alive may be used by the others.
  void leave_to(const Stream& next, const std::vector<Stream>& users);

 private:
  friend class Pool;
  Pool& pool_;
  std::unordered_map<StreamState*, std::unique_ptr<Arena>> arenas_;
};

class Pool {
 public:
  // `name` appears in messages. `home` is the stream that inherits the blocks of destroyed streams
  // and graphs (the device's default stream; null for host memory).
  Pool(std::string name, Device device, bool pinned, StreamState* home,
       std::unique_ptr<RawMemory> raw);
  ~Pool();

  // A block for work on `stream`; from `graph` when given. Throws OutOfMemoryError.
  StoragePtr allocate(size_t bytes, StreamState* stream, PrivatePool* graph = nullptr);
  // The block of a storage made by this pool; does not check that.
  static Block& block_of(const Storage& storage) { return *static_cast<Block*>(storage.block); }
  void record_use(Block& block, const Stream& stream);
  // Whether a pool of this kind made the storage (as opposed to borrow() or another device's pool).
  static bool made(const Storage& storage) { return storage.deleter == &Pool::delete_storage; }
  // Destroys the storage in the block and returns the block to its pool.
  static void give_back(Block& block) noexcept;
  // The same for a block of this pool.
  void release(Block& block) noexcept;
  // If set, this is called instead of release() when a storage is destroyed: graph capture keeps
  // blocks with it. It returns true if it has taken the block over.
  using ReleaseHook = bool (*)(Block&);
  static void set_release_hook(ReleaseHook hook);

  // Called when the stream is about to be destroyed and has finished its work.
  void retire_stream(StreamState* stream) noexcept;
  // Waits for recorded uses and returns all free segments to the device.
  void free_all_blocks();
  void set_limit(size_t bytes);
  // Counts memory of the device that others ask it for against the limit, for which free segments
  // are returned. Whether it is within the limit; else it is not counted.
  bool count_outside(size_t bytes);
  // The memory is gone.
  void discount_outside(size_t bytes);
  void reset_peak();
  PoolStatistics statistics() const;

 private:
  friend class PrivatePool;
  using Uses = boost::container::small_vector<Stream, 1>;
  struct Pending {
    Block* block;
    std::vector<void*> events;
  };

  Arena& arena_of(StreamState* stream, PrivatePool* graph);
  Block* take(Arena& arena, size_t size);
  Block* grow(Arena& arena, size_t size, bool exact);
  void split(Block& block, size_t size);
  void put_back(Block& block) noexcept;
  void adopt(Arena& from, Arena& into);
  void poll(bool wait) noexcept;
  bool is_within_limit(size_t more) const;
  void release_segments();
  void release_segments_of(Arena& arena);
  Block* new_block();
  void recycle_block(Block& block);
  [[noreturn]] void out_of_memory(size_t asked);
  static void delete_storage(Storage* storage);

  const std::string name_;
  const Device device_;
  const bool pinned_;
  StreamState* const home_;
  const std::unique_ptr<RawMemory> raw_;

  mutable std::mutex mutex_;
  std::unordered_map<StreamState*, std::unique_ptr<Arena>> arenas_;
  StreamState* last_stream_ = nullptr;  // of last_arena_, as most calls use the same stream
  Arena* last_arena_ = nullptr;
  std::vector<Pending> pending_;
  std::vector<std::unique_ptr<Block[]>> block_chunks_;
  Block* spare_blocks_ = nullptr;
  size_t reserved_ = 0;  // held from the device
  size_t outside_ = 0;   // see count_outside
  PoolStatistics statistics_;
};

}  // namespace catena::gpu
