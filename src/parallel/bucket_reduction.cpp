#include "bucket_reduction.h"

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/comm/internals.h"
#include "catena/core/memory.h"
#include "loss_weight.h"
#include "step_agreement.h"

namespace catena::parallel {
namespace {

// Makes the side stream the current one for several calls, behind what the current one has done.
class OnSide {
 public:
  OnSide(Communicator& comm, const Stream& side) : side_(side) {
    if (!comm.device().is_cuda()) return;
    if (!(side == current_stream(comm.device()))) side.wait(current_stream(comm.device()));
    scope_.emplace(side);
  }
  Event record() const { return scope_ ? side_.record() : Event(); }

 private:
  const Stream& side_;
  std::optional<StreamScope> scope_;
};

// The other ranks that keep the part into which the bucket is reduced; null: there are none.
Communicator* keepers_of_part(const BatchRanks& ranks, const BucketReduction& bucket) {
  return bucket.own.defined() ? ranks.across() : nullptr;
}

// The second half where other ranks keep the same part: what each has summed is weighted already.
BucketReduction of_own_part(const BucketReduction& bucket) {
  const bool is_mean = bucket.op.kind == comm::Reduction::kMean;
  return {.gradient = bucket.own,
          .own = {},
          .op = is_mean ? comm::Reduction::kMean : comm::Reduction::kSum,
          .tag = bucket.tag,
          .travels_as = bucket.travels_as};
}

Event start_plainly(const BatchRanks& ranks, const BucketReduction& bucket, const Stream& side) {
  if (!bucket.own.defined())
    return ranks.all().all_reduce_async(bucket.gradient, bucket.op, side, bucket.tag);
  const Event end =
      ranks.shard().reduce_scatter_async(bucket.gradient, bucket.op, bucket.own, side, bucket.tag);
  Communicator* others = keepers_of_part(ranks, bucket);
  if (others == nullptr) return end;
  return others->all_reduce_async(bucket.own, of_own_part(bucket).op, side, bucket.tag);
}

void reduce_in_16_bits(const BatchRanks& ranks, const BucketReduction& bucket, const Stream& side) {
  if (side.defined()) record_use(*bucket.gradient.storage(), side);
  if (side.defined() && bucket.own.defined()) record_use(*bucket.own.storage(), side);
  reduce_rounded(bucket.own.defined() ? ranks.shard() : ranks.all(), bucket);
  if (Communicator* others = keepers_of_part(ranks, bucket))
    reduce_rounded(*others, of_own_part(bucket));
}

// The bucket, in a group with what the ranks must agree on, if they must.
void reduce_together(const BatchRanks& ranks, const BucketReduction& bucket, const Stream& side,
                     StepAgreement* agreement) {
  const auto exchange = [&](const Array& sums) {
    ranks.all().all_reduce_async(sums, comm::Reduction::kSum, side, agreement->tag());
  };
  if (agreement == nullptr || bucket.travels_as || keepers_of_part(ranks, bucket)) {
    bucket.travels_as ? reduce_in_16_bits(ranks, bucket, side)
                      : void(start_plainly(ranks, bucket, side));
    if (agreement != nullptr) agreement->exchange(exchange);
    return;
  }
  agreement->exchange([&](const Array& sums) {
    ranks.all().group([&] {
      start_plainly(ranks, bucket, side);
      exchange(sums);
    });
  });
}

}  // namespace

void start_counts(const BatchRanks& ranks, LossWeight& losses, uint16_t owner) {
  // A rider is summed over the ranks of the call that it is on.
  if (!losses.is_pending() || (losses.rides() && ranks.across() == nullptr)) return;
  const Stream side = ranks.all().side_stream();
  const OnSide scope(ranks.all(), side);
  ranks.all().all_reduce_async(losses.counts(), comm::Reduction::kSum, side,
                               {comm::TagKind::kAgreement, owner, 1});
  losses.counts_are_there();
}

Event start_reduction(const BatchRanks& ranks, const BucketReduction& bucket,
                      StepAgreement* agreement, LossWeight* losses) {
  Communicator& comm = ranks.all();
  const Stream side = comm.side_stream();
  std::optional<comm::RiderScope> rider;
  if (losses != nullptr && losses->is_pending()) rider.emplace(comm, losses->rider());
  const auto counts_are_there = [&] {
    if (losses != nullptr) losses->counts_are_there();
  };
  if (agreement == nullptr && !bucket.travels_as && !bucket.sum.defined()) {
    const Event end = start_plainly(ranks, bucket, side);
    counts_are_there();
    return end;
  }
  const OnSide scope(comm, side);
  reduce_together(ranks, bucket, side, agreement);
  counts_are_there();
  if (bucket.sum.defined()) {
    if (side.defined()) record_use(*bucket.sum.storage(), side);
    add(bucket.sum, bucket.own, bucket.sum);
  }
  return scope.record();
}

}  // namespace catena::parallel
