#include "loss_weight.h"

#include <algorithm>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/core/graph.h"
#include "catena/core/log.h"
#include "catena/core/memory.h"
#include "catena/optimizers/optimizer.h"
#include "tree_reduction.h"

namespace catena::parallel {
namespace {

// Added to counts on a device, where nobody looks whether they are 0: gradients are 0 then, and
// must not be divided by it. No count that is not 0 changes by it.
constexpr double kLeastCount = 1e-20;

Array number_on(Device device, Dtype dtype) { return zeros({1}, {dtype, device}); }

}  // namespace

Array factor_over(const Array& counted, double whole) {
  if (counted.device().is_cuda()) return divide(whole, add(counted, kLeastCount)).reshape(Shape{});
  const double number = counted.item<double>();
  if (!(number > 0) || number == whole) return {};
  return full({}, whole / number, {Dtype::kFloat64, counted.device()});
}

double scale_of(const Mean* mean, double samples) {
  if (mean == nullptr || !(mean->expected > 0) || !(samples > 0)) return 1;
  return mean->expected / samples;
}

void scale_all(optimizers::UpdateContext& update, const Array& factor) {
  if (!factor.defined()) return;
  Arrays factors;
  for (const auto& arena : update.optimizer().layout().arenas())
    factors.push_back(factor.to(arena.device()));
  update.scale_gradients(factors);
}

void FactorStage::run(optimizers::UpdateContext& update) { scale_all(update, factor_); }

LossWeight::LossWeight(Communicator& comm)
    : comm_(comm), rides_(comm::internals(comm).takes_riders()) {}

// The step ----------------------------------------------------------------------------------------

void LossWeight::set_shares(int64_t n_local, int64_t n_global) {
  n_local_ = n_local;
  n_global_ = n_global;
  are_set_ = true;
  if (accumulates_ && first_ == 0) first_ = global();
  write_device_values();
}

void LossWeight::begin_step() {
  accumulates_ = is_done_ = has_pass_ = is_counted_ = is_pending_ = false;
  first_ = counted_ = given_whole_ = 0;
  factor_ = first_counted_ = {};
  slice_samples_ = -1;
  slice_counts_.clear();
}

void LossWeight::end_step() {
  are_set_ = is_pending_ = false;
  is_done_ = true;
}

void LossWeight::accumulate() {
  if (std::exchange(accumulates_, true)) return;
  if (are_set_) first_ = global();
  write_device_values();
}

void LossWeight::begin_slice(int index, int64_t samples) {
  slice_ = size_t(index);
  slice_samples_ = samples;
  slice_counts_.resize(std::max(slice_counts_.size(), slice_ + 1));
}

// Ranks agree -------------------------------------------------------------------------------------

void LossWeight::agree(Form form, const Mean* mean, int64_t means) {
  if (form_ != Form::kUnknown) return;
  struct Fact {
    double scale;
    int64_t means;
    Form form;
  };
  const Fact own{scale_of(mean, local()), means, form};
  if (comm_.size() == 1 || cuda::is_capturing(comm_.device())) {
    if (!has_pass_) scale_ = own.scale;
    return;
  }
  const comm::PurposeScope purpose(&comm_, "what losses divide by");
  for (const Fact& fact : comm_.all_gather_object(own)) {
    if (fact.form == Form::kUnknown) continue;
    scale_ = form_ == Form::kUnknown ? fact.scale : std::max(scale_, fact.scale);
    form_ = std::max(form_, fact.form);
    means_ = std::max(means_, fact.means);
  }
  write_device_values();
}

void LossWeight::make_device_values() {
  if (!on_device() || device_whole_.defined()) return;
  device_whole_ = number_on(comm_.device(), Dtype::kFloat64);
  device_unit32_ = number_on(comm_.device(), Dtype::kFloat32);
  device_unit64_ = number_on(comm_.device(), Dtype::kFloat64);
  device_counted_ = number_on(comm_.device(), Dtype::kFloat64);
  device_factor_ = number_on(comm_.device(), Dtype::kFloat64);
  write_device_values();
}

void LossWeight::write_device_values() {
  if (!device_whole_.defined() || cuda::is_capturing(comm_.device())) return;
  device_whole_.fill(whole());
  device_unit32_.fill(unit());
  device_unit64_.fill(unit());
}

// Passes ------------------------------------------------------------------------------------------

void LossWeight::begin_pass(PassStart& start, bool adds) {
  const Mean* mean = start.mean();
  const size_t means = mean ? 0 : start.means().size();
  const Form form = mean ? Form::kMean : means > 0 ? Form::kSum : Form::kPlain;
  agree(local() > 0 ? form : Form::kUnknown, mean, int64_t(means));
  make_device_values();
  if (!adds) return;
  start.is_of_a_part();
  has_pass_ = true;
  if (accumulates_ && first_ == 0) first_ = global();
  if (form == Form::kSum) begin_sum(start);
  if (local() == 0) return begin_empty(start);
  form == Form::kMean ? begin_mean(start, *mean) : begin_plain(start);
}

// counted / U
Array LossWeight::over_unit(const Array& counted) const {
  const bool is_double = counted.dtype() == Dtype::kFloat64;
  const Dtype wide = is_double ? Dtype::kFloat64 : Dtype::kFloat32;
  const Array number = counted.reshape({1}).astype(wide, false);
  if (!on_device() || slice_samples_ >= 0) return divide(number, unit());
  return divide(number, is_double ? device_unit64_ : device_unit32_);
}

void LossWeight::begin_mean(PassStart& start, const Mean& mean) {
  const Array counted = mean.counted.to(comm_.device());
  start.scale(over_unit(counted), unit());
  count(counted);
}

// What a loss gives without samples (a penalty on weights) does not count. The reduction drops it,
// unless passes accumulate.
void LossWeight::begin_empty(PassStart& start) {
  if (accumulates_) start.scale(zeros({1}, {Dtype::kFloat64, comm_.device()}), unit());
}

void LossWeight::begin_plain(PassStart& start) {
  count(scale_ * local());
  const double factor = scale_ * local() / unit();
  if (factor != 1) start.scale(full({1}, factor, {Dtype::kFloat64, comm_.device()}), unit());
}

void LossWeight::count(const Array& counted) {
  const Array number = counted.reshape({1});
  if (slice_samples_ >= 0)
    slice_counts_[slice_] = number.astype(Dtype::kFloat64);
  else if (!on_device())
    counted_ += counted.item<double>();
  else if (is_counted_)
    add(device_sum(), number, device_counted_);
  else
    first_counted_ = number;
  is_counted_ = is_pending_ = true;
}

// The sum of this rank, on the current stream. The first count comes to it where it is asked for,
// which is beside the pass.
const Array& LossWeight::device_sum() {
  if (!first_counted_.defined()) return device_counted_;
  record_use(*first_counted_.storage(), current_stream(comm_.device()));
  add(std::exchange(first_counted_, {}), kLeastCount, device_counted_);
  return device_counted_;
}

// On a device the sum is made where the losses of a program declare what they counted, of which
// this one may be another, or passes accumulate.
void LossWeight::count(double counted) {
  if (slice_samples_ >= 0) {
    slice_counts_[slice_] = full({1}, counted, {Dtype::kFloat64, comm_.device()});
  } else if (!on_device()) {
    counted_ += counted;
    is_pending_ = true;
  } else if (accumulates_ || form_ == Form::kMean) {
    if (is_counted_)
      add(device_sum(), counted, device_counted_);
    else
      device_counted_.fill(counted);
    is_pending_ = true;
  }
  is_counted_ = true;
}

// A sum of several means: (D / U) (V / C) into each.
void LossWeight::begin_sum(PassStart& start) {
  if (accumulates_ || slice_samples_ >= 0)
    return catena::detail::require_all_counted("backward", start.means());
  const std::vector<VariableNode*>& means = start.means();
  Arrays counts;
  for (const VariableNode* v : means)
    counts.push_back(v->mean->mean.counted.to(comm_.device()).reshape({1}).astype(Dtype::kFloat64));
  const Array own = concatenate(counts);
  const Array sums = sums_of(own.copy());
  if (local() == 0) return;
  const Array whole_here = divide(whole(), maximum(sums, kLeastCount));
  const Array factors = multiply(divide(own, unit()), whole_here);
  Arrays into;
  for (int64_t i = 0; i < factors.size(); ++i) into.push_back(factors(Slice(i, i + 1)));
  start.scale_means(into, unit());
}

Array LossWeight::sums_of(const Array& counts) const {
  const comm::PurposeScope purpose(&comm_, "the counts of a loss that is a sum of several means");
  if (comm_.size() > 1) comm_.all_reduce(counts, comm::Reduction::kSum, counts);
  return counts;
}

// The reduction -----------------------------------------------------------------------------------

void LossWeight::before_reduction() {
  if (is_done_ || given_whole_ > 0) return;
  agree(has_pass_ ? Form::kPlain : Form::kUnknown, nullptr, 0);
  make_device_values();
  const bool joins_sum = !has_pass_ && !accumulates_ && form_ == Form::kSum;
  if (joins_sum) sums_of(zeros({means_}, {Dtype::kFloat64, comm_.device()}));
  if (!is_counted_) count_unless_done();
}

// Of a pass that was not weighed everything counts, and of a rank whose loss did not reach the
// parameters, unless passes accumulate, which ranks may leave out.
void LossWeight::count_unless_done() {
  const double counted = accumulates_ ? 0 : scale_ * local();
  if (!has_pass_ && form_ == Form::kMean && counted > 0) warn_of_no_pass();
  if (!on_device()) {
    counted_ += counted;
    is_pending_ = true;
  } else if (accumulates_ || form_ == Form::kMean) {
    device_counted_.fill(counted + kLeastCount);
    is_pending_ = true;
  }
}

// A program that leaves out the pass of a batch of ignored labels would train another model.
void LossWeight::warn_of_no_pass() {
  if (std::exchange(warned_, true)) return;
  logging::warning(
      "update: no backward pass of this rank has reached the parameters, and the losses of others "
      "say what they counted; this rank counts as if all of its samples did, with gradients of 0. "
      "Run the pass also where nothing counts (all labels ignored), which gives zeros, or call "
      "set_batch_weight(0, n) (shown once)");
}

void LossWeight::set_counted(const Array& counted, double whole) {
  has_pass_ = is_counted_ = is_pending_ = true;
  given_whole_ = whole;
  first_counted_ = {};
  if (on_device())
    device_counted_ = add(counted.reshape({1}), kLeastCount);
  else
    counted_ = counted.item<double>();
}

Array LossWeight::counts() {
  if (on_device()) return device_sum();
  return host_counted_ = full({1}, counted_, {Dtype::kFloat64, comm_.device()});
}

void LossWeight::counts_are_there() {
  if (!std::exchange(is_pending_, false)) return;
  if (host_counted_.defined()) counted_ = std::exchange(host_counted_, {}).item<double>();
  const double whole = given_whole_ > 0 ? given_whole_ : this->whole();
  if (on_device()) {
    if (given_whole_ > 0 || slice_samples_ >= 0 || !device_whole_.defined())
      device_factor_ = divide(whole, device_counted_);
    else
      divide(device_whole_, device_counted_, device_factor_);
    factor_ = device_factor_.reshape(Shape{});
    return;
  }
  const double factor = counted_ > 0 ? whole / counted_ : 1;
  factor_ = {};
  if (factor == 1) return;
  if (!host_factor_.defined()) host_factor_ = zeros({}, {Dtype::kFloat64, comm_.device()});
  host_factor_.fill(factor);
  factor_ = host_factor_;
}

void LossWeight::sum_slices(int slices) {
  slice_counts_.resize(size_t(slices));
  for (Array& count : slice_counts_)
    if (!count.defined()) count = number_on(comm_.device(), Dtype::kFloat64);
  const Array sum = tree_sum(concatenate(slice_counts_).reshape({slices, 1}));
  tree_all_reduce(comm_, sum);
  if (on_device())
    device_counted_ = add(sum, kLeastCount);
  else
    counted_ = sum.item<double>();
  slice_samples_ = 0;
  is_pending_ = true;
  counts_are_there();
}

}  // namespace catena::parallel
