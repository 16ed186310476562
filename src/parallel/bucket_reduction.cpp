#include "bucket_reduction.h"

#include "catena/array/creation.h"
#include "catena/core/memory.h"
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

Event start_plainly(Communicator& comm, const BucketReduction& bucket, const Stream& side) {
  if (bucket.own.defined())
    return comm.reduce_scatter_async(bucket.gradient, bucket.op, bucket.own, side, bucket.tag);
  return comm.all_reduce_async(bucket.gradient, bucket.op, side, bucket.tag);
}

}  // namespace

Event start_reduction(Communicator& comm, const BucketReduction& bucket, StepAgreement* agreement) {
  const Stream side = comm.side_stream();
  if (agreement == nullptr && !bucket.travels_as) return start_plainly(comm, bucket, side);
  const OnSide scope(comm, side);
  const auto exchange = [&](const Array& sums) {
    comm.all_reduce_async(sums, comm::Reduction::kSum, side, agreement->tag());
  };
  if (bucket.travels_as) {
    if (side.defined()) record_use(*bucket.gradient.storage(), side);
    if (side.defined() && bucket.own.defined()) record_use(*bucket.own.storage(), side);
    reduce_rounded(comm, bucket);
    if (agreement != nullptr) agreement->exchange(exchange);
  } else {
    agreement->exchange([&](const Array& sums) {
      comm.group([&] {
        start_plainly(comm, bucket, side);
        exchange(sums);
      });
    });
  }
  return scope.record();
}

}  // namespace catena::parallel
