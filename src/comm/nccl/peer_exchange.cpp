// See peer_exchange.h.
#include "peer_exchange.h"

#include <unistd.h>

#include <algorithm>

namespace catena::comm::nccl {

namespace {

struct Introduction {
  bool takes_part = false;
  int host = 0;
  pid_t process = 0;
  cudaIpcMemHandle_t memory{};
};

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

Introduction introduce(void** memory, size_t bytes, int host) {
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

}  // namespace

std::shared_ptr<PeerExchange> PeerExchange::create(Communicator& control, int device) {
  const int ranks = control.size(), rank = control.rank();
  if (ranks < 2 || ranks > kMostRanks) return nullptr;
  std::shared_ptr<PeerExchange> made(new PeerExchange);
  made->device_ = device;
  made->parts_.rank = rank;
  made->parts_.ranks = ranks;
  void* memory = nullptr;
  const std::vector<Introduction> all = control.all_gather_object(
      introduce(&memory, exchange_bytes(ranks), control.topology().hosts[size_t(rank)]));
  made->parts_.states = static_cast<ExchangeState*>(memory);
  bool works = cudaStreamCreateWithFlags(&made->releases_, cudaStreamNonBlocking) == cudaSuccess;
  for (int r = 0; r < ranks; ++r)
    works &= all[size_t(r)].takes_part && all[size_t(r)].host == all[0].host;
  for (int r = 0; works && r < ranks; ++r) {
    void* mapped = memory;
    if (r != rank)
      works = all[size_t(r)].process != all[size_t(rank)].process &&
              cudaIpcOpenMemHandle(&mapped, all[size_t(r)].memory,
                                   cudaIpcMemLazyEnablePeerAccess) == cudaSuccess;
    made->parts_.words[r] = words_in(mapped);
  }
  cudaGetLastError();
  const std::vector<bool> work = [&] {
    std::vector<bool> found;
    for (const int one : control.all_gather_object(int(works))) found.push_back(one != 0);
    return found;
  }();
  if (std::find(work.begin(), work.end(), false) == work.end()) return made;
  if (memory) cudaFree(memory);
  return nullptr;
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
  if (!captured_)
    for (int r = 0; r < parts_.ranks; ++r)
      if (r != parts_.rank)
        cudaIpcCloseMemHandle(reinterpret_cast<char*>(parts_.words[r]) - kStateBytes);
  control.barrier();  // the others have closed what is freed here
  if (captured_) return;
  cudaFree(parts_.states);
  cudaStreamDestroy(releases_);
}

}  // namespace catena::comm::nccl
