// See peer_memory.h.
#include "peer_memory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace catena::comm::nccl {

PeerRanks PeerRanks::find(Communicator& control) {
  struct Place {
    bool copies = false;
    int host = 0;
    pid_t process = 0;
  };
  const Place own{copies_directly(), control.topology().hosts[size_t(control.rank())], getpid()};
  const std::vector<Place> places = control.all_gather_object(own);
  const auto reach = [](const Place& a, const Place& b) {
    return a.copies && b.copies && a.host == b.host && a.process != b.process;
  };
  PeerRanks found;
  for (size_t a = 0; a < places.size(); ++a) {
    found.has_.push_back(reach(own, places[a]));
    for (size_t b = 0; b < a; ++b) {
      const bool is_near = reach(places[a], places[b]);
      found.any_two_ = found.any_two_ || is_near;
      found.all_ = found.all_ && is_near;
    }
  }
  return found;
}

bool PeerRanks::has_any() const { return std::find(has_.begin(), has_.end(), true) != has_.end(); }

namespace {

// On a stream of its own: a wait for the whole GPU would break the capture of another thread.
bool clear_memory(void* memory, size_t bytes) {
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return false;
  const bool is_clear = cudaMemsetAsync(memory, 0, bytes, stream) == cudaSuccess &&
                        cudaStreamSynchronize(stream) == cudaSuccess;
  cudaStreamDestroy(stream);
  return is_clear;
}

}  // namespace

PeerMemory share_memory(void** memory, size_t bytes) {
  PeerMemory own;
  own.is_shared = cudaMalloc(memory, bytes) == cudaSuccess && clear_memory(*memory, bytes) &&
                  cudaIpcGetMemHandle(&own.handle, *memory) == cudaSuccess;
  if (!own.is_shared) cudaGetLastError();
  return own;
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
  const PeerMemory own = share_memory(&memory, bytes);
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
    if (!own.is_shared || !other.is_shared) return false;
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
