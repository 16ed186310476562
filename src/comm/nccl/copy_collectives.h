// Scattered sums and gathers of large arrays between GPUs of one host by their copy engines. NCCL's
// kernels would take multiprocessors from the products that run at the same time.
#pragma once

#include <memory>

#include "call_order.h"
#include "meeting_kernel.h"
#include "peer_memory.h"
#include "two_shot.h"

namespace catena::comm::nccl {

// Elements are added in the order of the ranks; 16-bit ones in float32. Calls are in order on all
// streams, and may be captured; graphs that hold calls must not run at the same time as other
// calls, which gives wrong sums or ends in a timeout. Not thread-safe, but for release().
class CopyCollectives {
 public:
  // Collective. Null unless `ways` leaves it something and all ranks can do it: 2 to kMostRanks
  // processes of one host that may write into each other's GPUs (CATENA_P2P). `control` moves host
  // data between the same ranks.
  static std::shared_ptr<CopyCollectives> create(Communicator& control, int device,
                                                 const Ways& ways);
  // Frees nothing: work that failed may use it. See close().
  ~CopyCollectives() = default;
  CopyCollectives(const CopyCollectives&) = delete;
  CopyCollectives& operator=(const CopyCollectives&) = delete;

  // Collective: makes the memory that sums of so many bytes over all ranks need, if it takes them.
  void prepare(size_t bytes, Communicator& control);
  bool makes_sums() const { return places_ != nullptr; }
  // Whether it makes sums of so many bytes over all ranks, or will when they are prepared.
  bool may_sum(size_t bytes) const { return least_sum_ > 0 && bytes >= size_t(least_sum_); }
  // Whether it makes this call: reduce-scatters and gathers of an optimizer's arenas, from
  // Ways::copied_sum and copied_gather bytes over all ranks on. Sums and means of float32, float16
  // and bfloat16. Gathers must go into blocks of SharedBlocks; arenas are there on all ranks or on
  // none, each at the same place, and of other arrays that is not known.
  bool takes(const Call& call) const;
  // Before each collective of arrays: a batch of gathers ends where another call comes than one
  // that follows (TagKind::kFollowing).
  void note(const Call& call);
  // `outputs`: of each rank, as this one sees it, for a gather.
  void run(const Call& call, const SeenBy& outputs);
  // Ends the kernels that wait, with wrong data: for a communicator that has failed. Any thread.
  void release() noexcept;
  // Collective, with all work done. With `keep`, which all ranks agree on, a graph may use the
  // memory, which is kept until the process ends.
  void close(bool keep, Communicator& control);
  // Whether a graph holds calls, which write to other ranks.
  bool captured() const { return order_.captured(); }

 private:
  CopyCollectives() = default;
  void open(int device);
  void gather(const Call& call, const SeenBy& outputs);
  void scatter_sum(const Call& call);
  void begin_copies(cudaStream_t stream, bool have_met);
  void end_copies(cudaStream_t stream);
  void meet(cudaStream_t stream);
  int after(int q) const { return (meeting_.rank + q) % meeting_.ranks; }
  char* place(int at, int from) const;

  std::unique_ptr<PeerRegion> region_, places_;  // for meetings; for what sums need
  Meeting meeting_{};
  int device_ = 0;
  int64_t least_gather_ = 0, least_sum_ = 0;  // bytes over all ranks
  // A plain CUDA stream: catena's set the runtime's idea of the current GPU, which a communicator
  // then changes without telling it.
  cudaStream_t copies_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  bool is_in_batch_ = false;
  CallOrder order_{true};
  cudaStream_t releases_ = nullptr;
};

}  // namespace catena::comm::nccl
