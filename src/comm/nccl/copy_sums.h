// Sums and gathers of large arrays between GPUs of one host, by their copy engines: the operands of
// each rank's slice are copied to it, a small kernel adds them, and the sums are copied to all. The
// multiprocessors, which NCCL's kernels would take a share of, are left to the products that run at
// the same time.
#pragma once

#include <memory>
#include <vector>

#include "call_order.h"
#include "copy_sums_kernel.h"
#include "peer_memory.h"
#include "ways.h"

namespace catena::comm::nccl {

// Elements are added in the order of the ranks, 16-bit ones in float32, by one rank for all: all
// ranks get the same bits, and a reduce-scatter those of an all-reduce. Calls are in order on all
// streams. Not thread-safe, but for release().
class CopySums {
 public:
  // Whether such calls of so many ranks go this way: an all-reduce or reduce-scatter that is a sum
  // or mean of float32, float16 or bfloat16, or an all-gather, of at least Ways::copies bytes over
  // all slices.
  static bool takes(const Call& call, const Ways& ways, int ranks);
  // Collective, not during a capture: it takes about 100 MB of GPU memory. Null unless all ranks
  // can do it: at most kMostRanks processes of one host that may write into each other's GPUs
  // (CATENA_P2P). `control` moves host data between the same ranks.
  static std::shared_ptr<CopySums> create(Communicator& control, int device);
  // Frees nothing: work that failed may use it. See close().
  ~CopySums() = default;
  CopySums(const CopySums&) = delete;
  CopySums& operator=(const CopySums&) = delete;

  void run(const Call& call);
  // Ends the waits of the GPU, with wrong data: for a communicator that has failed. Any thread;
  // takes up to `seconds`.
  void release(double seconds) noexcept;
  // Collective, with all work done. Memory that a graph may use is kept until the process ends.
  void close(Communicator& control);

 private:
  struct Step;
  struct Work;
  // What a word in the memory of a rank says about another rank and a place: that something from it
  // has come, or that what this rank sends to it may come.
  enum class Word : uint8_t { kOperandsCame, kOperandsMayCome, kSumsCame, kSumsMayCome };
  CopySums() = default;
  void allow_all() const;
  uint32_t* word(Word kind, int at, int about, int place) const;
  char* place(bool sums, int at, int from, int place) const;
  int after(int q) const { return (rank_ + q) % ranks_; }
  Work work_of(const Call& call) const;
  void send_operands(const Work& work, const Step& step);
  void add(const Work& work, const Step& step, cudaStream_t stream);
  void send_slices(const Work& work, const Step& step);
  void fetch_slices(const Work& work, const Step& step);

  std::unique_ptr<PeerRegion> region_;
  int rank_ = 0, ranks_ = 0, device_ = 0;
  size_t place_bytes_ = 0;
  std::vector<Stream> to_;  // copies to each rank
  Stream fetches_;          // copies from this rank's memory into arrays
  Event added_[2];          // the sums of the slice in each place
  CallOrder order_;
  cudaStream_t releases_ = nullptr;
};

}  // namespace catena::comm::nccl
