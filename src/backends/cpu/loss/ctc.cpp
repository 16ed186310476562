// Connectionist temporal classification, a sample at a time, in logarithms.
#include <cmath>
#include <limits>
#include <vector>

#include "backends/common/family.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/ctc.h"

namespace catena::host {

namespace {

template <class C>
constexpr C kImpossible = -std::numeric_limits<C>::infinity();
constexpr int64_t kClassCost = 8, kPositionCost = 40;  // nanoseconds, estimated

// exp(v - most), which is often known without the function.
template <class C>
C share(C v, C most) {
  if (v == most) return 1;
  return v == kImpossible<C> ? C(0) : std::exp(v - most);
}
// log(exp(a) + exp(b) + exp(c)).
template <class C>
C log_add(C a, C b, C c) {
  const C most = std::max(a, std::max(b, c));
  if (most == kImpossible<C>) return most;
  return most + std::log(share(a, most) + share(b, most) + share(c, most));
}

// One sample of the call.
template <class C>
class Sample {
 public:
  Sample(const CtcCall& call, int64_t i)
      : batch_(call.x->shape()[1]),
        classes_(call.x->shape()[2]),
        i_(i),
        blank_(call.blank),
        all_steps_(call.x->shape()[0]),
        stride_(call.alpha->shape()[2]),
        t_(call.t->data<int32_t>() + i * call.t->shape()[1]),
        norms_(call.norms->data<C>()),
        alpha_(call.alpha->data<C>() + i * all_steps_ * stride_) {
    const int64_t most = call.t->shape()[1];
    steps = call.input_lengths ? call.input_lengths->data<int32_t>()[i] : all_steps_;
    const int64_t labels = call.label_lengths ? call.label_lengths->data<int32_t>()[i] : most;
    positions = 2 * labels + 1;
    valid = steps >= 0 && steps <= all_steps_ && labels >= 0 && labels <= most;
    for (int64_t k = 0; valid && k < labels; ++k)
      valid = t_[k] >= 0 && t_[k] < classes_ && t_[k] != blank_;
  }

  int64_t row(int64_t step) const { return (step * batch_ + i_) * classes_; }
  int64_t class_of(int64_t s) const { return s % 2 == 0 ? blank_ : t_[s / 2]; }
  // Whether a path may go from position s - 2 to s.
  bool skips(int64_t s) const { return s % 2 == 1 && s > 1 && t_[s / 2] != t_[s / 2 - 1]; }
  C* alpha(int64_t step) const { return alpha_ + step * stride_; }
  C& largest(int64_t step) const { return norms_[step * batch_ + i_]; }
  C& log_sum(int64_t step) const { return norms_[(all_steps_ + step) * batch_ + i_]; }
  // Logarithms of the probabilities at all positions.
  void emit(const C* scores, int64_t step, C* logs) const {
    for (int64_t s = 0; s < positions; ++s)
      logs[s] = (scores[class_of(s)] - largest(step)) - log_sum(step);
  }

  int64_t steps, positions;
  bool valid;

 private:
  int64_t batch_, classes_, i_, blank_, all_steps_, stride_;
  const int32_t* t_;
  C *norms_, *alpha_;
};

// -log P of the sample.
template <class C>
C sample_loss(const CtcCall& call, int64_t i) {
  const Sample<C> sample(call, i);
  if (!sample.valid) return std::numeric_limits<C>::quiet_NaN();
  const int64_t n = sample.positions, classes = call.x->shape()[2];
  Elements<C> x(*call.x, classes);
  std::vector<C> emitted(static_cast<size_t>(n));
  for (int64_t k = 0; k < sample.steps; ++k) {
    const C* const scores = x.read(sample.row(k), 1, classes);
    sample.largest(k) = softmax_loops<C>().max(scores, classes);
    sample.log_sum(k) =
        std::log(softmax_loops<C>().sum_exp_shifted(scores, sample.largest(k), classes));
    sample.emit(scores, k, emitted.data());
    C* const to = sample.alpha(k);
    for (int64_t s = 0; s < n; ++s) {
      C before = s < 2 ? C(0) : kImpossible<C>;
      if (k > 0) {
        const C* const from = sample.alpha(k - 1);
        before = log_add(from[s], s > 0 ? from[s - 1] : kImpossible<C>,
                         sample.skips(s) ? from[s - 2] : kImpossible<C>);
      }
      to[s] = before + emitted[size_t(s)];
    }
  }
  if (sample.steps == 0) return n == 1 ? C(0) : -kImpossible<C>;
  const C* const last = sample.alpha(sample.steps - 1);
  return -log_add(last[n - 1], n > 1 ? last[n - 2] : kImpossible<C>, kImpossible<C>);
}

template <class C>
void forward(const CtcCall& call) {
  const int64_t steps = call.x->shape()[0], batch = call.x->shape()[1];
  const int64_t cost = call.x->shape()[2] * kClassCost + call.alpha->shape()[2] * kPositionCost;
  C* const losses = call.losses->data<C>();
  parallel_for(batch, threads_for(batch * steps * cost),
               [&](int64_t i) { losses[i] = sample_loss<C>(call, i); });
  Elements<C> result(*call.loss, batch);
  if (call.loss->ndim() == 1) {
    std::copy_n(losses, batch, result.write(0, 1));
    return result.commit(0, 1, batch);
  }
  double sum = 0;
  for (int64_t i = 0; i < batch; ++i) sum += double(losses[i]);
  *result.write(0, 1) = C(sum * call.factor);
  result.commit(0, 1, 1);
}

// beta: logarithms of the probability that a path goes on from a position of the step, and ends.
// `emitted` are those of the step after it.
template <class C>
void step_back(const Sample<C>& sample, const C* after, const C* emitted, C* beta) {
  const int64_t n = sample.positions;
  const auto next = [&](int64_t s) { return after[s] + emitted[s]; };
  for (int64_t s = 0; s < n; ++s)
    beta[s] = log_add(next(s), s + 1 < n ? next(s + 1) : kImpossible<C>,
                      s + 2 < n && sample.skips(s + 2) ? next(s + 2) : kImpossible<C>);
}

template <class C>
void sample_gradient(const CtcGradCall& call, int64_t i, C scale) {
  const CtcCall& forward = call.forward;
  const int64_t all = forward.x->shape()[0], classes = forward.x->shape()[2];
  const Sample<C> sample(forward, i);
  const C loss = forward.losses->data<C>()[i];
  const int64_t steps = sample.valid && loss != -kImpossible<C> ? sample.steps : 0;
  const auto n = static_cast<size_t>(sample.valid ? sample.positions : 0);
  Elements<C> x(*forward.x, classes), gx(call.gx, classes);
  std::vector<C> beta(n, kImpossible<C>), after(n), emitted(n);
  for (size_t s = n - std::min<size_t>(n, 2); s < n; ++s) beta[s] = 0;
  for (int64_t k = all - 1; k >= 0; --k) {
    C* const to = gx.write(sample.row(k), 1);
    if (k >= steps) {
      std::fill_n(to, classes, C(0));
    } else {
      if (k + 1 < steps) {
        after.swap(beta);
        step_back(sample, after.data(), emitted.data(), beta.data());
      }
      const C* const scores = x.read(sample.row(k), 1, classes);
      sample.emit(scores, k, emitted.data());
      const C sum = softmax_loops<C>().exp_shifted(scores, sample.largest(k), to, classes);
      softmax_loops<C>().scale(to, 1 / sum, classes);
      for (size_t s = 0; s < n; ++s)
        to[sample.class_of(int64_t(s))] -= std::exp((sample.alpha(k)[s] + beta[s]) + loss);
      softmax_loops<C>().scale(to, scale, classes);
    }
    gx.commit(sample.row(k), 1, classes);
  }
}

template <class C>
void backward(const CtcGradCall& call) {
  const CtcCall& forward = call.forward;
  const int64_t batch = forward.x->shape()[1];
  const int64_t cost =
      forward.x->shape()[2] * kClassCost + forward.alpha->shape()[2] * 2 * kPositionCost;
  const Elements<C> gloss(call.gloss, 1);
  const bool one_each = call.gloss.ndim() == 1;
  parallel_for(batch, threads_for(batch * forward.x->shape()[0] * cost), [&](int64_t i) {
    const C scale = one_each ? gloss.at(i) : gloss.at(0) * C(forward.factor);
    sample_gradient<C>(call, i, scale);
  });
}

void ctc(const CtcCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { forward<C>(call); });
}
void ctc_grad(const CtcGradCall& call) {
  visit_compute(call.gx.dtype(), [&]<class C>(TypeTag<C>) { backward<C>(call); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, ctc) {
  kernels::ctc.provide<&host::ctc>(DeviceType::kCpu, "cpu");
  kernels::ctc_grad.provide<&host::ctc_grad>(DeviceType::kCpu, "cpu");
}
