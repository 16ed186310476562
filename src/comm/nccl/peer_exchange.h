// Small sums and gathers between GPUs of one host, by one kernel that writes into the memory of
// all: two to three times as fast as NCCL, and they do not wait for larger reductions of the
// communicator.
#pragma once

#include <memory>

#include "call_order.h"
#include "exchange_kernel.h"
#include "peer_memory.h"

namespace catena::comm::nccl {

// Elements are summed in the order of the ranks, so that all ranks get the same bits. Calls are in
// order on all streams, as NCCL's are; graphs that hold calls must not run at the same time, which
// ends in a timeout. Not thread-safe, but for release().
class PeerExchange {
 public:
  // Collective. Null unless all ranks can do it: at most kMostRanks processes of one host that may
  // write into each other's GPUs (CATENA_P2P). `control` moves host data between the same ranks,
  // `peers` are those of the communicator.
  static std::shared_ptr<PeerExchange> create(Communicator& control, const PeerRanks& peers,
                                              int device);
  // Frees nothing: work that failed may use it. See close().
  ~PeerExchange() = default;
  PeerExchange(const PeerExchange&) = delete;
  PeerExchange& operator=(const PeerExchange&) = delete;

  // Whether it makes this call, of at most `most` bytes a rank, and kMostBytes: a sum or mean of
  // float32 or float64, a weighted sum of float32, or a gather of elements of 4 bytes or more.
  static bool takes(const Call& call, int64_t most);
  void run(const Call& call);
  // Ends the kernels that wait, with wrong data: for a communicator that has failed. Any thread.
  void release() noexcept;
  // Collective, with all work done. Memory that a graph may use is kept until the process ends.
  void close(Communicator& control);

 private:
  PeerExchange() = default;

  std::unique_ptr<PeerRegion> region_;
  Exchange parts_{};
  int device_ = 0;
  CallOrder order_;
  cudaStream_t releases_ = nullptr;
};

}  // namespace catena::comm::nccl
