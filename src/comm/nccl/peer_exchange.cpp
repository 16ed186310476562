// See peer_exchange.h.
#include "peer_exchange.h"

#include <unistd.h>

#include <algorithm>

namespace catena::comm::nccl {

// What each rank tells all others at first.
struct PeerExchange::Introduction {
  bool takes_part = false;
  int host = 0;
  pid_t process = 0;
  cudaIpcMemHandle_t memory{};
};

namespace {

// Of each stream: 0 while nothing is captured.
unsigned long long capture_of(const Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  CATENA_NCCL_CUDA(
      cudaStreamGetCaptureInfo(static_cast<cudaStream_t>(stream.native()), &status, &id));
  return status == cudaStreamCaptureStatusNone ? 0 : id;
}

size_t bytes_of(const Call& call) { return size_t(call.count) * itemsize(call.dtype); }

// The head of the words in the memory of a rank.
MarkedWord* words_in(void* memory) {
  return reinterpret_cast<MarkedWord*>(static_cast<char*>(memory) + kStateBytes);
}

}  // namespace

PeerExchange::Introduction PeerExchange::introduce(void** memory, size_t bytes, int host) {
  Introduction own;
  own.host = host;
  own.process = getpid();
  own.takes_part = copies_directly() && cudaMalloc(memory, bytes) == cudaSuccess &&
                   cudaMemset(*memory, 0, bytes) == cudaSuccess &&
                   cudaDeviceSynchronize() == cudaSuccess &&
                   cudaIpcGetMemHandle(&own.memory, *memory) == cudaSuccess;
  if (!own.takes_part) cudaGetLastError();
  return own;
}

std::shared_ptr<PeerExchange> PeerExchange::create(Communicator& control, int device) {
  const int ranks = control.size(), rank = control.rank();
  if (ranks < 2 || ranks > kMostRanks) return nullptr;
  std::shared_ptr<PeerExchange> made(new PeerExchange);
  made->device_ = device;
  made->parts_.rank = rank;
  made->parts_.ranks = ranks;
  void* memory = nullptr;
  const Introduction own =
      introduce(&memory, exchange_bytes(ranks), control.topology().hosts[size_t(rank)]);
  made->parts_.states = static_cast<ExchangeState*>(memory);
  const bool works = made->map(control.all_gather_object(own));
  const std::vector<int> all_work = control.all_gather_object(int(works));
  if (std::find(all_work.begin(), all_work.end(), 0) == all_work.end()) return made;
  made->unmap();
  made->free();
  return nullptr;
}

// The memory of all ranks; false where one does not take part or cannot be reached.
bool PeerExchange::map(const std::vector<Introduction>& all) {
  const Introduction& own = all[size_t(parts_.rank)];
  for (int r = 0; r < parts_.ranks; ++r) {
    const Introduction& other = all[size_t(r)];
    if (!other.takes_part || other.host != own.host) return false;
    void* mapped = parts_.states;
    const bool is_own = r == parts_.rank;
    if (!is_own && (other.process == own.process ||
                    cudaIpcOpenMemHandle(&mapped, other.memory, cudaIpcMemLazyEnablePeerAccess) !=
                        cudaSuccess)) {
      cudaGetLastError();
      return false;
    }
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
  const size_t bytes = bytes_of(call);
  if (bytes == 0 || bytes > kMostBytes || itemsize(call.dtype) % 4 != 0) return false;
  if (call.op == CommOp::kAllGather) return true;
  return call.op == CommOp::kAllReduce && call.dtype == Dtype::kFloat32 &&
         call.effective_reduction() == Reduction::kSum;
}

void PeerExchange::run(const Call& call) {
  wait_for_earlier(call.stream);
  CATENA_NCCL_CUDA(launch_exchange(parts_, call.op == CommOp::kAllReduce, call.in(), call.out(),
                                   bytes_of(call) / 4, uint32_t(call.sequence) * 0x9E3779B1u,
                                   static_cast<cudaStream_t>(call.stream.native())));
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
