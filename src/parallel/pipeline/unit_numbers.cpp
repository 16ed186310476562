#include "parallel/pipeline/unit_numbers.h"

#include "array/launch_input.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/core/graph.h"
#include "core/split_mix.h"

namespace catena::parallel::pipeline {

void UnitNumbers::begin_step(Device device) {
  const uint64_t seed = replica_ == 0 ? seed_ : split_mix(seed_, static_cast<uint64_t>(replica_));
  base_.reset();
  if (!device.is_cuda() || !cuda::is_capturing(device)) {
    of_step_ = split_mix(seed, static_cast<uint64_t>(*steps_));
    return;
  }
  base_ = std::make_shared<Array>(launch_input({2}, Dtype::kUInt64, device));
  cuda::keep_with_graph(base_);
  cuda::add_launch_hook([base = base_, steps = steps_, seed] {
    (*base)[0].fill(Scalar(split_mix(seed, static_cast<uint64_t>((*steps)++))));
    (*base)[1].fill(Scalar(uint64_t{0}));
  });
}

void UnitNumbers::end_step() {
  if (!base_) ++*steps_;
}

RandomBits UnitNumbers::of(int unit, int micro_batch) const {
  const uint64_t first =
      (static_cast<uint64_t>(unit) << 52) | (static_cast<uint64_t>(micro_batch) << 40);
  return {of_step_, first, base_.get()};
}

}  // namespace catena::parallel::pipeline
