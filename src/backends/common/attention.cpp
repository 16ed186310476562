// Attention with its scores in memory, as products and element-wise operations: for devices without
// a kernel of their own, and a reference for those with one.
#include "catena/kernels/attention.h"

#include <limits>

#include "array/allowed_keys.h"
#include "backends/common/family.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "core/compute_dtype.h"

namespace catena {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

// Scores and their parts in the compute type.
class ComposedAttention {
 public:
  explicit ComposedAttention(const AttentionCall& call)
      : call_(call),
        batch_(call.q->shape()[0]),
        heads_(call.q->shape()[1]),
        groups_(call.k->shape()[1]),
        queries_(call.q->shape()[2]),
        keys_(call.k->shape()[2]),
        q_(by_groups(*call.q)),
        k_(stacked(read(*call.k))),
        v_(stacked(read(*call.v))) {
    scores_ = of_heads(matmul(q_ * call.scale, k_.swapaxes(1, 2)), keys_);
    if (call.softcap > 0) {
      tanh_ = tanh(scores_ / call.softcap);
      scores_ = tanh_ * call.softcap;
    }
    if (call.bias) scores_ = scores_ + call.bias->astype(scores_.dtype(), false);
    scores_ = where(allowed_keys(call), scores_, kNothing);
  }

  void forward() const {
    const Array largest = amax(scores_, {3}, true);
    const Array shift = where(equal(largest, kNothing), 0, largest);
    const Array p = exp(scores_ - shift), total = sum(p, {3}, true);
    (*call_.norms)(0).assign(largest.squeeze({3}));
    (*call_.norms)(1).assign(log(where(equal(total, 0), 1, total)).squeeze({3}));
    const Array weights = dropped(p / where(equal(total, 0), 1, total));
    call_.out->assign(of_heads(matmul(grouped(weights), v_), v_.shape()[2]));
  }

  void backward(const AttentionGradCall& grad) const {
    const Array gout = grad.gout->astype(scores_.dtype(), false),
                out = call_.out->astype(scores_.dtype(), false);
    Array row = sum(gout * out, {3}, true);
    if (grad.glog_sum) row = row - grad.glog_sum->expand_dims(3);
    const Array largest = (*call_.norms)(0).expand_dims(3), rest = (*call_.norms)(1).expand_dims(3);
    const Array p = where(equal(largest, kNothing), 0, exp(scores_ - largest - rest));
    const Array g = grouped(gout);
    const Array gp = dropped(of_heads(matmul(g, v_.swapaxes(1, 2)), keys_));
    Array gscores = where(equal(p, 0), 0, p * (gp - row));
    if (grad.gbias) give_bias(gscores, *grad.gbias);
    if (tanh_.defined()) gscores = gscores * (1 - tanh_ * tanh_);
    const Array gs = grouped(gscores);
    grad.gv->assign(matmul(grouped(dropped(p)).swapaxes(1, 2), g).reshape(grad.gv->shape()));
    grad.gk->assign((matmul(gs.swapaxes(1, 2), q_) * call_.scale).reshape(grad.gk->shape()));
    grad.gq->assign(of_heads(matmul(gs, k_) * call_.scale, q_.shape()[2]));
  }

 private:
  // Without what is behind key_lengths, which may be anything.
  Array read(const Array& a) const {
    return call_.rules.key_lengths ? where(keys_within_lengths(call_), a, 0) : a;
  }
  Array wide(const Array& a) const { return a.astype(compute_dtype(a.dtype()), false, 'C'); }
  // (batch * groups, heads of a group * queries, n) of (batch, heads, queries, n): those heads
  // attend to the same keys.
  Array grouped(const Array& a) const {
    return a.contiguous().reshape({batch_ * groups_, heads_ / groups_ * queries_, a.shape()[3]});
  }
  Array by_groups(const Array& a) const { return grouped(wide(a)); }
  Array of_heads(const Array& a, int64_t n) const {
    return a.reshape({batch_, heads_, queries_, n});
  }
  Array stacked(const Array& a) const {
    return wide(a).contiguous().reshape({batch_ * groups_, keys_, a.shape()[3]});
  }

  // What dropout leaves of an array of the scores' shape.
  Array dropped(const Array& a) const {
    if (call_.dropout == 0) return a;
    const Array x = a.contiguous(), y = empty_like(x);
    kernels::dropout(x.device(), {x, call_.dropout, 1 / (1 - call_.dropout), call_.bits, y});
    return y;
  }

  static void give_bias(const Array& gscores, const Array& gbias) {
    Axes axes;
    for (int i = 0; i < 4; ++i)
      if (gbias.shape()[size_t(i)] == 1 && gscores.shape()[size_t(i)] > 1) axes.push_back(i);
    gbias.assign(axes.empty() ? gscores : sum(gscores, axes, true));
  }

  const AttentionCall& call_;
  const int64_t batch_, heads_, groups_, queries_, keys_;
  const Array q_, k_, v_;
  Array scores_, tanh_;
};

bool has_no_keys(const AttentionCall& call) { return call.k->shape()[2] == 0; }

void attention(const AttentionCall& call) {
  if (!has_no_keys(call)) return ComposedAttention(call).forward();
  call.out->fill(0);
  (*call.norms)(0).fill(kNothing);
  (*call.norms)(1).fill(0);
}

void attention_grad(const AttentionGradCall& grad) {
  if (!has_no_keys(grad.forward)) return ComposedAttention(grad.forward).backward(grad);
  grad.gq->fill(0);
  if (grad.gbias) grad.gbias->fill(0);
}

}  // namespace
}  // namespace catena

CATENA_COMPOSED_FAMILY(attention) {
  kernels::attention.provide<&attention>(type, "composed", -1);
  kernels::attention_grad.provide<&attention_grad>(type, "composed", -1);
}
