#include "parallel/pipeline/loss_counts.h"

#include <algorithm>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/comm/internals.h"
#include "catena/core/graph.h"
#include "core/compute_dtype.h"
#include "parallel/loss_weight.h"

namespace catena::parallel::pipeline {

void LossCounts::begin_step(int stages, const MicroBatches& batch, bool counts_all) {
  sums_.assign(size_t(stages), {});
  batch_ = batch;
  counts_all_ = counts_all;
  declared_ = false;
}

void LossCounts::agree(Communicator* replicas, const Mean* mean, int64_t samples, bool has_loss) {
  if (agreed_) return;
  struct Fact {
    double scale;
    int64_t has_loss;
  };
  const Fact own{parallel::scale_of(mean, double(samples)), has_loss ? 1 : 0};
  if (replicas == nullptr || replicas->size() == 1 || cuda::is_capturing(replicas->device())) {
    scale_ = own.scale;
    agreed_ = has_loss && replicas == nullptr;
    return;
  }
  const comm::PurposeScope purpose(replicas, "what losses divide by");
  for (const Fact& fact : replicas->all_gather_object(own)) {
    if (fact.has_loss == 0) continue;
    scale_ = agreed_ ? std::max(scale_, fact.scale) : fact.scale;
    agreed_ = true;
  }
}

Parcel LossCounts::start_of(const Variable& loss, int64_t samples) {
  const Mean* mean = catena::mean_of(loss);
  if (mean == nullptr) {
    require_countable("Pipeline::step", loss);
    Array count;
    if (counts_all_) count = full({1}, double(samples), {Dtype::kFloat64, loss.device()});
    return {{full_like(loss.data(), double(samples) / double(batch_.samples))}, {}, count};
  }
  declared_ = true;
  const Dtype wide = compute_dtype(loss.dtype());
  const Array counted = mean->counted.to(loss.device()).reshape(loss.shape());
  const Array count = divide(counted.reshape({1}).astype(Dtype::kFloat64), scale_);
  const Array start = divide(counted.astype(wide, false), scale_ * double(batch_.samples));
  return {{start.astype(loss.dtype(), false)}, {}, count};
}

void LossCounts::add(int stage, const Array& count, int64_t samples) {
  Sum& sum = sums_[size_t(stage)];
  ++sum.counts;
  if (!count.defined())
    sum.samples += double(samples);
  else
    sum.value = sum.value.defined() ? catena::add(sum.value, count) : count;
}

Array LossCounts::sum(int stage) const {
  const Sum& sum = sums_[size_t(stage)];
  if (sum.counts < batch_.size || !sum.value.defined()) return {};
  return sum.samples > 0 ? catena::add(sum.value, sum.samples) : sum.value;
}

Array LossCounts::mean_of(const Array& value, int stage) const {
  const Array counted = declared_sum(stage);
  if (!counted.defined()) return value;
  const Array factor = factor_over(counted, double(batch_.samples));
  return factor.defined() ? multiply(value, factor.astype(value.dtype(), false)) : value;
}

}  // namespace catena::parallel::pipeline
