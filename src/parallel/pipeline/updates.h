// The end of a step: gradients of the stages become those of all replicas and of all tied copies,
// are clipped together, and update the weights.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "catena/parallel/gradient_reducer.h"
#include "catena/parallel/pipeline/sequence.h"
#include "parallel/pipeline/stage.h"

namespace catena::parallel::pipeline {

class NormStage;

class Updates {
 public:
  // Null: no ranks of this kind. `sliced`: further parameters of which each tensor rank has a
  // slice.
  Updates(Sequence& model, double clip_norm, Communicator* comm, Communicator* data,
          Communicator* tensor, const Parameters& sliced);
  ~Updates();

  // Forgets what a setup that has thrown has left.
  void begin_setup() { members_.clear(); }
  // Gives a stage its optimizer, which belongs to it from then on.
  void add_stage(int stage, UnitRange& units, std::unique_ptr<Optimizer> optimizer,
                 const BucketOptions& buckets);
  // When all stages of this process are there. `owners[k]` are the ranks of the copies of tie k.
  // Collective.
  void finish_setup(const std::vector<Sequence::Tie>& ties,
                    const std::vector<std::vector<int>>& owners);
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
  // The gradients of a stage are complete: their averages over replicas begin.
  void reduce(int stage);
  // Updates a stage, or notes that finish_step is to do so.
  void update(int stage);
  // Once all actions have run: sums tied gradients, and makes the updates that were noted, if the
  // schedule has `updates`. Nothing waits for a device.
  void finish_step(bool updates);

 private:
  struct Member {
    int stage;
    std::unique_ptr<Optimizer> optimizer;
    std::shared_ptr<GradientReducer> reducer;  // null without replicas
    Device device;
    bool reduced = false;  // reduce() was called in this step
    bool update_later = false;
  };
  Member* find(int stage);
  bool is_here(int rank) const;
  void sum_tied();
  void add_tied(const Sequence::Tie& tie, const std::vector<int>& owners);
  void spread(const Sequence::Tie& tie, const std::vector<int>& owners, bool gradients);
  bool check_loss_scales() const;
  void expect_scaled();
  void number_parameters(const std::vector<Sequence::Tie>& ties);
  void number_slices();
  Array sum_of_squares();
  Array squares_on(Device device, const std::vector<Member*>& members) const;
  void poison(const Array& total);

  Sequence& model_;
  double clip_norm_;
  Communicator* comm_;    // null in one process
  Communicator* data_;    // null without replicas
  Communicator* tensor_;  // null without tensor ranks
  Parameters sliced_;
  std::vector<Member> members_;
  std::vector<Sequence::Tie> ties_;
  std::vector<std::vector<int>> owners_;
  bool has_loss_scale_ = false;
  bool defers_ = false;                                         // all updates come at the end
  std::unordered_map<const ParameterState*, int64_t> numbers_;  // of the model; tied ones once
  Array counts_here_;  // by number: 1 if this tensor rank's squares count, else 0
  std::shared_ptr<NormStage> norm_;
};

}  // namespace catena::parallel::pipeline
