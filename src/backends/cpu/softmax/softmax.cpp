// Softmax, cross entropy and accuracy over the middle axis of (outer, classes, inner).
#include <cmath>
#include <limits>

#include "backends/common/family.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/reduce/reduce.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/loss.h"
#include "catena/kernels/reduce.h"
#include "catena/kernels/softmax.h"

namespace catena::host {

namespace {

constexpr int64_t kExpCost = 4;  // nanoseconds an element, estimated, for the number of threads

// Rows of (outer, classes, inner): sample s = outer * inner + j starts at first(s).
struct Rows {
  explicit Rows(const Array& x)
      : count(x.shape()[0] * x.shape()[2]), classes(x.shape()[1]), inner(x.shape()[2]) {}
  int64_t first(int64_t sample) const { return sample / inner * classes * inner + sample % inner; }
  // Calls body(begin, end) over ranges of samples.
  template <class F>
  void parallel(const F& body) const {
    parallel_ranges(count, 1, threads_for(count * classes * kExpCost), body);
  }

  int64_t count, classes, inner;
};

template <class C>
void softmax_rows(const Array& x, bool log, const Array& y) {
  const SoftmaxLoops<C>& f = softmax_loops<C>();
  const Rows rows(x);
  const int64_t n = rows.classes, step = rows.inner;
  rows.parallel([&](int64_t begin, int64_t end) {
    Elements<C> in(x, n), out(y, n);
    for (int64_t s = begin; s < end; ++s) {
      const int64_t first = rows.first(s);
      const C* from = in.read(first, step, n);
      C* to = out.write(first, step);
      const C shift = f.max(from, n);
      if (log) {
        f.subtract(from, shift, std::log(f.sum_exp_shifted(from, shift, n)), to, n);
      } else {
        const C sum = f.exp_shifted(from, shift, to, n);
        f.scale(to, C(1) / sum, n);
      }
      out.commit(first, step, n);
    }
  });
}

template <class C>
void softmax_grad_rows(const Array& y, const Array& gy, bool log, const Array& gx) {
  const SoftmaxLoops<C>& f = softmax_loops<C>();
  const Rows rows(y);
  const int64_t n = rows.classes, step = rows.inner;
  rows.parallel([&](int64_t begin, int64_t end) {
    Elements<C> y_in(y, n), gy_in(gy, n), out(gx, n);
    for (int64_t s = begin; s < end; ++s) {
      const int64_t first = rows.first(s);
      const C *a = y_in.read(first, step, n), *b = gy_in.read(first, step, n);
      C* to = out.write(first, step);
      if (log)
        f.log_gradient(a, b, f.sum(b, n), to, n);
      else
        f.gradient(a, b, f.dot(a, b, n), to, n);
      out.commit(first, step, n);
    }
  });
}

void store_number(const Array& zero_d, double value) {
  visit_float("softmax_cross_entropy", zero_d.dtype(),
              [&]<class T>(TypeTag<T>) { *zero_d.data<T>() = T(value); });
}

template <class C>
void cross_entropy_rows(const CrossEntropyCall& call) {
  const SoftmaxLoops<C>& f = softmax_loops<C>();
  const Rows rows(*call.x);
  const int64_t n = rows.classes, step = rows.inner;
  C *largest = call.lse->data<C>(), *log_sum = largest + rows.count;
  rows.parallel([&](int64_t begin, int64_t end) {
    Elements<C> in(*call.x, n);
    for (int64_t s = begin; s < end; ++s) {
      const C* from = in.read(rows.first(s), step, n);
      const C shift = f.max(from, n);
      largest[s] = shift;
      log_sum[s] = std::log(f.sum_exp_shifted(from, shift, n));
    }
  });
  // Summed in order and in double, so the loss does not depend on the number of threads.
  const Elements<C> in(*call.x, n);
  const int32_t* t = call.t->data<int32_t>();
  double loss = 0;
  int64_t valid = 0;
  for (int64_t s = 0; s < rows.count; ++s) {
    if (t[s] == call.ignore_label) continue;
    ++valid;
    if (t[s] < 0 || t[s] >= n)
      loss = std::numeric_limits<double>::quiet_NaN();
    else
      loss +=
          (double(largest[s]) - double(in.at(rows.first(s) + t[s] * step))) + double(log_sum[s]);
  }
  const int64_t divisor = std::max<int64_t>(1, call.normalize ? valid : call.x->shape()[0]);
  *call.count->data<C>() = C(divisor);
  if (call.counted) *call.counted->data<C>() = C(valid);
  store_number(*call.loss, loss / double(divisor));
}

// What a sample's probabilities, its label and the spread over all classes weigh in its gradient.
template <class C>
class SampleFactors {
 public:
  explicit SampleFactors(const CrossEntropyGradCall& call)
      : spread_(call.spread ? call.spread->data<C>() : nullptr),
        factors_(call.factors ? call.factors->data<C>() : nullptr),
        samples_(call.forward.t->size()),
        common_(factors_ ? C(0)
                         : Elements<C>(call.gloss, 1).at(0) / *call.forward.count->data<C>()) {}
  C all(int64_t sample) const { return factors_ ? factors_[sample] : common_; }
  C label(int64_t sample) const { return spread_ ? factors_[samples_ + sample] : all(sample); }
  // gx -= spread * the sample's factor
  void subtract_spread(int64_t sample, C* gx, int64_t n) const {
    if (spread_ == nullptr) return;
    const C factor = factors_[2 * samples_ + sample];
    for (int64_t c = 0; c < n; ++c) gx[c] -= spread_[c] * factor;
  }

 private:
  const C* spread_;
  const C* factors_;
  int64_t samples_;
  C common_;
};

template <class C>
void cross_entropy_grad_rows(const CrossEntropyGradCall& grad) {
  const SoftmaxLoops<C>& f = softmax_loops<C>();
  const CrossEntropyCall& call = grad.forward;
  const Rows rows(*call.x);
  const int64_t n = rows.classes, step = rows.inner;
  const C *largest = call.lse->data<C>(), *log_sum = largest + rows.count;
  const int32_t* t = call.t->data<int32_t>();
  const SampleFactors<C> factors(grad);
  rows.parallel([&](int64_t begin, int64_t end) {
    Elements<C> in(*call.x, n), out(grad.gx, n);
    for (int64_t s = begin; s < end; ++s) {
      const int64_t first = rows.first(s);
      C* to = out.write(first, step);
      if (t[s] == call.ignore_label) {
        std::fill_n(to, n, C(0));
      } else {
        f.cross_entropy_gradient(in.read(first, step, n), largest[s], log_sum[s], factors.all(s),
                                 to, n);
        if (t[s] >= 0 && t[s] < n) to[t[s]] -= factors.label(s);
        factors.subtract_spread(s, to, n);
      }
      out.commit(first, step, n);
    }
  });
}

// The position counts elements in C order.
bool is_nan_at(const Array& x, int64_t position) {
  bool nan = false;
  visit_compute(x.dtype(), [&](auto tag) {
    const auto v = Elements<typename decltype(tag)::type>(x, 1).at(position);
    nan = v != v;
  });
  return nan;
}

void softmax(const SoftmaxCall& call) {
  const auto& [x, log, y] = call;
  visit_compute(x.dtype(), [&]<class C>(TypeTag<C>) { softmax_rows<C>(x, log, y); });
}
void softmax_grad(const SoftmaxGradCall& call) {
  const auto& [y, gy, log, gx] = call;
  visit_compute(y.dtype(), [&]<class C>(TypeTag<C>) { softmax_grad_rows<C>(y, gy, log, gx); });
}
void softmax_cross_entropy(const CrossEntropyCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { cross_entropy_rows<C>(call); });
}
void softmax_cross_entropy_grad(const CrossEntropyGradCall& call) {
  visit_compute(call.forward.x->dtype(),
                [&]<class C>(TypeTag<C>) { cross_entropy_grad_rows<C>(call); });
}

void accuracy(const AccuracyCall& call) {
  const auto& [x, t, has_ignore, ignore_label, result] = call;
  const Rows rows(x);
  const Array positions =
      Array::uninitialized({x.shape()[0], 1, x.shape()[2]}, Dtype::kInt64, x.device());
  if (rows.count > 0) arg_reduce({true, &x, 1, &positions});
  const int64_t* best = positions.data<int64_t>();
  const int32_t* labels = t.data<int32_t>();
  int64_t correct = 0, valid = 0;
  for (int64_t s = 0; s < rows.count; ++s) {
    if (has_ignore && labels[s] == ignore_label) continue;
    ++valid;
    correct += best[s] == labels[s] && !is_nan_at(x, rows.first(s) + best[s] * rows.inner);
  }
  store_number(result, double(correct) / double(std::max<int64_t>(1, valid)));
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, softmax) {
  kernels::softmax.provide<&host::softmax>(DeviceType::kCpu, "cpu");
  kernels::softmax_grad.provide<&host::softmax_grad>(DeviceType::kCpu, "cpu");
  kernels::softmax_cross_entropy.provide<&host::softmax_cross_entropy>(DeviceType::kCpu, "cpu");
  kernels::softmax_cross_entropy_grad.provide<&host::softmax_cross_entropy_grad>(DeviceType::kCpu,
                                                                                 "cpu");
  kernels::accuracy.provide<&host::accuracy>(DeviceType::kCpu, "cpu");
}
