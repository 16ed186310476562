// See shared_blocks.h.
#include "shared_blocks.h"

#include <algorithm>
#include <limits>

#include "catena/core/backend.h"
#include "catena/core/graph.h"
#include "nccl_window.h"

namespace catena::comm::nccl {

namespace {
// In units of the driver's own memory.
size_t block_bytes(size_t bytes) {
  constexpr size_t kUnit = 2 << 20;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}
}  // namespace

// Memory of one of two kinds. Arrays hold it, and the list of blocks.
struct SharedBlocks::Block {
  int device = 0;
  size_t bytes = 0;
  std::unique_ptr<PeerRegion> region;
  std::unique_ptr<NcclWindow> window;
  bool is_private = false;  // no other rank can reach it any more
  bool is_counted = false;  // against the limit of the device's pool

  Block() = default;
  Block(const Block&) = delete;
  ~Block() {
    const bool has_memory = region || window;
    if (is_counted && (is_private || !has_memory))
      backend(DeviceType::kCuda).discount_outside(device, bytes);
    if (!is_private) return;
    const RelaxedMode relaxed;  // another thread may capture
    int before = 0;
    cudaGetDevice(&before);
    cudaSetDevice(device);
    // What was queued may use it. cudaFree waits for that without breaking captures; NCCL's memory
    // is freed at once. At the end of the process there is no device any more.
    if (region) region->free();
    if (window && cudaDeviceSynchronize() == cudaSuccess) window->free();
    cudaGetLastError();
    cudaSetDevice(before);
  }
  char* data() const { return region ? region->own() : static_cast<char*>(window->data()); }
};

StoragePtr SharedBlocks::allocate(size_t bytes, Core& core, Communicator& control) {
  if (kind_ == SharedMemory::kPool || !is_open_ || control.size() == 1) return {};
  // What all ranks must agree in: a graph on one of them lets none allocate.
  const size_t asked = cuda::capture_id() != 0 ? 0 : bytes;
  const std::vector<uint64_t> all = control.all_gather_object(uint64_t(asked));
  const bool agree = std::all_of(all.begin(), all.end(), [&](uint64_t b) { return b == all[0]; });
  if (!agree || asked == 0) return {};
  std::shared_ptr<Block> block = reuse(bytes, control);
  if (!block) block = make(bytes, core, control);
  if (!block) return {};
  return borrow(cuda_device(device_), block->data(), bytes, block);
}

// A block that no array uses on any rank. That of one rank may be free before that of another.
std::shared_ptr<SharedBlocks::Block> SharedBlocks::reuse(size_t bytes, Communicator& control) {
  constexpr size_t kLooked = std::numeric_limits<uint64_t>::digits;
  const size_t looked = std::min(blocks_.size(), kLooked);
  uint64_t free = 0;
  for (size_t b = 0; b < looked; ++b) {
    const bool fits = blocks_[b]->bytes >= bytes && blocks_[b]->bytes / 2 <= block_bytes(bytes);
    if (fits && blocks_[b].use_count() == 1) free |= uint64_t(1) << b;
  }
  if (free != 0) CATENA_NCCL_CUDA(cudaDeviceSynchronize());  // what was queued may use them
  uint64_t free_on_all = free;
  for (const uint64_t there : control.all_gather_object(free)) free_on_all &= there;
  for (size_t b = 0; b < looked; ++b)
    if (free_on_all >> b & 1) return blocks_[b];
  return nullptr;
}

std::shared_ptr<SharedBlocks::Block> SharedBlocks::make(size_t bytes, Core& core,
                                                        Communicator& control) {
  auto block = std::make_shared<Block>();
  block->device = device_;
  block->bytes = block_bytes(bytes);
  block->is_counted = backend(DeviceType::kCuda).count_outside(device_, block->bytes);
  const std::vector<uint64_t> counted = control.all_gather_object(uint64_t(block->is_counted));
  if (!std::all_of(counted.begin(), counted.end(), [](uint64_t c) { return c != 0; }))
    return nullptr;
  if (kind_ == SharedMemory::kPeers) block->region = PeerRegion::create(control, block->bytes);
  if (kind_ == SharedMemory::kWindow)
    block->window = NcclWindow::create(core, control, block->bytes);
  if (!block->region && !block->window) return nullptr;
  blocks_.push_back(block);
  return block;
}

bool SharedBlocks::find(const void* data, size_t bytes, SeenBy& seen) const {
  return find_by(&PeerRegion::own_seen_by, data, bytes, seen);
}

bool SharedBlocks::find_others(const void* data, size_t bytes, SeenBy& others) const {
  return find_by(&PeerRegion::of, data, bytes, others);
}

// In the block of memory that all ranks have mapped in which these bytes are: `place` of each rank.
bool SharedBlocks::find_by(char* (PeerRegion::*place)(int) const, const void* data, size_t bytes,
                           SeenBy& found) const {
  const auto* const first = static_cast<const char*>(data);
  for (const std::shared_ptr<Block>& block : blocks_) {
    const char* const begin = block->data();
    if (!block->region || first < begin || first + bytes > begin + block->bytes) continue;
    for (int r = 0; r < block->region->ranks(); ++r)
      found.rank[r] = ((*block->region).*place)(r) + (first - begin);
    return true;
  }
  return false;
}

void SharedBlocks::close(bool keep, Core& core, Communicator& control) {
  is_open_ = false;
  for (const std::shared_ptr<Block>& block : blocks_) {
    if (keep && block->region) continue;
    if (block->region) block->region->close(control);
    if (block->window) block->window->close(core);
    block->is_private = true;
  }
  blocks_.clear();
}

}  // namespace catena::comm::nccl
