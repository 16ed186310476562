// See shared_blocks.h.
#include "shared_blocks.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "catena/core/backend.h"
#include "catena/core/graph.h"
#include "catena/core/log.h"
#include "nccl_core.h"
#include "peer_memory.h"

namespace catena::comm::nccl {
namespace {

// Memory that is registered with NCCL as a symmetric window, for which it has faster kernels (2.27
// and later).
class NcclWindow {
 public:
  // Collective: new memory of the current GPU, of the same size on all ranks. Null where NCCL, or
  // one of the ranks, cannot do it. Without the core's mutex.
  static std::unique_ptr<NcclWindow> create(Core& core, Communicator& control, size_t bytes);
  // Frees nothing, see free().
  ~NcclWindow() = default;
  NcclWindow(const NcclWindow&) = delete;
  NcclWindow& operator=(const NcclWindow&) = delete;

  void* data() const { return data_; }
  // Collective, with all work done, under the core's mutex.
  void close(Core& core);
  // The memory, after close().
  void free();

 private:
  NcclWindow() = default;
  bool allocate(size_t bytes);
  bool enter(Core& core, size_t bytes);

  void* data_ = nullptr;
  void* window_ = nullptr;  // NCCL's, null: not registered
};

#if NCCL_VERSION_CODE >= 22700

// Of the library that is loaded, which may be older than the one that this was compiled with.
struct WindowCalls {
  decltype(&ncclMemAlloc) allocate = nullptr;
  decltype(&ncclMemFree) free = nullptr;
  decltype(&ncclCommWindowRegister) enter = nullptr;
  decltype(&ncclCommWindowDeregister) leave = nullptr;
  bool known() const { return allocate && free && enter && leave; }
};

template <class F>
void find_call(F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}

const WindowCalls& window_calls() {
  static const WindowCalls found = [] {
    WindowCalls calls;
    find_call(calls.allocate, "ncclMemAlloc");
    find_call(calls.free, "ncclMemFree");
    find_call(calls.enter, "ncclCommWindowRegister");
    find_call(calls.leave, "ncclCommWindowDeregister");
    return calls;
  }();
  return found;
}

bool NcclWindow::allocate(size_t bytes) {
  if (!window_calls().known()) return false;
  const ncclResult_t code = window_calls().allocate(&data_, bytes);
  if (code != ncclSuccess) data_ = nullptr;
  return data_ && cudaMemset(data_, 0, bytes) == cudaSuccess &&
         cudaDeviceSynchronize() == cudaSuccess;
}

// Whether NCCL has made it a window: it says yes, and gives none, where ranks cannot reach each
// other's memory.
bool NcclWindow::enter(Core& core, size_t bytes) {
  struct Entered {
    ncclResult_t code = ncclSuccess;
    ncclWindow_t window = nullptr;
  };
  const auto entered = std::make_shared<Entered>();
  // An error of NCCL's leaves the communicator as it is.
  core.run_collectively("ncclCommWindowRegister", core.timeout(),
                        [entered, comm = core.comm, data = data_, bytes](ncclComm_t*) {
                          entered->code = window_calls().enter(comm, data, bytes, &entered->window,
                                                               NCCL_WIN_COLL_SYMMETRIC);
                          return ncclSuccess;
                        });
  if (entered->code != ncclSuccess)
    logging::info("nccl: ", nccl_text(entered->code, "ncclCommWindowRegister", core.comm));
  window_ = entered->code == ncclSuccess ? entered->window : nullptr;
  return window_ != nullptr;
}

void NcclWindow::close(Core& core) {
  if (!window_) return;
  const auto window = static_cast<ncclWindow_t>(std::exchange(window_, nullptr));
  core.run_collectively(
      "ncclCommWindowDeregister", core.timeout(),
      [comm = core.comm, window](ncclComm_t*) { return window_calls().leave(comm, window); });
}

void NcclWindow::free() {
  if (data_) window_calls().free(std::exchange(data_, nullptr));
}

#else

bool NcclWindow::allocate(size_t) { return false; }
bool NcclWindow::enter(Core&, size_t) { return false; }
void NcclWindow::close(Core&) {}
void NcclWindow::free() {}

#endif

std::unique_ptr<NcclWindow> NcclWindow::create(Core& core, Communicator& control, size_t bytes) {
  std::unique_ptr<NcclWindow> made(new NcclWindow);
  // Only memory that all ranks have is registered, and only windows of all ranks stay.
  if (all_agree(control, made->allocate(bytes))) {
    std::unique_lock lock(core.mutex);
    core.throw_if_failed();
    const bool entered = made->enter(core, bytes);
    lock.unlock();
    if (all_agree(control, entered)) return made;
    lock.lock();
    made->close(core);
  }
  made->free();
  return nullptr;
}

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
