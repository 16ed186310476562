// One step of an update rule over contiguous parameters, and the kernels of loss scaling.
#include <atomic>

#include "backends/common/family.h"
#include "backends/cpu/loops/rule_loops.h"
#include "backends/cpu/loops/tables.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/optimizer.h"

#define CATENA_FN inline
#include "device/loss_scale.h"

namespace catena::host {

namespace {

double number(const StepValue& v) {
  if (v.device_value == nullptr) return v.value;
  const Array& a = *v.device_value;
  return a.dtype() == Dtype::kInt64 ? double(*a.data<int64_t>()) : *a.data<double>();
}

double step_of(const OptimizerCall& call) {
  return call.counter ? *call.counter->data<double>() + 1 : number(call.step);
}

// Index among the floating dtypes; DtypeError for others.
int float_index(const char* who, Dtype dtype) {
  static_assert(kFirstFloatDtype == static_cast<int>(Dtype::kFloat16) &&
                kFirstFloatDtype + kFloatDtypes - 1 == static_cast<int>(Dtype::kFloat64));
  const int index = static_cast<int>(dtype) - kFirstFloatDtype;
  CATENA_CHECK(DtypeError, index >= 0 && index < kFloatDtypes, who,
               ": expected a floating dtype, got ", dtype);
  return index;
}

char* address(const Array* array, int64_t element) {
  return array == nullptr ? nullptr
                          : static_cast<char*>(array->raw_data()) + element * array->itemsize();
}

// The elements from `begin` on.
RuleBlock block_at(const OptimizerCall& call, int64_t begin) {
  RuleBlock block{};
  block.parameter = address(call.parameter, begin);
  block.gradient = address(call.gradient, begin);
  block.master = reinterpret_cast<float*>(address(call.master, begin));
  for (int k = 0; k < kMaxRuleStates; ++k) block.states[k] = address(call.states[k], begin);
  return block;
}

void optimizer_update(const OptimizerCall& call) {
  if (call.skip != nullptr && *call.skip->data<double>() != 0) return;
  const RuleLoops& loops = *tables().rules;
  const int64_t size = call.parameter->size();
  const auto step =
      loops.step[call.rule->id][float_index("optimizer_update", call.parameter->dtype())];
  double constants[kMaxRuleConstants] = {};
  loops.prepare[call.rule->id](number(call.learning_rate), call.numbers, step_of(call), constants);
  const double scale = number(call.gradient_scale);
  parallel_ranges(size, 64, threads_for(size), [&](int64_t begin, int64_t end) {
    RuleBlock block = block_at(call, begin);
    block.constants = constants;
    block.gradient_scale = scale;
    block.weight_decay = call.weight_decay;
    block.n = end - begin;
    step(block);
  });
  if (call.counter && call.counts) *call.counter->data<double>() += 1;
}

void find_nonfinite(const NonFiniteCall& call) {
  const int64_t size = call.values->size();
  const auto look =
      tables().rules->any_nonfinite[float_index("find_nonfinite", call.values->dtype())];
  std::atomic<bool> found{false};
  parallel_ranges(size, 64, threads_for(size), [&](int64_t begin, int64_t end) {
    if (look(address(call.values, begin), end - begin))
      found.store(true, std::memory_order_relaxed);
  });
  if (found) *call.found->data<double>() = 1;
}

void advance_loss_scale(const LossScaleCall& call) {
  auto& state = *static_cast<rules::LossScaleState*>(call.state->raw_data());
  rules::advance_loss_scale(state,
                            {call.growth, call.backoff, call.least, call.most, call.interval});
  *call.scale32->data<float>() = static_cast<float>(state.scale);
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, optimizer) {
  kernels::optimizer_update.provide<&host::optimizer_update>(DeviceType::kCpu, "cpu");
  kernels::find_nonfinite.provide<&host::find_nonfinite>(DeviceType::kCpu, "cpu");
  kernels::advance_loss_scale.provide<&host::advance_loss_scale>(DeviceType::kCpu, "cpu");
}
