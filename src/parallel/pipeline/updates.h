// The end of a step: gradients of the stages become those of all replicas and of all tied copies,
// are clipped together, and update the weights.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "catena/parallel/multi_node_optimizer.h"
#include "catena/parallel/pipeline/sequence.h"
#include "parallel/loss_weight.h"
#include "parallel/pipeline/stage.h"

namespace catena::parallel::pipeline {

class StepStage;

class Updates {
 public:
  // Null, or nothing: no ranks of this kind.
  Updates(Sequence& model, double clip_norm, Communicator* comm,
          const std::optional<BatchRanks>& replicas, Communicator* tensor);
  ~Updates();

  // Forgets what a setup that has thrown has left.
  void begin_setup() { members_.clear(); }
  // Gives a stage its optimizer, which belongs to it from then on.
  void add_stage(int stage, UnitRange& units, std::unique_ptr<Optimizer> optimizer);
  // Sets up those that were added. Collective.
  void setup_stages(const BucketOptions& buckets, const std::vector<Sequence::Tie>& ties);
  // When all stages of this process are there. `owners[k]` are the ranks of the copies of tie k.
  // Collective.
  void finish_setup(const std::vector<std::vector<int>>& owners);
  // Copies the values of the first copy of each tie into the others. Collective.
  void share_tied_values();

  // Null for a stage without parameters, and for one of another rank.
  Optimizer* optimizer(int stage) const;
  // What the backward of the last stage begins from.
  Variable scaled(const Variable& loss) const;
  bool has_loss_scale() const { return has_loss_scale_; }
  void set_batch_weight(int64_t n_local, int64_t n_global);
  void prepare_for_capture();

  void begin_step();
  // What the losses of this step counted, float64 of one element, of so many samples, for a stage;
  // undefined: everything counts. Before reduce and update; a second time changes nothing.
  void set_counted(int stage, const Array& counted, int64_t samples);
  // The gradients of a stage are complete: their averages over replicas begin.
  void reduce(int stage);
  // Updates a stage, or notes that finish_step is to do so.
  void update(int stage);
  // Once all actions have run: sums tied gradients, and makes the updates that were noted, if the
  // schedule has `updates`. Nothing waits for a device.
  void finish_step(bool updates);

 private:
  struct Member {
    Member(int stage_given, UnitRange& units_given, std::unique_ptr<Optimizer> optimizer_given)
        : stage(stage_given),
          units(&units_given),
          optimizer(std::move(optimizer_given)),
          device(units_given.device()) {}
    int stage;
    UnitRange* units;
    std::unique_ptr<Optimizer> optimizer;
    std::optional<MultiNodeOptimizer> replicas;  // of the optimizer; none without replicas
    std::shared_ptr<FactorStage> factor;         // where there are none
    Device device;
    bool reduced = false;  // reduce() was called in this step
    bool update_later = false;
    bool is_counted = false;
  };
  Member* find(int stage);
  bool is_here(int rank) const;
  void cut_arenas(const BucketOptions& buckets);
  Array own_part(const Parameter& tied) const;
  Array gradient_of(const Parameter& tied) const;
  void add_gradient(const Parameter& tied, const Array& more);
  void set_gradient(const Parameter& tied, const Array& gradient);
  Array received_like(const Array& like, int rank) const;
  void sum_tied();
  void add_tied(const Sequence::Tie& tie, const std::vector<int>& owners);
  void spread(const Sequence::Tie& tie, const std::vector<int>& owners, bool gradients);
  bool any_loss_scale() const;
  void expect_scaled();
  void number_parameters();
  Array sum_of_squares();
  Array squares_of(Device device, const Member& member) const;
  Array squares_on(Device device, const std::vector<Member*>& members) const;

  Sequence& model_;
  double clip_norm_;
  Communicator* comm_;  // null in one process
  std::optional<BatchRanks> replicas_;
  Communicator* tensor_;  // null without tensor ranks
  std::vector<Member> members_;
  std::vector<Sequence::Tie> ties_;
  std::vector<std::vector<int>> owners_;
  int64_t n_local_ = 0, n_global_ = 0;  // of the replicas; 0: not given
  bool has_loss_scale_ = false;
  bool spreads_ = false;                                        // states, over the replicas
  bool defers_ = false;                                         // all updates come at the end
  std::unordered_map<const ParameterState*, int64_t> numbers_;  // of the model; tied ones once
  Array weights_;  // by number, of the squares of this tensor rank (Processes::weight_of)
  std::shared_ptr<StepStage> together_;
};

}  // namespace catena::parallel::pipeline
