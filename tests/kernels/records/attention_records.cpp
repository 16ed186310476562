// Records of the slots of attention.
#include "catena/functions/attention/scaled_dot_product_attention.h"
#include "kernels/slot_record.h"

namespace catena {
namespace {

namespace F = functions;

constexpr int64_t kBatch = 2, kHeads = 4, kGroups = 2, kQueries = 70, kKeys = 150, kDepth = 16,
                  kWidth = 8;

struct Operands {
  explicit Operands(Device d)
      : q(data(d, {kBatch, kHeads, kQueries, kDepth}, 1)),
        k(data(d, {kBatch, kGroups, kKeys, kDepth}, 2)),
        v(data(d, {kBatch, kGroups, kKeys, kWidth}, 3)),
        bias(data(d, {kHeads, 1, kKeys}, 4)) {}
  // The bias is a constant: the gradient of one is left to the composed provider on GPUs.
  F::AttentionResult attend() const {
    return F::attention_with_statistics(
        q, k, v, {.causal = true, .mask = bias.data(), .window = 90, .softcap = 4.0});
  }
  Variable q, k, v, bias;
};

Results attention(Device d) {
  const F::AttentionResult result = Operands(d).attend();
  return {result.y.data(), result.log_sum_exp.data()};
}

Results attention_grad(Device d) {
  const Operands o(d);
  const F::AttentionResult result = o.attend();
  result.y.set_grad(data(d, result.y.shape(), 5));
  result.y.backward();
  return {o.q.grad(), o.k.grad(), o.v.grad()};
}

}  // namespace

CATENA_SLOT_RECORDS(attention) {
  return {{"attention", &attention}, {"attention_grad", &attention_grad}};
}

}  // namespace catena
