#include "parallel/pipeline/unit_numbers.h"

#include "array/launch_input.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/core/graph.h"

namespace catena::parallel::pipeline {
namespace {

// The finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number
// generators, OOPSLA 2014).
uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t z = a + (b + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

void UnitNumbers::set_seed(uint64_t seed, int replica) {
  seed_ = replica == 0 ? seed : mixed(seed, static_cast<uint64_t>(replica));
}

void UnitNumbers::begin_step(const std::shared_ptr<int64_t>& next, Device device) {
  base_.reset();
  if (!device.is_cuda() || !cuda::is_capturing(device)) {
    of_step_ = mixed(seed_, static_cast<uint64_t>(*next));
    return;
  }
  base_ = std::make_shared<Array>(launch_input({2}, Dtype::kUInt64, device));
  cuda::keep_with_graph(base_);
  cuda::add_launch_hook([base = base_, next, seed = seed_] {
    (*base)[0].fill(Scalar(mixed(seed, static_cast<uint64_t>((*next)++))));
    (*base)[1].fill(Scalar(uint64_t{0}));
  });
}

void UnitNumbers::end_step(const std::shared_ptr<int64_t>& next) {
  if (!base_) ++*next;
}

RandomBits UnitNumbers::of(int unit, int micro_batch) const {
  const uint64_t first =
      (static_cast<uint64_t>(unit) << 52) | (static_cast<uint64_t>(micro_batch) << 40);
  return {of_step_, first, base_.get()};
}

}  // namespace catena::parallel::pipeline
