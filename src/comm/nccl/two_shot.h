// Sums and gathers of medium size between GPUs of one host, by one kernel over memory that all have
// mapped: each rank adds a slice of the arrays, and writes the sums to all. Faster than NCCL from
// some ten KiB to some ten MiB.
#pragma once

#include <memory>
#include <optional>

#include "call_order.h"
#include "peer_memory.h"
#include "two_shot_kernel.h"
#include "ways.h"

namespace catena::comm::nccl {

// The address of an array as each rank sees it, in memory of a PeerRegion; null where it has none.
struct SeenBy {
  char* rank[kMostRanks] = {};
};

// Whether kernels of ours add such elements: float32, float16 and bfloat16, the last two without
// weights, which would be rounded to 16 bits.
bool adds_in_float(const Call& call);
// How they add elements of the dtype; none for others.
std::optional<SumType> sum_type(Dtype dtype);

// Elements are added in the order of the ranks, by one rank for all, so that all ranks get the same
// bits, and a reduce-scatter those of an all-reduce; 16-bit ones in float32. Calls are in order on
// all streams; graphs that hold calls must not run at the same time, which ends in a timeout. Not
// thread-safe, but for release().
class TwoShotSums {
 public:
  // Collective. Null unless `ways` leaves it something and all ranks can do it, as with
  // PeerExchange.
  static std::shared_ptr<TwoShotSums> create(Communicator& control, int device, const Ways& ways);
  // Frees nothing: work that failed may use it. See close().
  ~TwoShotSums() = default;
  TwoShotSums(const TwoShotSums&) = delete;
  TwoShotSums& operator=(const TwoShotSums&) = delete;

  // Whether it makes this call, of at most Ways::two_shot bytes over all slices: all-reduce or
  // reduce-scatter, a sum or mean of float32, float16 or bfloat16 or a weighted sum of float32; or
  // an all-gather of elements of 2 bytes or more. Slices of the last two are multiples of 16 bytes.
  bool takes(const Call& call) const;
  // `output`: the addresses of the output, if it lies where the other ranks can write. Each rank
  // may have it elsewhere.
  void run(const Call& call, const SeenBy* output);
  // Ends the kernels that wait, with wrong data: for a communicator that has failed. Any thread.
  void release() noexcept;
  // Collective, with all work done. Memory that a graph may use is kept until the process ends.
  void close(Communicator& control);
  // Whether a graph holds calls, which write to other ranks.
  bool captured() const { return order_.captured(); }

 private:
  TwoShotSums() = default;
  bool is_whole_slice(int64_t bytes) const;
  void run_whole(TwoShotCall& of, const Call& call, const SeenBy* output);
  void run_slices(TwoShotCall& of, const Call& call, const SeenBy* output);
  void launch(TwoShotCall& of, const Stream& stream, const SeenBy* output, size_t offset);

  std::unique_ptr<PeerRegion> region_;
  TwoShot parts_{};
  int64_t most_bytes_ = 0;
  size_t piece_bytes_ = 0;
  int blocks_ = 0, device_ = 0;
  CallOrder order_;
  cudaStream_t releases_ = nullptr;
};

}  // namespace catena::comm::nccl
