// Messages between GPUs of one host by their copy engines. NCCL moves messages with
// multiprocessors, which the products of a pipeline then lack. Here the sender's copy engine writes
// into memory of the receiver, and words in device memory, which streams wait for, say when.
#pragma once

#include <cuda.h>

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "nccl_calls.h"
#include "peer_memory.h"

namespace catena::comm::nccl {

// Messages that go this way are in order with the others of their sender and receiver that do. As
// with NCCL a send is complete once its recv has the data, and messages may be captured. Messages
// of other pairs on other streams are not waited for. Not thread-safe, but for release().
class PeerCopies {
 public:
  // Smaller messages are left to NCCL.
  static constexpr int64_t kLeastBytes = 512 << 10;

  // Collective. Null, on all ranks, where no two can do it. `control` moves host data between the
  // same ranks, `peers` are those of the communicator.
  static std::shared_ptr<PeerCopies> create(Communicator& control, const PeerRanks& peers,
                                            int device);
  // Frees nothing: work that failed may use it. See close().
  ~PeerCopies();
  PeerCopies(const PeerCopies&) = delete;
  PeerCopies& operator=(const PeerCopies&) = delete;

  // Whether no rank is out of reach.
  bool reaches_all() const;
  // Queues those messages of a group that go this way, and returns the other calls. Before the
  // first message of a pair, and before one larger than all before, it waits for the other rank.
  std::vector<Call> run(Communicator& control, std::span<const Call> group);
  // Ends the waits of the GPU, with wrong data: for a communicator that has failed. Any thread;
  // takes up to `seconds`.
  void release(double seconds) noexcept;
  // Collective, with all work done. Memory that a graph may use is kept until the process ends.
  void close(Communicator& control);

 private:
  // Messages in one direction between this rank and another.
  struct Lane;
  struct Offer;
  PeerCopies(int rank, int device);
  bool may_take(const Call& call) const;
  Lane& lane_of(const Call& call);
  void run_round(std::span<const Call> messages);
  void run_beside(Communicator& control, std::vector<Call> messages, std::vector<Call>& others);
  void run_rounds(Communicator& control, std::vector<Call> messages, std::vector<Call>& others);
  void meet(Communicator& control, std::span<const Call> messages);
  Offer offer(Lane& lane, int64_t bytes);
  bool accept(Lane& lane, const Offer& offer);
  uint32_t* words_of(int rank);

  const int rank_, device_;
  // Two words of this rank for each other: that data has come from it, that it has fetched data.
  uint32_t* words_ = nullptr;
  std::vector<bool> near_;                      // the ranks that may take part
  std::vector<cudaIpcMemHandle_t> words_from_;  // of each rank
  std::vector<uint32_t*> mapped_words_;         // of each rank; null until they are needed
  std::map<std::pair<int, bool>, std::unique_ptr<Lane>> lanes_;  // by the other rank and is_send
  cudaStream_t releases_ = nullptr;
  bool captured_ = false;
};

}  // namespace catena::comm::nccl
