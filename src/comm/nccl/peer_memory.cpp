// See peer_memory.h.
#include "peer_memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace catena::comm::nccl {

PeerMemory share_memory(void** memory, size_t bytes, const Communicator& control) {
  PeerMemory own;
  own.host = control.topology().hosts[size_t(control.rank())];
  own.process = getpid();
  own.is_shared = copies_directly() && cudaMalloc(memory, bytes) == cudaSuccess &&
                  cudaMemset(*memory, 0, bytes) == cudaSuccess &&
                  cudaDeviceSynchronize() == cudaSuccess &&
                  cudaIpcGetMemHandle(&own.handle, *memory) == cudaSuccess;
  if (!own.is_shared) cudaGetLastError();
  return own;
}

bool may_map(const PeerMemory& own, const PeerMemory& other) {
  return own.is_shared && other.is_shared && other.host == own.host && other.process != own.process;
}

void* map_memory(const cudaIpcMemHandle_t& handle) {
  void* mapped = nullptr;
  if (cudaIpcOpenMemHandle(&mapped, handle, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess)
    return mapped;
  cudaGetLastError();
  return nullptr;
}

bool all_agree(Communicator& control, bool yes) {
  const std::vector<int> all = control.all_gather_object(int(yes));
  return std::find(all.begin(), all.end(), 0) == all.end();
}

void stop_blocks(BlockState* states, size_t blocks, int device, cudaStream_t stream) noexcept {
  const RelaxedMode relaxed;
  cudaSetDevice(device);
  cudaMemset2DAsync(&states->stop, sizeof(BlockState), 1, sizeof(states->stop), blocks, stream);
  cudaStreamSynchronize(stream);
}

std::unique_ptr<PeerRegion> PeerRegion::create(Communicator& control, size_t bytes) {
  const int ranks = control.size();
  if (ranks < 2 || ranks > kMostRanks) return nullptr;
  std::unique_ptr<PeerRegion> made(new PeerRegion);
  made->rank_ = control.rank();
  made->seen_.resize(size_t(ranks));
  void* memory = nullptr;
  const PeerMemory own = share_memory(&memory, bytes, control);
  made->seen_[size_t(made->rank_)] = static_cast<char*>(memory);
  const bool mapped = made->map(control.all_gather_object(own));
  // Where this rank has mapped the memory of each; and that it has.
  struct View {
    std::array<char*, kMostRanks> of{};
    bool is_whole = false;
  };
  View view;
  std::copy(made->seen_.begin(), made->seen_.end(), view.of.begin());
  view.is_whole = mapped;
  const std::vector<View> views = control.all_gather_object(view);
  for (const View& there : views) made->seen_there_.push_back(there.of[size_t(made->rank_)]);
  if (std::all_of(views.begin(), views.end(), [](const View& v) { return v.is_whole; }))
    return made;
  made->close(control);
  made->free();
  return nullptr;
}

// The memory of all ranks; false where one does not take part or cannot be reached.
bool PeerRegion::map(const std::vector<PeerMemory>& all) {
  const PeerMemory& own = all[size_t(rank_)];
  for (int r = 0; r < ranks(); ++r) {
    if (r == rank_) continue;
    const PeerMemory& other = all[size_t(r)];
    if (!may_map(own, other)) return false;
    char*& place = seen_[size_t(r)];
    place = static_cast<char*>(map_memory(other.handle));
    if (!place) return false;
  }
  return true;
}

void PeerRegion::unmap() {
  for (int r = 0; r < ranks(); ++r)
    if (r != rank_ && seen_[size_t(r)]) cudaIpcCloseMemHandle(std::exchange(seen_[size_t(r)], {}));
}

void PeerRegion::close(Communicator& control) {
  unmap();
  control.barrier();  // the others have unmapped what free() frees
}

void PeerRegion::free() {
  if (char*& memory = seen_[size_t(rank_)]) cudaFree(std::exchange(memory, nullptr));
}

}  // namespace catena::comm::nccl
