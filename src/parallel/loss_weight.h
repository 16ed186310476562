// Weights of losses: how passes over parts of a batch give the gradients of one pass over all of
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "catena/autograd/pass_start.h"
#include "catena/comm/internals.h"
#include "catena/optimizers/update_stage.h"

namespace catena::parallel {

// A mean over D counted elements of the n_r samples of a pass (mean.h) begins its pass with D / U
// instead of 1, where U = k n_r; the batch has n samples, and the rank counts with n_r / n, as for
// any loss. The ranks add up all D during the pass, and the update multiplies the gradients by
// V / C, where V = k n and C is that sum. So every counted element weighs the same, wherever it is.
// A loss that declares nothing counts as if D were U, so that both factors are 1. They are 1 where
// everything counts, too: k is what a sample of the first pass may count, on which the ranks agree
// once. Another k gives the same result but for rounding.
//
// Where passes accumulate, ranks count equally, U is k n_1 / ranks for the n_1 samples that all
// ranks have in the first pass, and V = k n_1: batches need not be known ahead.
//
// Of a sum of several means no single factor is right. Their counts are added up over the ranks
// before the pass, and what flows into each is multiplied by (D / U) (V / C).
//
// What a captured step reads is on the device, and changes between its replays with set_shares.
class LossWeight {
 public:
  explicit LossWeight(Communicator& comm);

  // The samples of the pass on this rank, and over all ranks.
  void set_shares(int64_t n_local, int64_t n_global);
  // Forgets the passes of a step.
  void begin_step();
  // The passes of this step accumulate.
  void accumulate();
  // The step was made: its factor stays with its gradients, which a call that reads them may reduce
  // again. Shares that are set from now on are those of the next step.
  void end_step();
  bool accumulates() const { return accumulates_; }
  // n_1, of which the ranks must think alike; 0 where passes do not accumulate.
  double first_samples() const { return accumulates_ ? first() : 0; }

  // A pass begins that is to be weighed. Collective at the first time, and for a sum of several
  // means. GradientError for such a sum in an accumulated step, unless everything counts. Without
  // `adds` the pass leaves the gradients of the step as they are: it is not weighed.
  void begin_pass(PassStart& start, bool adds = true);
  // The pass of slice `index` of the rank, of so many samples, is about to begin. The counts of
  // slices are added up in a tree, so that their sum does not depend on the number of ranks.
  void begin_slice(int index, int64_t samples);
  // Collective, where each rank has `slices` slices.
  void sum_slices(int slices);

  // This rank has left out a pass of the others. Collective as begin_pass.
  void leave_out() { agree(Form::kUnknown, nullptr, 0); }
  // A pass that is not weighed, or gradients that nothing is known of, belong to the step.
  void count_unweighed() { has_pass_ = true; }
  // What the caller has counted in place of passes, and what it would be if everything counted.
  // On the communicator's device, float64 of one element.
  void set_counted(const Array& counted, double whole);

  // Before the first bucket of a step: takes part in the messages of ranks that had a pass.
  void before_reduction();
  // Whether the counts are still to be added up, and how: by a rider on the first bucket, between
  // hosts' arrays, else by a call of their own.
  bool is_pending() const { return is_pending_; }
  bool rides() const { return rides_; }
  double& rider() { return counted_; }
  Array counts();
  // They are the sums over all ranks, once the work on the current stream is done.
  void counts_are_there();
  // What the gradients in memory are to be multiplied by, 0-d float64; undefined for 1.
  Array factor() const { return factor_; }

 private:
  double local() const {
    if (slice_samples_ >= 0) return double(slice_samples_);
    return n_global_ > 0 ? double(n_local_) : 1;
  }
  double global() const { return n_global_ > 0 ? double(n_global_) : comm_.size(); }
  double first() const { return first_ > 0 ? first_ : global(); }
  double unit() const { return accumulates_ ? scale_ * first() / comm_.size() : scale_ * local(); }
  double whole() const { return scale_ * (accumulates_ ? first() : global()); }
  bool on_device() const { return comm_.device().is_cuda(); }
  // What a loss is, in which the ranks agree: a rank without a pass does as the others.
  enum class Form : int8_t { kUnknown, kPlain, kMean, kSum };
  void agree(Form form, const Mean* mean, int64_t means);
  void count_unless_done();
  void warn_of_no_pass();
  void make_device_values();
  void begin_mean(PassStart& start, const Mean& mean);
  void begin_empty(PassStart& start);
  void begin_plain(PassStart& start);
  void begin_sum(PassStart& start);
  void count(const Array& counted);
  void count(double counted);
  const Array& device_sum();
  Array over_unit(const Array& counted) const;
  Array sums_of(const Array& counts) const;
  void write_device_values();

  Communicator& comm_;
  bool rides_;
  int64_t n_local_ = 0, n_global_ = 0;  // 0: not given
  double scale_ = 1;                    // k
  Form form_ = Form::kUnknown;
  int64_t means_ = 0;  // of a sum
  bool accumulates_ = false;
  bool are_set_ = false;  // the shares, in this step
  double first_ = 0;      // n_1
  bool is_done_ = false;
  bool has_pass_ = false;
  bool is_counted_ = false;
  bool warned_ = false;  // see warn_of_no_pass
  bool is_pending_ = false;
  int64_t slice_samples_ = -1;       // of the slice that runs; -1: there are no slices
  std::vector<Array> slice_counts_;  // float64 of one element each; undefined: no pass
  size_t slice_ = 0;
  double counted_ = 0, given_whole_ = 0;
  Array factor_, host_factor_;
  Array host_counted_;  // where no rider takes it
  // On a GPU
  Array first_counted_;  // not in device_counted_ yet
  Array device_counted_, device_whole_, device_unit32_, device_unit64_, device_factor_;
};

// Multiplies the gradients of an optimizer by a factor that its owner sets for each update.
class FactorStage final : public optimizers::UpdateStage {
 public:
  optimizers::UpdatePhase phase() const override { return optimizers::UpdatePhase::kUnscale; }
  const char* name() const override { return "weight of the loss"; }
  // 0-d float64 on any device; undefined: 1.
  void set_factor(const Array& factor) { factor_ = factor; }
  void run(optimizers::UpdateContext& update) override;
  bool reads_gradients(const optimizers::Optimizer&) const override { return factor_.defined(); }
  Array gradient_factor(Device device) override {
    return factor_.defined() ? factor_.to(device) : Array();
  }

 private:
  Array factor_;
};

// whole / counted, 0-d float64, of a count of one element; undefined for 1. On the CPU also where
// nothing counted; on a GPU, where nobody looks, a number by which gradients of 0 stay 0.
Array factor_over(const Array& counted, double whole);
// What a sample may count; 1 if that is not known.
double scale_of(const Mean* mean, double samples);
// Multiplies the gradients of all arenas by a factor; undefined: 1.
void scale_all(optimizers::UpdateContext& update, const Array& factor);

}  // namespace catena::parallel
