// Gathers of large arrays between GPUs of one host by their copy engines: each rank writes its
// part into the arrays of all others. NCCL's kernels would take multiprocessors from the products
// that run at the same time.
#pragma once

#include <array>
#include <memory>

#include "call_order.h"
#include "peer_memory.h"
#include "two_shot.h"

namespace catena::comm::nccl {

// Calls are in order on all streams, and may be captured; graphs that hold calls must not run at
// the same time, which ends in a timeout. Not thread-safe, but for release().
class CopyGathers {
 public:
  // Collective. Null unless all ranks can do it: 2 to kMostRanks processes of one host that may
  // write into each other's GPUs (CATENA_P2P). `control` moves host data between the same ranks.
  static std::shared_ptr<CopyGathers> create(Communicator& control, int device);
  // Frees nothing: work that failed may use it. See close().
  ~CopyGathers() = default;
  CopyGathers(const CopyGathers&) = delete;
  CopyGathers& operator=(const CopyGathers&) = delete;

  // Whether it makes this call, if its output is in a block of SharedBlocks: a gather of the
  // values of an optimizer's arena, of at least `least` bytes over all ranks. Arenas have their
  // blocks on all ranks or on none, each at the same place; of other arrays that is not known.
  static bool takes(const Call& call, int ranks, int64_t least);
  // `outputs`: of each rank, as this one sees it.
  void run(const Call& call, const SeenBy& outputs);
  // Ends the waits of the GPU, with wrong data: for a communicator that has failed. Any thread;
  // takes up to `seconds`.
  void release(double seconds) noexcept;
  // Collective, with all work done. Memory that a graph may use is kept until the process ends.
  void close(Communicator& control);
  // Whether a graph holds calls, which write to other ranks.
  bool captured() const { return order_.captured(); }

 private:
  // What another rank says in the memory of a rank: that its array may be written, or that its part
  // has come.
  enum class Word : uint8_t { kMayCome, kHasCome };
  CopyGathers() = default;
  uint32_t* word(Word kind, int at, int from) const;
  int after(int q) const { return (region_->rank() + q) % region_->ranks(); }

  std::unique_ptr<PeerRegion> region_;
  int device_ = 0;
  // Copies to another rank. Plain CUDA streams: catena's set the runtime's idea of the current GPU,
  // which a communicator then changes without telling it.
  struct Lane {
    cudaStream_t stream = nullptr;
    cudaEvent_t end = nullptr;
  };
  std::array<Lane, kMostRanks> lanes_;
  cudaEvent_t begin_ = nullptr;
  CallOrder order_{true};
  cudaStream_t releases_ = nullptr;
};

}  // namespace catena::comm::nccl
