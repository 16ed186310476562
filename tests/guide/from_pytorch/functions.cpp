// The section Modules: functions.
#include "catena/functions/functions.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/array/random.h"
#include "catena/array/sorting.h"
#include "guide/from_pytorch/page.h"

namespace catena::guide {

namespace F = catena::functions;

void add_activations(Page& page) {
  page.begin();
  const Array x = page.operand("x", random::normal({4, 3}, 0, 4));
  const auto training = [] { return false; };
  CATENA_ROW("F.relu(x)", F::relu(x))
  CATENA_ROW("F.leaky_relu(x, 0.2)", F::leaky_relu(x, 0.2))
  CATENA_ROW("F.log_softmax(x, 1)", F::log_softmax(x, 1))
  CATENA_ROW("F.dropout(x, 0.5, self.training)", F::dropout(x, 0.5, training()))
  CATENA_ROW("F.elu(x)", F::elu(x))
  CATENA_ROW("F.selu(x)", F::selu(x))
  CATENA_ROW("F.silu(x)", F::silu(x))
  CATENA_ROW("F.silu(x)", F::swish(x))
  CATENA_ROW("F.mish(x)", F::mish(x))
  CATENA_ROW("F.softsign(x)", F::softsign(x))
  CATENA_ROW("F.logsigmoid(x)", F::log_sigmoid(x))
  CATENA_ROW("F.gelu(x)", F::gelu(x))
  CATENA_ROW("F.gelu(x, approximate=\"tanh\")", F::gelu_tanh(x))
  const Array gate = page.operand("gate", random::normal({4, 3}));
  CATENA_ROW("F.silu(gate) * x", F::swiglu(gate, x))
  CATENA_ROW("F.gelu(gate) * x", F::geglu(gate, x))
  CATENA_ROW("F.layer_norm(x + gate, (3,))", F::LayerNormalization(3)(x, gate).y)
  const Array W1 = page.operand("W1", random::normal({5, 3})),
              b1 = page.operand("b1", random::normal({5})),
              W2 = page.operand("W2", random::normal({2, 5})),
              b2 = page.operand("b2", random::normal({2}));
  CATENA_ROW(
      "F.linear(F.gelu(F.linear(x, W1, b1), approximate=\"tanh\"), W2, b2)",
      F::feed_forward(x, W1, b1, W2, b2, {.activation = F::TransformerActivation::kGeluTanh}))
  CATENA_ROW("F.relu6(x)", F::relu6(x))
  CATENA_ROW("F.relu6(x)", F::clipped_relu(x, 6))
  CATENA_ROW("F.hardtanh(x)", F::hard_tanh(x))
  CATENA_ROW("F.hardswish(x)", F::hard_swish(x))
  CATENA_ROW("F.hardshrink(x)", F::hard_shrink(x))
  CATENA_ROW("F.softshrink(x, 0.1)", F::soft_shrink(x, 0.1))
  CATENA_ROW("F.hardsigmoid(x)", F::clip(x / 6 + 0.5, 0, 1))
  CATENA_ROW("torch.clamp(0.2 * x + 0.5, 0, 1)", F::hard_sigmoid(x))
}

void add_attention(Page& page) {
  for (const int64_t groups : {4, 2}) {
    page.begin();
    const auto draw = [&](const char* name, int64_t heads) {
      return page.operand(name, random::normal({2, heads, 5, 4}));
    };
    const Array q = draw("q", 4), k = draw("k", groups), v = draw("v", groups);
    const Array m = page.operand("m", random::uniform({5, 5}) < 0.7);
    if (groups == 4) {
      CATENA_ROW("F.scaled_dot_product_attention(q, k, v, is_causal=True)",
                 F::scaled_dot_product_attention(q, k, v, {.causal = true}))
      CATENA_ROW("F.scaled_dot_product_attention(q, k, v, attn_mask=m, scale=0.5)",
                 F::scaled_dot_product_attention(q, k, v, {.mask = m, .scale = 0.5}))
    } else {
      CATENA_ROW("F.scaled_dot_product_attention(q, k, v, attn_mask=m, scale=0.5, enable_gqa=True)",
                 F::scaled_dot_product_attention(q, k, v, {.mask = m, .scale = 0.5}))
    }
  }
}

void add_losses(Page& page) {
  page.begin();
  const Array x = page.operand("x", random::normal({4, 3})),
              y = page.operand("y", random::normal({4, 3}));
  const Array t = page.operand("t", random::randint(0, 3, {4})),
              w = page.operand("w", array({1.0, 2.0, 0.5}).astype(dtype::float32));
  const Array ignored = catena::where(t == 1, -1, t);
  const Array labels = page.operand("labels", random::randint(0, 2, {4, 3}));
  const Array sign = page.operand("sign", array({1, -1, 1, 1}));
  const Array p = page.operand("p", F::softmax(y).data()),
              q = page.operand("q", F::softmax(x).data());
  const Array log_q = page.operand("log_q", F::log_softmax(x).data());
  CATENA_ROW("x.gather(1, t[:, None])[:, 0]", F::select_item(x, t))
  const Array scores = y;
  CATENA_ROW("F.cross_entropy(y, t)", F::softmax_cross_entropy(y, t))
  CATENA_ROW(
      "F.cross_entropy(y, t, weight=w, label_smoothing=0.1, reduction=\"none\")",
      F::softmax_cross_entropy(
          y, t, {.reduction = F::Reduction::kNone, .class_weight = w, .label_smoothing = 0.1}))
  CATENA_STEPS("t = p", "F.cross_entropy(y, t)", loss, const Array& t = p;
               const Variable loss = F::softmax_cross_entropy(y, t))
  CATENA_STEPS("t = torch.where(t == 1, -100, t)", "F.cross_entropy(y, t)", loss,
               const Array& t = ignored;
               const Variable loss = F::softmax_cross_entropy(y, t))
  CATENA_STEPS("loss = F.cross_entropy(y, t)", "loss", loss, const Array y = scores.copy();
               const Variable loss = F::softmax_cross_entropy(y, t, {.gradient_in_place = true}))
  CATENA_STEPS(
      "t = labels.float()", "F.binary_cross_entropy_with_logits(y, t, pos_weight=w)", loss,
      const Array& t = labels;
      const Variable loss = F::sigmoid_cross_entropy(y, t, {.normalize = true, .pos_weight = w}))
  CATENA_ROW("F.binary_cross_entropy_with_logits(y, labels.float(), reduction=\"sum\") / len(y)",
             F::sigmoid_cross_entropy(y, labels))
  const Array waves = catena::sin(arange(20, dtype::float32)),
              W = page.operand("W", waves(Slice(0, 15)).reshape({5, 3})),
              b = page.operand("b", waves(Slice(15, 20))),
              words = page.operand("words", array({1, 4, 0, 2}));
  CATENA_STEPS("h, t = x, words", "F.cross_entropy(F.linear(h, W, b), t)", loss, const Array& h = x,
               &t = words;
               const Variable loss = F::linear_cross_entropy(h, W, b, t))
  CATENA_ROW("F.nll_loss(log_q, t)", F::negative_log_likelihood(log_q, t))
  CATENA_ROW("F.mse_loss(x, y)", F::mean_squared_error(x, y))
  CATENA_ROW("F.l1_loss(x, y, reduction=\"none\")",
             F::mean_absolute_error(x, y, F::Reduction::kNone))
  CATENA_ROW("F.huber_loss(x, y)", F::huber_loss(x, y, 1))
  CATENA_ROW("F.smooth_l1_loss(x, y)", F::smooth_l1(x, y))
  CATENA_ROW("F.kl_div(log_q, p, reduction=\"batchmean\")", F::kl_divergence(log_q, p))
  CATENA_ROW("F.cosine_similarity(x, y)", F::cosine_similarity(x, y))
  CATENA_ROW("F.cosine_embedding_loss(x, y, sign)", F::cosine_embedding_loss(x, y, sign))
  CATENA_STEPS(
      "squared = lambda a, b: ((a - b) ** 2).sum(1)",
      "F.triplet_margin_with_distance_loss(x, y, p, distance_function=squared, margin=0.2)", loss,
      const Variable loss = F::triplet(x, y, p))
  page.begin();
  const Array steps = page.operand("x", random::normal({6, 2, 5}));
  const Array targets = page.operand("t", array({{1, 2}, {3, 1}}));
  const Array n = page.operand("n", array({6, 5})), m = page.operand("m", array({2, 1}));
  CATENA_STEPS("input_lengths, target_lengths = n, m",
               "F.ctc_loss(F.log_softmax(x, 2), t, input_lengths, target_lengths, "
               "reduction=\"none\").mean()",
               loss, const Array& x = steps;
               const Array& t = targets;
               const Variable loss = F::connectionist_temporal_classification(
                   x, t, 0, {.input_length = n, .label_length = m}))
}

namespace {

void add_products(Page& page) {
  page.begin();
  const Array x = page.operand("x", random::normal({3, 3})),
              a = page.operand("a", random::normal({3, 3})),
              b = page.operand("b", random::normal({3, 3})),
              v = page.operand("v", random::normal({3})),
              u = page.operand("u", random::normal({3})),
              y = page.operand("y", random::normal({6, 8})),
              t = page.operand("t", random::randint(0, 8, {6}));
  CATENA_ROW("F.pad(x, (2, 1))", F::pad(x, {{0, 0}, {2, 1}}))
  CATENA_ROW("x.repeat(2, 3)", F::tile(x, {2, 3}))
  CATENA_ROW("x.trace()", F::trace(x))
  CATENA_ROW("torch.column_stack((v, u))", F::column_stack({v, u}))
  CATENA_ROW("torch.einsum(\"ij,jk->ik\", a, b)", F::einsum("ij,jk->ik", a, b))
  CATENA_ROW("torch.dot(u, v)", F::dot(u, v))
  CATENA_ROW("torch.inner(a, v)", F::inner(a, v))
  CATENA_ROW("torch.outer(u, v)", F::outer(u, v))
  CATENA_ROW("torch.kron(a, b)", F::kron(a, b))
  CATENA_ROW("torch.tensordot(a, b, 1)", F::tensordot(a, b, 1))
  CATENA_ROW("torch.tensordot(a, b, ([0], [1]))", F::tensordot(a, b, {0}, {1}))
  CATENA_ROW("(y.topk(5, 1).indices == t[:, None]).any(1).float().mean()",
             F::top_k_accuracy(y, t, 5))
}

}  // namespace

void add_arrays(Page& page) {
  page.begin();
  const Variable x(page.operand("x", random::normal({2, 3, 4})));
  const Array z = page.operand("z", random::normal({2, 3, 4}));
  const Array i = page.operand("i", random::randint(0, 3, {2, 2, 4})),
              k = page.operand("k", array({2, 0}));
  const Array t = page.operand("t", array({1, 9, 3}));
  CATENA_ROW("torch.stack((x, z))", F::stack({x, z}))
  CATENA_ROW("torch.cat((x, z), 1)", F::concat({x, z}))
  CATENA_ROW("torch.softmax(x, -1)", F::softmax(x, -1))
  CATENA_ROW("torch.hstack((x, z))", F::hstack({x, z}))
  CATENA_ROW("torch.vstack((x, z))", F::vstack({x, z}))
  CATENA_ROW("torch.dstack((x, z))", F::dstack({x, z}))
  CATENA_ROW("torch.unbind(x)", F::separate(x))
  CATENA_ROW("x.gather(1, i)", F::take_along_axis(x, i, 1))
  CATENA_STEPS("i = k", "x.index_select(1, i)", F::take(x, i, 1), const Array& i = k)
  CATENA_ROW("F.one_hot(t, 10)", F::one_hot(t, 10))
  CATENA_ROW("x.logsumexp(1)", F::logsumexp(x, 1))
  CATENA_ROW("x.cumsum(0)", F::cumsum(x, 0))
  CATENA_ROW("x.norm(dim=1)", F::norm(x, 1))
  CATENA_ROW("x.prod(1)", F::prod(x, 1))
  CATENA_ROW("x.var(1)", F::var(x, 1, false, 1))
  CATENA_ROW("x.std(1)", F::std(x, 1, false, 1))
  CATENA_ROW("x.flip(0)", F::flip(x, 0))
  CATENA_ROW("x.roll(1, 0)", F::roll(x, 1, 0))
  CATENA_ROW("x.repeat_interleave(2, 0)", F::repeat(x, 2, 0))
  CATENA_ROW("x.movedim(0, 2)", F::moveaxis(x, 0, 2))
  CATENA_ROW("x.rot90(1, (1, 2))", F::rot90(x, 1, {1, 2}))
  CATENA_ROW("x.flipud()", F::flipud(x))
  CATENA_ROW("x.fliplr()", F::fliplr(x))
  CATENA_ROW("x.tril()", F::tril(x))
  CATENA_ROW("x.triu(1)", F::triu(x, 1))
  CATENA_ROW("x.diagonal(0, -2, -1)", F::diagonal(x, 0, -2, -1))
  CATENA_ROW("x.sort(1).values", F::sort(x, 1))
  CATENA_ROW("x.sort(1).indices", argsort(x.data(), 1))
  CATENA_ROW("x.cumprod(0)", F::cumprod(x, 0))
  CATENA_ROW("x.diff()", F::diff(x))
  add_products(page);
}

}  // namespace catena::guide
