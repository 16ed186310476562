// One step of an update rule over contiguous parameters.
#include <cmath>

#include "backends/cpu/blocks.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"

namespace catena::host {

namespace {

constexpr int64_t kBlock = 1024;  // elements of 16-bit arrays converted at a time

template <class C>
const OptimizerLoops<C>& loops();
template <>
const OptimizerLoops<float>& loops() {
  return tables().optimizer_float;
}
template <>
const OptimizerLoops<double>& loops() {
  return tables().optimizer_double;
}

double number(const StepValue& v) {
  if (v.device_value == nullptr) return v.value;
  const Array& a = *v.device_value;
  return a.dtype() == Dtype::kInt64 ? double(*a.data<int64_t>()) : *a.data<double>();
}

StepConstants constants(const OptimizerCall& call) {
  return {number(call.learning_rate),
          number(call.gradient_scale),
          call.weight_decay,
          call.beta1,
          call.beta2,
          call.epsilon};
}

// Calls rule(loops, pointers, n) on blocks of (parameter, gradient, states...), the parameter and
// the states being written back.
template <class C, class Rule>
void run(const OptimizerCall& call, const Rule& rule) {
  const Array* arrays[4] = {call.parameter, call.gradient, call.states[0], call.states[1]};
  const int count = call.states[0] == nullptr ? 2 : call.states[1] == nullptr ? 3 : 4;
  const int64_t size = call.parameter->size();
  const bool direct = call.parameter->dtype() == dtype_of<C>;
  parallel_ranges(size, 64, threads_for(size), [&](int64_t begin, int64_t end) {
    C* pointers[4] = {};
    if (direct) {
      for (int k = 0; k < count; ++k) pointers[k] = static_cast<C*>(arrays[k]->raw_data()) + begin;
      rule(loops<C>(), pointers, end - begin);
      return;
    }
    Elements<C> elements[4] = {{*arrays[0], kBlock},
                               {*arrays[1], kBlock},
                               {*arrays[count > 2 ? 2 : 0], kBlock},
                               {*arrays[count > 3 ? 3 : 0], kBlock}};
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t n = std::min(kBlock, end - at);
      for (int k = 0; k < count; ++k) pointers[k] = elements[k].read(at, 1, n);
      rule(loops<C>(), pointers, n);
      for (int k = 0; k < count; ++k) {
        if (k != 1) elements[k].commit(at, 1, n);
      }
    }
  });
}

template <class Rule>
void step(const OptimizerCall& call, const Rule& rule) {
  visit_compute(call.parameter->dtype(),
                [&](auto tag) { run<typename decltype(tag)::type>(call, rule); });
  if (call.counter) *call.counter->data<double>() += 1;
}

double step_of(const OptimizerCall& call) {
  return call.counter ? *call.counter->data<double>() + 1 : number(call.step);
}

}  // namespace

void sgd(const OptimizerCall& call) {
  const StepConstants c = constants(call);
  step(call, [&](const auto& f, auto* const* p, int64_t n) { f.sgd(p[0], p[1], c, n); });
}

void momentum_sgd(const OptimizerCall& call) {
  const StepConstants c = constants(call);
  step(call,
       [&](const auto& f, auto* const* p, int64_t n) { f.momentum_sgd(p[0], p[1], p[2], c, n); });
}

void adam(const OptimizerCall& call) {
  StepConstants c = constants(call);
  const double t = step_of(call);
  c.learning_rate *= std::sqrt(1 - std::pow(call.beta2, t)) / (1 - std::pow(call.beta1, t));
  step(call,
       [&](const auto& f, auto* const* p, int64_t n) { f.adam(p[0], p[1], p[2], p[3], c, n); });
}

}  // namespace catena::host
