// Update rules on contiguous elements, made from the functors and rows that the CUDA kernels share,
// and the search for elements that are not finite. All constants are rounded to the compute type
// once. See loop.h about linkage.
#include <type_traits>

#include "backends/cpu/loops/convert.h"
#include "backends/cpu/loops/rule_loops.h"
#include "backends/cpu/loops/tables.h"

#define CATENA_FN inline __attribute__((always_inline))

namespace catena::m {
namespace {
CATENA_FN float sqrt(float x) { return __builtin_sqrtf(x); }
CATENA_FN double sqrt(double x) { return __builtin_sqrt(x); }
CATENA_FN double power(double b, double t) { return __builtin_pow(b, t); }
}  // namespace
}  // namespace catena::m

#include "device/compute_type.h"
#include "device/optimizer_rules.h"

namespace catena::host {
namespace {

// The value from which the rule starts: the master copy, unless other code has written the
// parameter since.
template <class T>
CATENA_FN float starting_value(float master, T parameter) {
  return Narrow<T>::from(master).bits == parameter.bits ? master : widen(parameter);
}

template <class L>
void narrow(const float* from, L* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = Narrow<L>::from(from[i]);
}

template <class T>
void write_low(const RuleBlock& b) {
  if constexpr (std::is_same_v<T, float>) {
    const float* const p = static_cast<const float*>(b.parameter);
    if (b.low == nullptr) return;
    if (b.low_is_half)
      narrow(p, static_cast<Half*>(b.low), b.n);
    else
      narrow(p, static_cast<Brain*>(b.low), b.n);
  }
}

template <class T>
using Wide = typename FloatCompute<T>::type;

// Parameters are stored as T, states as S.
template <class Rule, class T, class S = Wide<T>, bool kHasMaster = sizeof(T) == 2>
void step(const RuleBlock& b) {
  using C = Wide<T>;
  static_assert(Rule::kStates <= kMaxRuleStates && Rule::kConstants <= kMaxRuleConstants);
  T* const p = static_cast<T*>(b.parameter);
  const T* const g = static_cast<const T*>(b.gradient);
  float* const master = b.master;
  S* const s0 = static_cast<S*>(b.states[0]);
  S* const s1 = static_cast<S*>(b.states[1]);
  S* const s2 = static_cast<S*>(b.states[2]);
  const C r = C(b.rate_factor), d = C(b.decay_factor);
  const C scale = C(b.gradient_scale), decay = C(b.weight_decay) * d;
  C c[kMaxRuleConstants] = {};
  for (int k = 0; k < Rule::kConstants; ++k) c[k] = C(b.constants[k]);
#pragma GCC ivdep
  for (int64_t i = 0; i < b.n; ++i) {
    C value = widen(p[i]);
    if constexpr (kHasMaster) value = starting_value(master[i], p[i]);
    C s[kMaxRuleStates] = {};
    if constexpr (Rule::kStates > 0) s[0] = widen(s0[i]);
    if constexpr (Rule::kStates > 1) s[1] = widen(s1[i]);
    if constexpr (Rule::kStates > 2) s[2] = widen(s2[i]);
    Rule::step(c, r, d, rules::decayed(C(widen(g[i])), scale, decay, value), value, s);
    if constexpr (Rule::kStates > 0) s0[i] = Narrow<S>::from(s[0]);
    if constexpr (Rule::kStates > 1) s1[i] = Narrow<S>::from(s[1]);
    if constexpr (Rule::kStates > 2) s2[i] = Narrow<S>::from(s[2]);
    if constexpr (kHasMaster) master[i] = value;
    p[i] = Narrow<T>::from(value);
  }
  write_low<T>(b);
}

// In chunks, so that the loop has no dependence from one element to the next.
template <class T>
double squares(const void* values, int64_t n) {
  constexpr int kLanes = 8;
  const T* const v = static_cast<const T*>(values);
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k) lanes[k] += double(widen(v[i + k])) * double(widen(v[i + k]));
  for (; i < n; ++i) lanes[0] += double(widen(v[i])) * double(widen(v[i]));
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

// In chunks, whose directions are written side by side, so that both loops are vectorised.
template <class Rule, class T>
void step_squares(const RuleBlock& b, double* sums) {
  using C = typename FloatCompute<T>::type;
  constexpr int64_t kChunk = 256;
  C from[kChunk], steps[kChunk], c[kMaxRuleConstants] = {};
  const C scale = C(b.gradient_scale), d = C(b.decay_factor), decay = C(b.weight_decay) * d;
  for (int k = 0; k < Rule::kConstants; ++k) c[k] = C(b.constants[k]);
  for (int64_t begin = 0; begin < b.n; begin += kChunk) {
    const int64_t n = b.n - begin < kChunk ? b.n - begin : kChunk;
    const T* const p = static_cast<const T*>(b.parameter) + begin;
    const T* const g = static_cast<const T*>(b.gradient) + begin;
    for (int64_t i = 0; i < n; ++i) {
      C value = widen(p[i]), s[Rule::kStates];
      if constexpr (sizeof(T) == 2) value = starting_value(b.master[begin + i], p[i]);
      for (int k = 0; k < Rule::kStates; ++k) s[k] = static_cast<const C*>(b.states[k])[begin + i];
      from[i] = value;
      steps[i] =
          Rule::direction(c, d, rules::decayed(C(widen(g[i])), scale, decay, value), value, s);
    }
    sums[0] += squares<C>(from, n);
    sums[1] += squares<C>(steps, n);
  }
}

template <class Rule>
double ratio(const double* numbers, double parameter_norm, double gradient_norm) {
  return Rule::ratio(numbers, parameter_norm, gradient_norm);
}

template <class Rule>
void prepare(double rate, const double* numbers, double t, double* constants) {
  Rule::prepare(rate, numbers, t, constants);
}

// Infinity and NaN: all bits of the exponent are ones.
template <class Bits, Bits kExponent>
bool any_nonfinite(const void* values, int64_t n) {
  const Bits* bits = static_cast<const Bits*>(values);
  Bits found = 0;
  for (int64_t i = 0; i < n; ++i) found |= Bits((bits[i] & kExponent) == kExponent);
  return found != 0;
}

template <class Rule>
void fill_step_squares(RuleLoops& loops, int id) {
  if constexpr (Rule::kNormsOfSteps) {
    loops.step_squares[id][0] = &step_squares<Rule, Half>;
    loops.step_squares[id][1] = &step_squares<Rule, Brain>;
    loops.step_squares[id][2] = &step_squares<Rule, float>;
    loops.step_squares[id][3] = &step_squares<Rule, double>;
  }
}

template <class Rule>
void fill_formats(RuleLoops& loops, int id) {
  auto& wide = loops.step[id][int(RuleFormat::kWide)];
  wide[0] = &step<Rule, Half>;
  wide[1] = &step<Rule, Brain>;
  wide[2] = &step<Rule, float>;
  wide[3] = &step<Rule, double>;
  if constexpr (Rule::kAnyFormat) {
    auto& narrow = loops.step[id][int(RuleFormat::kNarrow)];
    narrow[0] = &step<Rule, Half, Brain>;
    narrow[1] = &step<Rule, Brain, Brain>;
    narrow[2] = &step<Rule, float, Brain>;
    auto& wide_alone = loops.step[id][int(RuleFormat::kWideAlone)];
    wide_alone[0] = &step<Rule, Half, float, false>;
    wide_alone[1] = &step<Rule, Brain, float, false>;
    auto& narrow_alone = loops.step[id][int(RuleFormat::kNarrowAlone)];
    narrow_alone[0] = &step<Rule, Half, Brain, false>;
    narrow_alone[1] = &step<Rule, Brain, Brain, false>;
  }
}

template <class Rule>
void fill_rule(RuleLoops& loops, int id) {
  fill_formats<Rule>(loops, id);
  fill_step_squares<Rule>(loops, id);
  loops.prepare[id] = &prepare<Rule>;
  loops.ratio[id] = &ratio<Rule>;
}

}  // namespace

namespace CATENA_ISA {

CATENA_LOOPS(optimizer) {
  static RuleLoops loops;
  int id = 0;
#define CATENA_RULE(functor, ...) fill_rule<rules::functor>(loops, id++);
#include "catena/kernels/detail/optimizer_rules.def"
#undef CATENA_RULE
  loops.squares[0] = &squares<Half>;
  loops.squares[1] = &squares<Brain>;
  loops.squares[2] = &squares<float>;
  loops.squares[3] = &squares<double>;
  loops.any_nonfinite[0] = &any_nonfinite<uint16_t, 0x7c00>;
  loops.any_nonfinite[1] = &any_nonfinite<uint16_t, 0x7f80>;
  loops.any_nonfinite[2] = &any_nonfinite<uint32_t, 0x7f800000>;
  loops.any_nonfinite[3] = &any_nonfinite<uint64_t, 0x7ff0000000000000>;
  tables.rules = &loops;
}

}  // namespace CATENA_ISA

}  // namespace catena::host
