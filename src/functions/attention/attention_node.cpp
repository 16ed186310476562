// The node of attention: one kernel each way, which keeps two numbers for each query; gradients of
// higher order by products with scores in memory.
#include <limits>

#include "array/allowed_keys.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/autograd/kept_results.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/array/broadcast.h"
#include "catena/functions/array/cast.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/math.h"
#include "catena/functions/math/matmul.h"
#include "catena/functions/math/sum.h"
#include "functions/attention/attention_operands.h"
#include "functions/common/support.h"

namespace catena::functions {

using Operand = AttentionOperand;

AttentionCall AttentionArrays::call(const AttentionNumbers& n, const Array& out,
                                    const Array& norms) {
  const Shape shape = scores();
  const auto broadcast = [&](Operand operand) {
    const Array* a = given(operand);
    return a == nullptr ? Array() : a->broadcast_to(shape);
  };
  mask_ = broadcast(Operand::kMask);
  bias_ = broadcast(Operand::kBias);
  return {.q = given(Operand::kQ),
          .k = given(Operand::kK),
          .v = given(Operand::kV),
          .mask = mask_.defined() ? &mask_ : nullptr,
          .bias = bias_.defined() ? &bias_ : nullptr,
          .rules = {.causal = n.causal,
                    .window = n.window,
                    .key_lengths = given(Operand::kKeyLengths),
                    .query_start = given(Operand::kQueryStart),
                    .query_documents = given(Operand::kDocuments),
                    .key_documents = given(Operand::kKeyDocuments)},
          .scale = n.scale,
          .softcap = n.softcap,
          .dropout = n.dropout,
          .bits = n.bits,
          .out = &out,
          .norms = &norms};
}

Shape AttentionArrays::scores() const {
  const Shape &q = (*this)[Operand::kQ].shape(), &k = (*this)[Operand::kK].shape();
  return {q[0], q[1], q[2], k[2]};
}

namespace {

Array uninitialized_like(const Array& a) {
  return Array::uninitialized(a.shape(), a.dtype(), a.device(), a.order());
}

struct HeadGradients {
  Array q, k, v;
};

// Columns of the (batch, positions, columns) array of which q, k and v are slices, one behind the
// other; 0 if they are not.
int64_t columns_of_projection(const AttentionCall& call) {
  const Array &q = *call.q, &k = *call.k, &v = *call.v;
  const Shape& of_q = q.shape();
  const int64_t positions = of_q[2], depth = of_q[3], groups = k.shape()[1];
  const int64_t columns = (of_q[1] + 2 * groups) * depth, size = q.itemsize();
  if (k.shape() != v.shape() || k.shape()[2] != positions || v.shape()[3] != depth) return 0;
  const Strides strides{positions * columns * size, depth * size, columns * size, size};
  const auto* next = static_cast<const char*>(q.raw_data());
  for (const Array* a : {&q, &k, &v}) {
    if (a->storage() != q.storage() || a->raw_data() != next) return 0;
    for (size_t i = 0; i < 4; ++i)
      if (a->shape()[i] > 1 && a->strides()[i] != strides[i]) return 0;
    next += a->shape()[1] * depth * size;
  }
  return columns;
}

// Memory for the gradients: of slices of one projection in slices of one array, which is the
// projection's gradient without a copy.
HeadGradients make_gradients(const AttentionCall& call) {
  const Array &q = *call.q, &k = *call.k, &v = *call.v;
  if (call.out->size() == 0) return {zeros_like(q), zeros_like(k), zeros_like(v)};
  const int64_t columns = columns_of_projection(call);
  if (columns == 0) return {uninitialized_like(q), uninitialized_like(k), uninitialized_like(v)};
  const int64_t batch = q.shape()[0], positions = q.shape()[2], depth = q.shape()[3];
  const Array all =
      Array::uninitialized({batch, positions, columns / depth, depth}, q.dtype(), q.device());
  int64_t first = 0;
  const auto next = [&](int64_t heads) {
    const Slice own(first, first + heads);
    first += heads;
    return all.at({Slice(), Slice(), own}).transpose({0, 2, 1, 3});
  };
  const int64_t groups = k.shape()[1];
  HeadGradients made;
  made.q = next(q.shape()[1]);
  made.k = next(groups);
  made.v = next(groups);
  return made;
}

// The gradients on variables. Heads of a group attend to the same keys: their queries are rows of
// one matrix.
class RecordedGradients {
 public:
  RecordedGradients(const AttentionCall& call, const Variable& q, const Variable& k,
                    const Variable& v, const Variable& bias)
      : call_(call),
        wide_(compute_dtype(q.dtype())),
        q_(grouped(q)),
        k_(stacked(read(k))),
        v_(stacked(read(v))) {
    Variable scores = of_heads(batch_matmul(q_, k_, false, true) * call.scale);
    if (call.softcap > 0) {
      tanh_ = tanh(scores / call.softcap);
      scores = tanh_ * call.softcap;
    }
    if (bias.defined()) scores = scores + cast(bias, wide_);
    Array allowed = allowed_keys(call);
    if (call.bias) allowed = logical_and(allowed, greater(*call.bias, kNothing));
    // Rows of zeros where there is no key at all.
    const Array rest = catena::where(any(allowed, {3}, true), kNothing, 0.0).astype(wide_);
    p_ = softmax(where(Variable::constant(allowed), scores, rest), 3) *
         Variable::constant(allowed.astype(wide_));
    if (call.dropout > 0) keep_ = Variable::constant(kept());
  }

  // Of y and log_sum_exp, either of which may be undefined.
  void run(const Variable& gy, const Variable& glog_sum) {
    const Variable g = gy.defined() ? grouped(gy) : Variable();
    if (g.defined()) {
      gv = batch_matmul(grouped(dropped(p_)), g, true, false);
      gscores_ = dropped(of_heads(batch_matmul(g, v_, false, true)));
      gscores_ = gscores_ - sum(p_ * gscores_, {3}, true);
    }
    if (glog_sum.defined()) {
      const Variable own = expand_dims(glog_sum, 3);
      gscores_ = gscores_.defined() ? gscores_ + own : own;
    }
    gscores_ = p_ * gscores_;
    gbias = gscores_;
    if (tanh_.defined()) gscores_ = gscores_ * (1 - tanh_ * tanh_);
    const Variable gs = grouped(gscores_);
    gq = batch_matmul(gs, k_) * call_.scale;
    gk = batch_matmul(gs, q_, true, false) * call_.scale;
  }

  Variable gq, gk, gv, gbias;  // undefined: 0

 private:
  static constexpr double kNothing = -std::numeric_limits<double>::infinity();

  int64_t groups() const { return call_.q->shape()[0] * call_.k->shape()[1]; }
  Variable grouped(const Variable& a) const {
    const Shape& shape = a.shape();
    return reshape(cast(a, wide_), {groups(), shape[0] * shape[1] * shape[2] / groups(), shape[3]});
  }
  // Without what is behind key_lengths, which may be anything.
  Variable read(const Variable& a) const {
    if (call_.rules.key_lengths == nullptr) return a;
    return where(Variable::constant(keys_within_lengths(call_)), a, 0.0);
  }
  Variable stacked(const Variable& a) const {
    return reshape(cast(a, wide_), {groups(), a.shape()[2], a.shape()[3]});
  }
  Variable of_heads(const Variable& a) const {
    const Shape& q = call_.q->shape();
    return reshape(a, {q[0], q[1], q[2], call_.k->shape()[2]});
  }
  Variable dropped(const Variable& a) const { return keep_.defined() ? a * keep_ : a; }
  Array kept() const {
    const Array x = ones(p_.shape(), {wide_, p_.device()}), y = empty_like(x);
    kernels::dropout(x.device(), {x, call_.dropout, 1 / (1 - call_.dropout), call_.bits, y});
    return y;
  }

  const AttentionCall& call_;
  const Dtype wide_;
  const Variable q_, k_, v_;
  Variable tanh_, p_, keep_, gscores_;
};

// Saves all operands and y.
class AttentionNode final : public FunctionNode {
 public:
  AttentionNode(const AttentionPlaces& places, const AttentionNumbers& numbers, const Array& norms,
                bool with_statistics)
      : places_(places), numbers_(numbers), norms_(norms), with_statistics_(with_statistics) {}
  std::string label() const override { return kAttention; }
  // One kernel makes all gradients.
  bool splits() const override { return false; }

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output(0),
                   glog_sum = with_statistics_ ? context.grad_output(1) : Variable();
    if (!gy.defined() && !glog_sum.defined()) return;
    Variable operands[kAttentionOperands];
    AttentionArrays arrays;
    for (size_t i = 0; i < kAttentionOperands; ++i) {
      if (places_.of[i] < 0) continue;
      operands[i] = context.input(places_.of[i]);
      arrays[Operand(i)] = operands[i].data();
    }
    const Array out = context.output(0).data();
    const AttentionCall call = arrays.call(numbers_, out, norms_);
    if (context.create_graph() && out.size() > 0 && call.k->shape()[2] > 0)
      give_recorded(context, call, operands, gy, glog_sum);
    else
      give_by_kernel(context, call, gy, glog_sum);
  }

 private:
  bool wants(BackwardContext& context, Operand operand) const {
    return places_[operand] >= 0 && context.needs(places_[operand]);
  }

  void give_by_kernel(BackwardContext& context, const AttentionCall& call, const Variable& gy,
                      const Variable& glog_sum) const {
    const HeadGradients made = make_gradients(call);
    const Array gout = gy.defined() ? gy.data() : zeros_like(*call.out);
    const Array row = glog_sum.defined() ? glog_sum.data().contiguous() : Array();
    const Array gbias = wants(context, Operand::kBias) ? bias_sums(call) : Array();
    if (gout.size() > 0)
      kernels::attention_grad(gout.device(), {.forward = call,
                                              .gout = &gout,
                                              .glog_sum = row.defined() ? &row : nullptr,
                                              .gq = &made.q,
                                              .gk = &made.k,
                                              .gv = &made.v,
                                              .gbias = gbias.defined() ? &gbias : nullptr});
    const auto give = [&](Operand operand, const Array& g) {
      if (wants(context, operand)) context.set_grad(places_[operand], Variable::constant(g));
    };
    give(Operand::kQ, made.q);
    give(Operand::kK, made.k);
    give(Operand::kV, made.v);
    if (!gbias.defined()) return;
    const VariableNode& bias = *inputs()[size_t(places_[Operand::kBias])];
    give(Operand::kBias, gbias.reshape(bias.shape).astype(bias.dtype, false));
  }

  // For the gradient of a bias, of its shape with 4 axes.
  Array bias_sums(const AttentionCall& call) const {
    const Shape& own = inputs()[size_t(places_[Operand::kBias])]->shape;
    Shape shape(4, 1);
    for (int i = 0; i < own.ndim(); ++i) shape[size_t(4 - own.ndim() + i)] = own[size_t(i)];
    const ArrayOptions options{norms_.dtype(), call.q->device()};
    return call.out->size() > 0 ? empty(shape, options) : zeros(shape, options);
  }

  void give_recorded(BackwardContext& context, const AttentionCall& call, const Variable* operands,
                     const Variable& gy, const Variable& glog_sum) const {
    RecordedGradients g(call, operands[0], operands[1], operands[2],
                        operands[size_t(Operand::kBias)]);
    g.run(gy, glog_sum);
    const auto give = [&](Operand operand, const Variable& value) {
      if (!wants(context, operand) || !value.defined()) return;
      const Variable& x = operands[size_t(operand)];
      const bool is_bias = operand == Operand::kBias;
      const Variable own = is_bias ? sum_to(value, x.shape()) : reshape(value, x.shape());
      context.set_grad(places_[operand], cast(own, x.dtype()));
    };
    give(Operand::kQ, g.gq);
    give(Operand::kK, g.gk);
    give(Operand::kV, g.gv);
    give(Operand::kBias, g.gbias);
  }

  AttentionPlaces places_;
  AttentionNumbers numbers_;
  Array norms_;
  bool with_statistics_;
};

}  // namespace

Variables run_attention(FunctionCall& call, const AttentionPlaces& places, AttentionArrays& arrays,
                        const AttentionNumbers& numbers, bool with_statistics) {
  const Array &q = arrays[Operand::kQ], &v = arrays[Operand::kV];
  const Shape scores = arrays.scores();
  const Shape shape{scores[0], scores[1], scores[2], v.shape()[3]};
  const std::array<Array, 2> made = make_once(call, Keep::kAttention, [&] {
    const Array y = Array::uninitialized(shape, q.dtype(), q.device(), q.order());
    const Array of_queries = Array::uninitialized({2, scores[0], scores[1], scores[2]},
                                                  compute_dtype(q.dtype()), q.device());
    if (y.size() > 0) kernels::attention(q.device(), arrays.call(numbers, y, of_queries));
    call.note_work([&] { return element_count(scores) * (q.shape()[3] + v.shape()[3]); });
    return std::array{y, of_queries};
  });
  const Array &out = made[0], &norms = made[1];
  Arrays results{out};
  if (with_statistics) results.push_back(norms(0) + norms(1));
  return call.record(results, [&] {
    auto node = make_node<AttentionNode>(places, numbers, norms, with_statistics);
    for (size_t i = 0; i < call.size(); ++i) node->save_input(int(i), call[i]);
    node->save_output(0, out);
    return node;
  });
}

}  // namespace catena::functions
