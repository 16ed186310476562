// Host glue of the optimizer slots.
#include "backends/cuda/optimizer/optimizer.h"

#include "backends/common/family.h"
#include "backends/common/low_is_half.h"
#include "backends/common/rule_format.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/optimizer.h"

namespace catena::gpu {
namespace {

StepNumber step_number(const StepValue& value) {
  StepNumber result{value.value, nullptr, nullptr};
  if (!value.device_value) return result;
  const Array& a = *value.device_value;
  CATENA_CHECK(DeviceError, a.device().is_cuda(),
               "optimizer_update: a step value must be on the GPU, it is on ", a.device());
  if (a.dtype() == Dtype::kInt64) {
    result.integer_address = static_cast<const int64_t*>(a.raw_data());
  } else {
    CATENA_CHECK(DtypeError, a.dtype() == Dtype::kFloat64,
                 "optimizer_update: a step value must be float64 or int64, got ", a.dtype());
    result.float_address = static_cast<const double*>(a.raw_data());
  }
  return result;
}

// Numbers that kernels keep on the device, as adjacent float64.
double* device_numbers(const char* who, const char* what, const Array& a, int64_t count,
                       Device device) {
  CATENA_CHECK(ValueError,
               a.device() == device && a.dtype() == Dtype::kFloat64 && a.size() == count &&
                   a.is_contiguous(),
               who, ": ", what, " must be ", count, " contiguous float64 numbers on ", device,
               ", got ", a.dtype(), " ", a.shape(), " on ", a.device());
  return static_cast<double*>(a.raw_data());
}

// The address of an array of the call; clears `aligned` if the address is not aligned.
void* address(const Array* array, OptimizerArgs& args) {
  if (array == nullptr) return nullptr;
  args.aligned = args.aligned && aligned16(array->raw_data());
  return array->raw_data();
}

// What the kernels read of segments. Packs of up to 8 elements must not reach into the next one.
SegmentArgs segment_args(const OptimizerCall& call) {
  const RuleSegments& segments = *call.segments;
  SegmentArgs args{segments.starts->data<int64_t>(), segments.factors->data<double>(), nullptr,
                   segments.count};
  if (call.squares)
    args.squares = device_numbers("optimizer_update", "the sums of squares", *call.squares,
                                  2 * args.count, call.parameter->device());
  return args;
}
constexpr int64_t kLargestPack = 8;

OptimizerArgs optimizer_args(const char* who, const OptimizerCall& call) {
  const Device device = call.parameter->device();
  OptimizerArgs args{};
  args.aligned = true;
  args.parameter = address(call.parameter, args);
  args.gradient = address(call.gradient, args);
  args.master = static_cast<float*>(address(call.master, args));
  for (int k = 0; k < kMaxRuleStates; ++k) args.states[k] = address(call.states[k], args);
  args.low = address(call.low, args);
  args.low_is_half = low_is_half(call);
  args.count = call.parameter->size();
  args.first = call.first;
  if (call.segments) {
    args.segments = segment_args(call);
    args.aligned = args.aligned && call.segments->alignment % kLargestPack == 0 &&
                   call.first % kLargestPack == 0;
  }
  args.learning_rate = step_number(call.learning_rate);
  args.step = step_number(call.step);
  args.gradient_scale = step_number(call.gradient_scale);
  if (call.counter)
    args.counter = reinterpret_cast<UpdateCounter*>(
        device_numbers(who, "the counter", *call.counter, 2, device));
  args.counts = call.counts;
  if (call.skip) args.skip = device_numbers(who, "skip", *call.skip, 1, device);
  args.weight_decay = call.weight_decay;
  for (int k = 0; k < kMaxRuleNumbers; ++k) args.numbers[k] = call.numbers[k];
  return args;
}

void optimizer_update(const OptimizerCall& call) {
  const char* who = "optimizer_update";
  const bool is_known =
      launch_optimizer(call.rule->id, rule_format(call), float_code(who, call.parameter->dtype()),
                       optimizer_args(who, call), launch_for(*call.parameter));
  if (!is_known) fail_rule_format(call);
  check_launch(who);
}

// All but the values.
SquaresArgs squares_args(const RuleSegments& segments, const Array& partial, const Array& sums) {
  SquaresArgs args{};
  args.pieces = segments.pieces->data<int64_t>();
  args.first_piece = segments.first_piece->data<int64_t>();
  args.piece_count = segments.piece_count;
  args.segment_count = segments.count;
  args.partial = partial.data<double>();
  args.sums = sums.data<double>();
  return args;
}

void segment_squares(const SegmentSquaresCall& call) {
  const RuleSegments& segments = *call.segments;
  for (int k = 0; k < call.count; ++k) {
    const Array& values = *call.values[k];
    SquaresArgs args = squares_args(segments, *call.partial, *call.sums);
    args.values = values.raw_data();
    args.first = call.first;
    args.count = values.size();
    args.partial += k * args.piece_count;
    args.sums += k * args.segment_count;
    launch_segment_squares(float_code("segment_squares", values.dtype()), args, launch_for(values));
  }
  check_launch("segment_squares");
}

void step_squares(const StepSquaresCall& call) {
  const char* who = "step_squares";
  const OptimizerCall& update = *call.update;
  SquaresArgs squares = squares_args(*update.segments, *call.partial, *call.sums);
  squares.first = update.first;
  squares.count = update.parameter->size();
  launch_step_squares(update.rule->id, float_code(who, update.parameter->dtype()),
                      optimizer_args(who, update), squares, launch_for(*update.parameter));
  check_launch(who);
}

void find_nonfinite(const NonFiniteCall& call) {
  const char* who = "find_nonfinite";
  double* found = device_numbers(who, "found", *call.found, 1, call.values->device());
  launch_find_nonfinite(float_code(who, call.values->dtype()), call.values->raw_data(),
                        call.values->size(), found, launch_for(*call.values));
  check_launch(who);
}

void advance_loss_scale(const LossScaleCall& call) {
  const char* who = "advance_loss_scale";
  const LossScaleArgs args{device_numbers(who, "the state", *call.state, 5, call.state->device()),
                           static_cast<float*>(call.scale32->raw_data()),
                           call.growth,
                           call.backoff,
                           call.least,
                           call.most,
                           call.interval};
  launch_advance_loss_scale(args, launch_for(*call.state));
  check_launch(who);
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, optimizer) {
  kernels::optimizer_update.provide<&gpu::optimizer_update>(DeviceType::kCuda, "cuda");
  kernels::segment_squares.provide<&gpu::segment_squares>(DeviceType::kCuda, "cuda");
  kernels::step_squares.provide<&gpu::step_squares>(DeviceType::kCuda, "cuda");
  kernels::find_nonfinite.provide<&gpu::find_nonfinite>(DeviceType::kCuda, "cuda");
  kernels::advance_loss_scale.provide<&gpu::advance_loss_scale>(DeviceType::kCuda, "cuda");
}
