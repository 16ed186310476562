// The communicator whose ranks are threads of one process.
#pragma once

#include <memory>

#include "catena/comm/transport.h"
#include "team.h"

namespace catena::comm {

// Every reduction adds in rank order, so all ranks get the same bits in every run.
class ThreadsTransport : public Transport {
 public:
  ThreadsTransport(std::shared_ptr<Team> team, int rank);

  const char* name() const override { return "threads"; }
  int rank() const override { return rank_; }
  const std::vector<int>& hosts() const override { return hosts_; }
  bool moves(DeviceType) const override { return true; }
  void run(std::span<const Call> calls) override;
  bool adds_riders() const override { return true; }
  std::unique_ptr<Transport> split(const std::vector<int>& members, int new_rank,
                                   int color) override;
  void abort(const std::string& reason) noexcept override;
  std::string failure() const override;
  bool meets_to_close() const override { return false; }  // who leaves is named anyway
  void close() override {}

 private:
  void collective(const Call& call);
  void run_alone(const Call& call);
  void receive(std::span<const Call> calls);

  std::shared_ptr<Team> team_;
  int rank_;
  std::vector<int> hosts_;
};

// A communicator of one rank, for programs that no launcher started.
CommunicatorPtr make_single_rank(Device device, const CommunicatorOptions& options);
// A communicator of this rank of another one alone. No other rank takes part, and nothing of the
// other's transport is used.
CommunicatorPtr make_alone(const Communicator& comm);
// Rank r of a world.
CommunicatorPtr make_thread_rank(const std::shared_ptr<Team>& team, int rank, Device device,
                                 const CommunicatorOptions& options);

}  // namespace catena::comm
