// What the benchmark programs share that run over the ranks of catena-run.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/comm/internals.h"
#include "catena/core/backend.h"
#include "catena/core/config.h"
#include "timing.h"

namespace bench {

// Times as the slowest rank saw them, and a table that rank 0 prints.
class RankBench {
 public:
  explicit RankBench(catena::comm::Communicator& comm) : comm_(comm), device_(comm.device()) {
    if (on_gpu()) catena::backend(device_.type()).make_current(device_.index());
    if (comm.rank() == 0)
      table_.emplace(std::to_string(comm.size()) + " ranks, communicator " + comm.name(),
                     describe());
  }

 protected:
  bool on_gpu() const { return device_.is_cuda(); }
  // Median time of a call; all ranks start together.
  template <class Call>
  double slowest(const Sampling& sampling, Call&& call) {
    comm_.barrier();
    const double mine = wall_time(sampling, device_, call).median;
    return comm_.all_reduce_value(mine, catena::comm::Reduction::kMax);
  }
  // The same of two calls in turn, run by run: what changes meanwhile meets both.
  template <class First, class Second>
  std::pair<double, double> slowest_in_turn(Sampling sampling, First&& first, Second&& second) {
    const int runs = std::exchange(sampling.runs, 1);
    std::vector<double> of_first, of_second;
    for (int run = 0; run < runs; ++run) {
      of_first.push_back(slowest(sampling, first));
      of_second.push_back(slowest(sampling, second));
    }
    return {summarize(std::move(of_first)).median, summarize(std::move(of_second)).median};
  }
  void row(const Row& row) {
    if (table_) table_->row(row);
  }

  catena::comm::Communicator& comm_;
  catena::Device device_;

 private:
  std::string describe() const {
    if (!on_gpu()) return std::to_string(catena::cpu_threads()) + " threads a rank";
    return catena::backend(device_.type()).describe(device_.index()) + ", " +
           catena::comm::internals(comm_).ways();
  }

  std::optional<Table> table_;
};

}  // namespace bench
