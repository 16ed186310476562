// Sums and gathers of large arrays between GPUs of one host by their copy engines. NCCL's kernels
// would take multiprocessors from the products that run at the same time.
#pragma once

#include <array>
#include <memory>

#include "call_order.h"
#include "meeting_kernel.h"
#include "peer_memory.h"
#include "two_shot.h"

namespace catena::comm::nccl {

// Elements are added in the order of the ranks, by one rank for all, so that all ranks get the same
// bits, and a reduce-scatter those of an all-reduce; 16-bit ones in float32. Calls are in order on
// all streams, and may be captured; graphs that hold calls must not run at the same time, which
// ends in a timeout. Not thread-safe, but for release().
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

  // Whether it makes this call, if its output is in a block of SharedBlocks where others write into
  // it. Only calls of an optimizer's arenas, from Ways::copied_gather and copied_sum bytes over all
  // ranks on: arenas have their blocks on all ranks or on none, each at the same place; of other
  // arrays that is not known. Sums and means of float32, float16 and bfloat16.
  bool takes(const Call& call) const;
  // Whether others write into the output of such a call: all but reduce-scatters.
  static bool writes_others(const Call& call) { return call.op != CommOp::kReduceScatter; }
  // Before each call of the communicator: a batch of gathers ends where another call comes than one
  // that follows (TagKind::kFollowing).
  void note(const Call& call);
  // `outputs`: of each rank, as this one sees it, if others write into them.
  void run(const Call& call, const SeenBy& outputs);
  // Ends the kernels that wait, with wrong data: for a communicator that has failed. Any thread.
  void release() noexcept;
  // Collective, with all work done. Memory that a graph may use is kept until the process ends.
  void close(Communicator& control);
  // Whether a graph holds calls, which write to other ranks.
  bool captured() const { return order_.captured(); }

 private:
  static constexpr int kSlots = 3;  // places of a rank for what another one sends
  struct Sum;
  struct Piece;
  // Plain CUDA streams: catena's set the runtime's idea of the current GPU, which a communicator
  // then changes without telling it.
  struct Lane {
    cudaStream_t stream = nullptr;
    cudaEvent_t end = nullptr;
    std::array<cudaEvent_t, kSlots> sent{};  // the operands of the piece in each place
  };
  CopyCollectives() = default;
  void open(int device);
  void gather(const Call& call, const SeenBy& outputs);
  void sum(const Call& call, const SeenBy& outputs);
  Sum sum_of(const Call& call) const;
  void send_operands(const Sum& sum, const Piece& piece);
  void wait_until_sent(const Piece& piece, cudaStream_t stream);
  void add(const Sum& sum, const Piece& piece, cudaStream_t stream);
  void send_sums(const Sum& sum, const Piece& piece, const SeenBy& outputs);
  void meet(cudaStream_t stream);
  void begin_lanes_behind(cudaStream_t stream, cudaEvent_t event);
  void end_lanes_before(cudaStream_t stream);
  int after(int q) const { return (region_->rank() + q) % region_->ranks(); }
  Lane& lane(int rank) { return lanes_[size_t(rank)]; }
  char* place(int at, int from, int slot) const;

  std::unique_ptr<PeerRegion> region_;
  Meeting meeting_{};
  int device_ = 0;
  int64_t least_gather_ = 0, least_sum_ = 0;  // bytes over all ranks
  size_t piece_bytes_ = 0;                    // of a slice
  std::array<Lane, kMostRanks> lanes_;        // copies to each other rank
  cudaEvent_t met_ = nullptr, added_ = nullptr;
  bool is_in_batch_ = false;
  CallOrder order_{true};
  cudaStream_t releases_ = nullptr;
};

}  // namespace catena::comm::nccl
