// Glue of the optimizer slots.
#include "backends/cuda/optimizer.h"

#include "backends/cuda/glue.h"
#include "backends/cuda/register.h"
#include "catena/kernels/optimizer.h"

namespace catena::gpu {
namespace {

StepNumber step_number(const char* who, const StepValue& value) {
  StepNumber result{value.value, nullptr, nullptr};
  if (!value.device_value) return result;
  const Array& a = *value.device_value;
  CATENA_CHECK(DeviceError, a.device().is_cuda(), who,
               ": a step value must be on the GPU, it is on ", a.device());
  if (a.dtype() == Dtype::kInt64) {
    result.integer_address = static_cast<const int64_t*>(a.raw_data());
  } else {
    CATENA_CHECK(DtypeError, a.dtype() == Dtype::kFloat64, who,
                 ": a step value must be float64 or int64, got ", a.dtype());
    result.float_address = static_cast<const double*>(a.raw_data());
  }
  return result;
}

UpdateCounter* update_counter(const char* who, const OptimizerCall& call) {
  if (!call.counter) return nullptr;
  const Array& a = *call.counter;
  CATENA_CHECK(ValueError,
               a.device() == call.parameter->device() && a.dtype() == Dtype::kFloat64 &&
                   a.shape() == Shape{2} && a.is_contiguous(),
               who, ": the counter must be a contiguous float64 array of shape (2,) on ",
               call.parameter->device(), ", got ", a.dtype(), " ", a.shape(), " on ", a.device());
  return static_cast<UpdateCounter*>(a.raw_data());
}

template <Rule kRule>
void run(const char* who, const OptimizerCall& call) {
  OptimizerArgs args{};
  args.parameter = call.parameter->raw_data();
  args.gradient = call.gradient->raw_data();
  args.aligned = aligned16(args.parameter) && aligned16(args.gradient);
  for (int i = 0; i < 2; ++i) {
    if (!call.states[i]) continue;
    args.states[i] = call.states[i]->raw_data();
    args.aligned = args.aligned && aligned16(args.states[i]);
  }
  args.count = call.parameter->size();
  args.learning_rate = step_number(who, call.learning_rate);
  args.step = step_number(who, call.step);
  args.counter = update_counter(who, call);
  args.gradient_scale = step_number(who, call.gradient_scale);
  args.weight_decay = call.weight_decay;
  args.beta1 = call.beta1;
  args.beta2 = call.beta2;
  args.epsilon = call.epsilon;
  launch_optimizer(kRule, float_code(who, call.parameter->dtype()), args,
                   launch_for(*call.parameter));
  check_launch(who);
}

void sgd(const OptimizerCall& call) { run<Rule::kSgd>("sgd", call); }
void momentum_sgd(const OptimizerCall& call) { run<Rule::kMomentumSgd>("momentum_sgd", call); }
void adam(const OptimizerCall& call) { run<Rule::kAdam>("adam", call); }

}  // namespace

void register_optimizer_kernels() {
  kernels::sgd.provide<&sgd>(DeviceType::kCuda, "cuda");
  kernels::momentum_sgd.provide<&momentum_sgd>(DeviceType::kCuda, "cuda");
  kernels::adam.provide<&adam>(DeviceType::kCuda, "cuda");
}

}  // namespace catena::gpu
