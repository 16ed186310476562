// See peer_exchange.h.
#include "peer_exchange.h"

#include <algorithm>

namespace catena::comm::nccl {

namespace {

// Of each stream: 0 while nothing is captured.
unsigned long long capture_of(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  CATENA_NCCL_CUDA(cudaStreamGetCaptureInfo(native(stream), &status, &id));
  return status == cudaStreamCaptureStatusNone ? 0 : id;
}

// The head of the words in the memory of a rank.
MarkedWord* words_in(void* memory) {
  return reinterpret_cast<MarkedWord*>(static_cast<char*>(memory) + kStateBytes);
}

}  // namespace

std::shared_ptr<PeerExchange> PeerExchange::create(Communicator& control, int device) {
  const int ranks = control.size(), rank = control.rank();
  if (ranks < 2 || ranks > kMostRanks) return nullptr;
  std::shared_ptr<PeerExchange> made(new PeerExchange);
  made->device_ = device;
  made->parts_.rank = rank;
  made->parts_.ranks = ranks;
  void* memory = nullptr;
  const PeerMemory own = share_memory(&memory, exchange_bytes(ranks), control);
  made->parts_.states = static_cast<ExchangeState*>(memory);
  const bool works = made->map(control.all_gather_object(own));
  const std::vector<int> all_work = control.all_gather_object(int(works));
  if (std::find(all_work.begin(), all_work.end(), 0) == all_work.end()) return made;
  made->unmap();
  made->free();
  return nullptr;
}

// The memory of all ranks; false where one does not take part or cannot be reached.
bool PeerExchange::map(const std::vector<PeerMemory>& all) {
  const PeerMemory& own = all[size_t(parts_.rank)];
  if (!own.is_shared) return false;
  for (int r = 0; r < parts_.ranks; ++r) {
    void* mapped = parts_.states;
    if (r != parts_.rank)
      mapped = may_map(own, all[size_t(r)]) ? map_memory(all[size_t(r)].handle) : nullptr;
    if (!mapped) return false;
    parts_.words[r] = words_in(mapped);
  }
  return cudaStreamCreateWithFlags(&releases_, cudaStreamNonBlocking) == cudaSuccess;
}

void PeerExchange::unmap() {
  for (int r = 0; r < parts_.ranks; ++r)
    if (r != parts_.rank && parts_.words[r])
      cudaIpcCloseMemHandle(reinterpret_cast<char*>(parts_.words[r]) - kStateBytes);
}

void PeerExchange::free() {
  if (parts_.states) cudaFree(parts_.states);
  if (releases_) cudaStreamDestroy(releases_);
}

// By what all ranks have in common. The address of an array is not: smaller elements may begin
// between two words on some ranks alone.
bool PeerExchange::takes(const Call& call) {
  const auto bytes = size_t(bytes_of(call));
  if (bytes == 0 || bytes > kMostBytes || itemsize(call.dtype) % 4 != 0) return false;
  if (call.op == CommOp::kAllGather) return true;
  return call.op == CommOp::kAllReduce && call.dtype == Dtype::kFloat32 &&
         call.effective_reduction() == Reduction::kSum;
}

void PeerExchange::run(const Call& call) {
  wait_for_earlier(call.stream);
  CATENA_NCCL_CUDA(launch_exchange(parts_, call.op == CommOp::kAllReduce, call.in(), call.out(),
                                   size_t(bytes_of(call)) / 4,
                                   uint32_t(call.sequence) * 0x9E3779B1u, native(call.stream)));
  last_ = call.stream;
}

// Work that is captured waits for what the same capture holds, other work for what is queued.
void PeerExchange::wait_for_earlier(const Stream& stream) {
  const unsigned long long capture = capture_of(stream);
  captured_ |= capture != 0;
  if (last_.defined() && last_ != stream && capture_of(last_) == capture) stream.wait(last_);
}

void PeerExchange::release() noexcept {
  const RelaxedMode relaxed;
  cudaSetDevice(device_);
  for (size_t block = 0; block < kMostBlocks; ++block)
    cudaMemsetAsync(&parts_.states[block].stop, 1, sizeof(uint32_t), releases_);
  cudaStreamSynchronize(releases_);
}

void PeerExchange::close(Communicator& control) {
  if (!captured_) unmap();
  control.barrier();  // the others have unmapped what is freed here
  if (!captured_) free();
}

}  // namespace catena::comm::nccl
