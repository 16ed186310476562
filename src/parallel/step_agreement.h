// Agreement of ranks on the facts of a data-parallel step, and the sums in which these travel.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "catena/comm/communicator.h"
#include "catena/parallel/batch_order.h"

namespace catena::parallel {

// Each rank folds the facts of each step into two numbers, which the ranks add up together with a
// bucket of gradients: a digest of what must be equal, and its samples. What differed once differs
// in all later sums as well, so that the sums need not be exchanged in every step: on a CPU they
// are in the first steps and then in every 4th; on a GPU in every 8th, where they are read with the
// next ones, when they have long arrived. All ranks come to the same result in the same step.
class StepAgreement {
 public:
  // `owner`: the number of the optimizer, for the tag of calls. The communicator must outlive it.
  StepAgreement(Communicator& comm, int owner);

  // Facts of this rank, from the next step on.
  void set_shares(int64_t n_local, int64_t n_global);
  void set_order(const BatchOrder& order) { facts_.order = order; }
  // What all ranks have in the first pass of a step of several; 0 in others.
  void set_first(double samples) { facts_.first = samples; }

  // The learning rate as it is when the first bucket of a step is reduced.
  void set_rate(double rate) { facts_.rate = rate; }

  // A step begins, before its first bucket. True if `exchange` is to be used for that bucket.
  bool begin_step(int64_t updates);
  // Runs reduce(sums) with this rank's numbers, on the current stream of the device: it must leave
  // the sums over all ranks in that array, uint64[2]. ValueError on all ranks when they disagree;
  // on a GPU later.
  void exchange(const std::function<void(const Array& sums)>& reduce);
  // The step was replayed by a graph instead: does both, by a separate call.
  void replay_step(int64_t updates);
  // Reads the last sums, waiting for the device, unless that was done. ValueError as above.
  void check();

  comm::CallTag tag() const { return {comm::TagKind::kAgreement, owner_, 0}; }

 private:
  struct Facts {
    int64_t updates = 0;
    double rate = 0, first = 0;
    int64_t weighted = 0, n_local = 0, n_global = 0;
    BatchOrder order;
  };
  struct Sums {
    uint64_t digest = 0, shares = 0, whole = 0;
  };
  void fold();
  [[noreturn]] void fail_with_report();
  // The first difference, and the only rank that differs or -1.
  struct Difference {
    std::string text;
    int odd_rank = -1;
  };
  Difference first_difference_of(const std::vector<std::vector<Facts>>& ranks) const;

  Communicator& comm_;
  uint16_t owner_;
  Facts facts_;
  std::deque<Facts> history_;  // of the last steps, for the report
  Sums own_;                   // of all steps so far
  Sums sent_;                  // of those that were exchanged last
  int64_t steps_ = 0;
  int64_t exchanged_at_ = -1;  // the step whose sums are on their way; -1: none
  Array sums_;                 // uint64 (2), on the device
  Array read_;                 // the same in host memory, where it is another
  Event arrived_;
};

}  // namespace catena::parallel
