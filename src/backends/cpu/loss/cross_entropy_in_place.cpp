// Softmax cross entropy whose gradient replaces the scores.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/common/family.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/kernels/loss.h"

namespace catena::host {
namespace {

constexpr int64_t kExpCost = 6;  // nanoseconds an element, estimated, for the number of threads

// The only number of a 0-d array, or `otherwise` without one.
template <class C>
C number(const Array* zero_d, C otherwise) {
  return zero_d ? Elements<C>(*zero_d, 1).at(0) : otherwise;
}

// The first element of a sample of (outer, classes, inner).
int64_t first_of(const Array& x, int64_t sample) {
  const int64_t classes = x.shape()[1], inner = x.shape()[2];
  return sample / inner * classes * inner + sample % inner;
}

// An infinite loss that weighs nothing counts 0.
template <class C>
C product(C weight, C loss) {
  return weight == 0 && std::isinf(loss) ? C(0) : weight * loss;
}

template <class C>
void count_labels(const CrossEntropyInPlaceCall& call) {
  const int32_t* t = call.t.data<int32_t>();
  const int64_t valid = call.t.size() - std::count(t, t + call.t.size(), call.ignore_label);
  if (call.counted) *call.counted->data<C>() = C(valid);
  *call.divisor->data<C>() = C(std::max<int64_t>(1, call.normalize ? valid : call.x.shape()[0]));
}

// The samples of one call.
template <class C>
class Samples {
 public:
  explicit Samples(const CrossEntropyInPlaceCall& call)
      : call_(call),
        n_(call.x.shape()[1]),
        labels_(call.labels > 0 ? call.labels : n_),
        step_(call.x.shape()[2]),
        total_(number(call.total, C(0))),
        scale_(number(call.gloss, C(1)) / number(call.divisor, C(1))),
        z_(C(call.z_loss)),
        weights_(call.weights ? call.weights->data<C>() : nullptr),
        factors_(call.factors ? call.factors->data<C>() : nullptr),
        spread_(call.spread ? call.spread->data<C>() : nullptr) {}

  void run(int64_t begin, int64_t end) const {
    Elements<C> rows(call_.x, n_);
    for (int64_t s = begin; s < end; ++s) {
      const int64_t first = first_of(call_.x, s);
      const int32_t label = call_.t.data<int32_t>()[s];
      if (label == call_.ignore_label) {
        call_.losses.data<C>()[s] = C(0);
        std::fill_n(rows.write(first, step_), n_, C(0));
      } else {
        one(s, label, rows.read(first, step_, n_));
      }
      rows.commit(first, step_, n_);
    }
  }

 private:
  // x: the scores, which the gradient replaces. One exponential an element gives the sum and,
  // scaled, the gradient.
  void one(int64_t s, int64_t label, C* x) const {
    const SoftmaxLoops<C>& f = softmax_loops<C>();
    const C w = weights_ ? weights_[s] : C(1), largest = f.max(x, n_);
    const bool known = label >= 0 && label < labels_;
    const C picked = known ? x[label] : std::numeric_limits<C>::quiet_NaN();
    double below = 0;
    if (spread_)
      for (int64_t c = 0; c < n_; ++c) below += product(double(spread_[c]), double(largest - x[c]));
    const C sum = f.exp_shifted(x, largest, x, n_), log_sum = std::log(sum);
    C loss = product(w, (largest - picked) + log_sum);
    if (spread_) loss += C(below) + total_ * log_sum;
    C all = w + total_;
    if (z_ != 0) {
      const C lse = largest + log_sum;
      loss += z_ * lse * lse;
      all += 2 * z_ * lse;
    }
    call_.losses.data<C>()[s] = loss;
    if (call_.losses_only) return;
    const C scale = factors_ ? scale_ * factors_[s] : scale_;
    f.scale(x, all * scale / sum, n_);
    if (known) x[label] -= w * scale;
    if (spread_)
      for (int64_t c = 0; c < n_; ++c) x[c] -= spread_[c] * scale;
  }

  const CrossEntropyInPlaceCall& call_;
  int64_t n_, labels_, step_;
  C total_, scale_, z_;
  const C* weights_;
  const C* factors_;
  const C* spread_;
};

// In order and in double, so that the loss does not depend on the number of threads.
template <class C>
void sum_losses(const CrossEntropyInPlaceCall& call) {
  double sum = 0;
  for (int64_t s = 0; s < call.losses.size(); ++s) sum += double(call.losses.data<C>()[s]);
  Elements<C> out(*call.loss, 1);
  *out.write(0, 1) = C(sum / double(number(call.divisor, C(1))));
  out.commit(0, 1, 1);
}

void cross_entropy_in_place(const CrossEntropyInPlaceCall& call) {
  visit_compute(call.x.dtype(), [&]<class C>(TypeTag<C>) {
    if (call.counts) count_labels<C>(call);
    const Samples<C> samples(call);
    parallel_ranges(call.t.size(), 1, threads_for(call.x.size() * kExpCost),
                    [&](int64_t begin, int64_t end) { samples.run(begin, end); });
    if (call.loss) sum_losses<C>(call);
  });
}

template <class C>
void scale_rows(const ScaleSamplesCall& call) {
  const auto& [x, factors, expected_factor] = call;
  const int64_t n = x.shape()[1], step = x.shape()[2], samples = x.shape()[0] * step;
  const C expected = number(expected_factor, C(1));
  const bool single = factors.ndim() == 0;
  if (single && number(&factors, C(1)) == expected) return;
  parallel_ranges(samples, 1, threads_for(x.size()), [&](int64_t begin, int64_t end) {
    Elements<C> in(x, n), out(x, n);
    const Elements<C> given(factors, 1);
    for (int64_t s = begin; s < end; ++s) {
      const C factor = given.at(single ? 0 : s);
      if (factor == expected) continue;
      const int64_t first = first_of(x, s);
      const C* from = in.read(first, step, n);
      C* to = out.write(first, step);
      for (int64_t c = 0; c < n; ++c) to[c] = from[c] * (factor / expected);
      out.commit(first, step, n);
    }
  });
}

void scale_samples(const ScaleSamplesCall& call) {
  visit_compute(call.x.dtype(), [&]<class C>(TypeTag<C>) { scale_rows<C>(call); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, cross_entropy_in_place) {
  kernels::softmax_cross_entropy_in_place.provide<&host::cross_entropy_in_place>(DeviceType::kCpu,
                                                                                 "cpu");
  kernels::scale_samples.provide<&host::scale_samples>(DeviceType::kCpu, "cpu");
}
