// Host glue of the sampled_logistic slots.
#include "backends/cuda/loss/sampled_logistic.h"

#include "backends/common/family.h"
#include "backends/cuda/loss/grid_sum_scratch.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/index.h"
#include "catena/kernels/sampling.h"

namespace catena::gpu {
namespace {

template <class Call>
SampledLogisticArgs arguments(const Call& call) {
  SampledLogisticArgs args{};
  args.x = call.x->raw_data();
  args.W = call.W->raw_data();
  args.rows = call.rows->template data<int32_t>();
  args.batch = call.rows->shape()[0];
  args.terms = call.rows->shape()[1];
  args.n = call.W->shape()[0];
  args.size = call.W->shape()[1];
  args.coefficients = call.coefficients->raw_data();
  return args;
}

void sampled_logistic(const SampledLogisticCall& call) {
  SampledLogisticArgs args = arguments(call);
  args.loss = call.loss->raw_data();
  if (const TreePaths* tree = call.paths) {
    args.tree = {tree->t->data<int32_t>(), tree->begins->data<int32_t>(), tree->begins->size() - 1,
                 tree->paths->data<int32_t>(), tree->codes->data<int8_t>()};
  }
  const Launch launch = launch_for(*call.x);
  const int blocks = sampled_logistic_blocks(args, launch);
  const StoragePtr scratch = add_scratch(args.scratch, blocks, call.x->device(), launch);
  launch_sampled_logistic(float_code("sampled_logistic", call.x->dtype()), args, blocks, launch);
  check_launch("sampled_logistic");
}

// The sums of what the terms add to the rows of gW, `values` (batch, terms, size).
void add_to_rows(const SampledLogisticGradCall& call, const Array& values) {
  const int64_t n = call.W->shape()[0], size = call.W->shape()[1], count = call.rows->size();
  kernels::scatter_add(call.x->device(),
                       {call.gW->reshape({1, n, size}), call.rows->reshape({count}),
                        values.reshape({1, count, size}), call.accumulate_W, IdRule{true, -1}});
}

void sampled_logistic_grad(const SampledLogisticGradCall& call) {
  if (call.x->size() == 0) return;
  Array values;
  if (call.gW)
    values = Array::uninitialized({call.rows->size(), call.x->shape()[1]}, call.x->dtype(),
                                  call.x->device());
  SampledLogisticArgs args = arguments(call);
  args.gloss = call.gloss->raw_data();
  args.gx = data_of(call.gx);
  args.values = call.gW ? values.raw_data() : nullptr;
  launch_sampled_logistic_grad(float_code("sampled_logistic_grad", call.x->dtype()), args,
                               launch_for(*call.x));
  check_launch("sampled_logistic_grad");
  if (call.gW) add_to_rows(call, values);
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, sampled_logistic) {
  kernels::sampled_logistic.provide<&gpu::sampled_logistic>(DeviceType::kCuda, "cuda");
  kernels::sampled_logistic_grad.provide<&gpu::sampled_logistic_grad>(DeviceType::kCuda, "cuda");
}
