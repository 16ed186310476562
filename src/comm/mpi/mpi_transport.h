// Moves host arrays by MPI. GPU arrays are staged through host memory by Communicator.
#pragma once

#include <memory>
#include <vector>

#include "mpi_waiter.h"

namespace catena::comm::mpi {

// Reductions are done here, not by MPI: every element is summed by one rank in rank order and then
// distributed, so that results have the same bits on all ranks, in every run, and as with threads;
// and 16-bit floats need no types of MPI's.
class MpiTransport : public Transport {
 public:
  // Takes over `data`; collective over it.
  MpiTransport(MPI_Comm data, double timeout);
  ~MpiTransport() override;

  const char* name() const override { return "mpi"; }
  int rank() const override { return rank_; }
  const std::vector<int>& hosts() const override { return hosts_; }
  bool moves(DeviceType type) const override { return type == DeviceType::kCpu; }
  void attach(Communicator& owner) override { waiter_->attach(owner); }
  void run(std::span<const Call> calls) override;
  bool adds_riders() const override { return true; }
  std::unique_ptr<Transport> split(const std::vector<int>& members, int new_rank,
                                   int color) override;
  void abort(const std::string& reason) noexcept override;
  void abandon() noexcept override;
  void close() override;
  bool outlived() const override { return ended(); }

  // All ranks came to `doing`; else CommError after `timeout` seconds.
  void meet(const char* doing, double timeout);

 private:
  using Requests = std::vector<MPI_Request>;
  struct MessageHeader;
  // All that the call which runs has given to MPI: requests, and the memory that they read and
  // write.
  struct InFlight;
  // The messages of a collective, which start(requests, to, from) begins for each distance of
  // ranks.
  template <class Start>
  Requests& start_parts(Start start);
  // Waits for what start(request) begins.
  template <class Start>
  void await(const Call& call, Start start);
  // After a call that failed: MPI may still write to the memory of what it left under way, whenever
  // it makes progress. All of it is kept for the life of the process.
  void keep_in_flight(std::span<const Call> calls);
  // In pieces that fit MPI's int counts.
  void send(Requests& requests, int peer, const char* data, int64_t bytes, int tag);
  void recv(Requests& requests, int peer, char* data, int64_t bytes, int tag);
  // Whether all ranks have made this call and equal ones before it; and the error if not.
  bool agrees(const Call& call, double* rider);
  void compare(std::span<const Call* const> calls);
  // The part of a message that follows its header.
  void payload(Requests& requests, const Call& call);
  void group(std::span<const Call> calls);
  // The messages of a group, whose headers are under way.
  void messages(std::span<const Call> calls);
  void collective(const Call& call);
  void collectives(std::span<const Call> calls);
  // A collective in which the ranks agree.
  void move(const Call& call);
  std::vector<double> weights(const Call& call);

  void broadcast(const Call& call);
  void gather(const Call& call, bool all);
  void scatter(const Call& call);
  void all_to_all(const Call& call);
  void all_reduce(const Call& call);
  void all_reduce_small(const Call& call);
  void reduce_to_one(const Call& call);
  void reduce_scatter(const Call& call);
  struct Part {
    int64_t from, count;
  };
  void reduce_parts(const Call& call, const std::vector<Part>& part_of,
                    std::span<const double> weights, char* sum);
  void reduce_to(const Call& call, const std::vector<Part>& part_of);

  MPI_Comm data_;
  MPI_Comm news_ = MPI_COMM_NULL;  // call headers and failures
  int rank_ = 0, size_ = 1;
  std::vector<int> hosts_;
  std::unique_ptr<Waiter> waiter_;
  std::unique_ptr<InFlight> in_flight_;
};

}  // namespace catena::comm::mpi
