#include "raw_nccl.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstring>
#include <stdexcept>

namespace bench::raw {
namespace {

void check(ncclResult_t status, const char* what) {
  if (status != ncclSuccess)
    throw std::runtime_error(std::string(what) + ": " + ncclGetErrorString(status));
}

}  // namespace

struct Nccl::State {
  ncclComm_t comm = nullptr;
};

Nccl::Nccl(int rank, int size, const std::function<std::string(const std::string&)>& share)
    : state_(new State) {
  ncclUniqueId id{};
  if (rank == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  const std::string bytes = share(std::string(reinterpret_cast<const char*>(&id), sizeof id));
  std::memcpy(&id, bytes.data(), sizeof id);
  check(ncclCommInitRank(&state_->comm, size, id, rank), "ncclCommInitRank");
}

Nccl::~Nccl() { ncclCommDestroy(state_->comm); }

void Nccl::all_reduce(void* data, size_t count, void* stream) const {
  check(ncclAllReduce(data, data, count, ncclFloat32, ncclSum, state_->comm,
                      static_cast<cudaStream_t>(stream)),
        "ncclAllReduce");
}

std::string Nccl::version() {
  int v = 0;
  check(ncclGetVersion(&v), "ncclGetVersion");
  return "NCCL " + std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
         std::to_string(v % 100);
}

void copy_to_peer(void* to, int to_device, const void* from, int from_device, size_t bytes,
                  void* stream) {
  const cudaError_t status = cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes,
                                                 static_cast<cudaStream_t>(stream));
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("cudaMemcpyPeerAsync: ") + cudaGetErrorString(status));
}

}  // namespace bench::raw
