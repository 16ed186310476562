// One step of an update rule over contiguous parameters, and the kernels of loss scaling.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "backends/common/family.h"
#include "backends/common/low_is_half.h"
#include "backends/common/rule_format.h"
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
               is_float(dtype) ? ": no kernel for " : ": expected a floating dtype, got ", dtype);
  return index;
}

char* address(const Array* array, int64_t element) {
  return array == nullptr ? nullptr
                          : static_cast<char*>(array->raw_data()) + element * array->itemsize();
}

// A call and what is worked out for it once.
struct Step {
  const OptimizerCall& call;
  const RuleLoops& loops;
  void (*loop)(const RuleBlock& block);
  double constants[kMaxRuleConstants] = {};
  double gradient_scale;
};

Step prepared(const OptimizerCall& call) {
  const RuleLoops& loops = *tables().rules;
  const int dtype = float_index("optimizer_update", call.parameter->dtype());
  const auto loop = loops.step[call.rule->id][int(rule_format(call))][dtype];
  if (loop == nullptr) fail_rule_format(call);
  Step step{call, loops, loop, {}, number(call.gradient_scale)};
  loops.prepare[call.rule->id](number(call.learning_rate), call.numbers, step_of(call),
                               step.constants);
  return step;
}

// The elements [begin, end) of the call.
RuleBlock block_of(const Step& step, int64_t begin, int64_t end) {
  const OptimizerCall& call = step.call;
  RuleBlock block{};
  block.parameter = address(call.parameter, begin);
  block.gradient = address(call.gradient, begin);
  block.master = reinterpret_cast<float*>(address(call.master, begin));
  for (int k = 0; k < kMaxRuleStates; ++k) block.states[k] = address(call.states[k], begin);
  block.low = address(call.low, begin);
  block.low_is_half = low_is_half(call);
  block.constants = step.constants;
  block.gradient_scale = step.gradient_scale;
  block.weight_decay = call.weight_decay;
  block.rate_factor = block.decay_factor = 1;
  block.n = end - begin;
  return block;
}

// What segment s makes of the rate beside its factor.
double ratio_of(const Step& step, int64_t s) {
  const OptimizerCall& call = step.call;
  if (!call.rule->needs_norms) return 1;
  const double* squares = call.squares->data<double>();
  // Gradients are those in memory; steps follow from scaled ones.
  const double factor = call.rule->norms_of_steps ? 1 : std::abs(step.gradient_scale);
  return step.loops.ratio[call.rule->id](call.numbers, std::sqrt(squares[s]),
                                         std::sqrt(squares[call.segments->count + s]) * factor);
}

// The elements [begin, end) of the call, a segment after the other.
void update_segments(const Step& step, int64_t begin, int64_t end) {
  const RuleSegments& segments = *step.call.segments;
  const int64_t first = step.call.first;
  const int64_t* starts = segments.starts->data<int64_t>();
  const int64_t* last = starts + segments.count;
  int64_t s = std::upper_bound(starts, last, first + begin) - starts - 1;
  for (; begin < end; ++s) {
    const int64_t stop = std::min(end, starts[s + 1] - first);
    const double* factors = segments.factors->data<double>() + 3 * s;
    if (stop > begin && factors[2] == 0) {
      RuleBlock block = block_of(step, begin, stop);
      block.rate_factor = factors[0] * ratio_of(step, s);
      block.decay_factor = factors[1];
      step.loop(block);
    }
    begin = std::max(begin, stop);
  }
}

void optimizer_update(const OptimizerCall& call) {
  if (call.skip != nullptr && *call.skip->data<double>() != 0) return;
  const int64_t size = call.parameter->size();
  const Step step = prepared(call);
  parallel_ranges(size, 64, threads_for(size), [&](int64_t begin, int64_t end) {
    if (call.segments != nullptr)
      update_segments(step, begin, end);
    else
      step.loop(block_of(step, begin, end));
  });
  if (call.counter && call.counts) *call.counter->data<double>() += 1;
}

// sums[k][s] of the partial sums [k][piece] of one or two arrays.
void add_pieces(const RuleSegments& segments, int arrays, const Array& partial, const Array& sums) {
  const int64_t* first = segments.first_piece->data<int64_t>();
  for (int k = 0; k < arrays; ++k) {
    const double* of_pieces = partial.data<double>() + k * segments.piece_count;
    double* of_segments = sums.data<double>() + k * segments.count;
    for (int64_t s = 0; s < segments.count; ++s)
      of_segments[s] = std::accumulate(of_pieces + first[s], of_pieces + first[s + 1], 0.0);
  }
}

void segment_squares(const SegmentSquaresCall& call) {
  const RuleSegments& segments = *call.segments;
  const int64_t pieces = segments.piece_count;
  const int64_t* begins = segments.pieces->data<int64_t>();
  for (int k = 0; k < call.count; ++k) {
    const Array& values = *call.values[k];
    const auto squares = tables().rules->squares[float_index("segment_squares", values.dtype())];
    double* partial = call.partial->data<double>() + k * pieces;
    const auto place = [&](int64_t element) {
      return std::clamp<int64_t>(element - call.first, 0, values.size());
    };
    const auto sum_pieces = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t from = place(begins[i]), to = place(begins[i + 1]);
        partial[i] = squares(address(&values, from), to - from);
      }
    };
    parallel_ranges(pieces, 1, threads_for(values.size()), sum_pieces);
  }
  add_pieces(segments, call.count, *call.partial, *call.sums);
}

void step_squares(const StepSquaresCall& call) {
  const OptimizerCall& update = *call.update;
  const RuleSegments& segments = *update.segments;
  const Step step = prepared(update);
  const auto loop =
      step.loops
          .step_squares[update.rule->id][float_index("step_squares", update.parameter->dtype())];
  const int64_t pieces = segments.piece_count, size = update.parameter->size();
  const int64_t* begins = segments.pieces->data<int64_t>();
  const int64_t* first = segments.first_piece->data<int64_t>();
  double* partial = call.partial->data<double>();
  const auto sum_pieces = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = std::clamp<int64_t>(begins[i] - update.first, 0, size);
      const int64_t to = std::clamp<int64_t>(begins[i + 1] - update.first, 0, size);
      const int64_t s = std::upper_bound(first, first + segments.count, i) - first - 1;
      RuleBlock block = block_of(step, from, to);
      block.decay_factor = segments.factors->data<double>()[3 * s + 1];
      double sums[2] = {};
      loop(block, sums);
      partial[i] = sums[0];
      partial[pieces + i] = sums[1];
    }
  };
  parallel_ranges(pieces, 1, threads_for(size), sum_pieces);
  add_pieces(segments, 2, *call.partial, *call.sums);
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
  kernels::segment_squares.provide<&host::segment_squares>(DeviceType::kCpu, "cpu");
  kernels::step_squares.provide<&host::step_squares>(DeviceType::kCpu, "cpu");
  kernels::find_nonfinite.provide<&host::find_nonfinite>(DeviceType::kCpu, "cpu");
  kernels::advance_loss_scale.provide<&host::advance_loss_scale>(DeviceType::kCpu, "cpu");
}
