// What linear_cross_entropy does not compute, does not keep and does not round away.
#include "catena/functions/loss/linear_cross_entropy.h"

#include <array>
#include <optional>

#include "catena/array/logic.h"
#include "catena/autograd/autocast.h"
#include "catena/autograd/parameter.h"
#include "catena/core/memory.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/kernels/loss.h"
#include "catena/kernels/matmul.h"
#include "catena/optimizers/sgd.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using F::LinearCrossEntropyOptions;
using F::Reduction;

constexpr Dtype kDtypes[] = {Dtype::kFloat64, Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16};

// The products that were asked for since it was 0.
int g_products = 0;
bool count_product(const MatmulCall&) {
  ++g_products;
  return false;  // declined
}
// Whether the kernel of the losses was to leave the gradient out.
bool g_losses_only = false;
bool note_losses(const CrossEntropyInPlaceCall& call) {
  g_losses_only = call.losses_only;
  return false;
}
template <DeviceType kType>
void count_products() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  kernels::matmul.providers(kType);  // loads them, so that this one comes before all
  kernels::matmul.provide(kType, "counted", &count_product, 999);
  kernels::softmax_cross_entropy_in_place.providers(kType);
  kernels::softmax_cross_entropy_in_place.provide(kType, "noted", &note_losses, 999);
}

class LinearCrossEntropy : public OnDevice {
 protected:
  struct Problem {
    Array h, W, b, t;
  };
  // Labels of which every fifth is ignored.
  Array labels(int64_t tokens, int64_t classes) const {
    std::vector<int32_t> values;
    for (int64_t i = 0; i < tokens; ++i)
      values.push_back(i % 5 == 3 ? -1 : int32_t(i * 7 % classes));
    return array(values).to(device());
  }
  Problem problem(int64_t tokens, int64_t size, int64_t classes, Dtype d) const {
    return {draw({tokens, size}, -1, 1, 1, d), draw({classes, size}, -1, 1, 2, d),
            draw({classes}, -1, 1, 3, d), labels(tokens, classes)};
  }
  struct Outcome {
    Array loss, h, W, b;
  };
  // loss(h, W, b), from whose gradient gy backward begins.
  template <class Loss>
  static Outcome run(const Problem& p, const Array& gy, const Loss& loss) {
    const Variable h(p.h), W(p.W), b(p.b);
    const Variable y = loss(h, W, b);
    y.set_grad(gy.astype(y.dtype()));
    y.backward();
    return {y.data(), h.grad(), W.grad(), b.grad()};
  }
  static void expect_near(const Array& a, const Array& b, double error) {
    EXPECT_EQ(a.shape(), b.shape());
    EXPECT_EQ(
        testing::difference(a.astype(Dtype::kFloat64), b.astype(Dtype::kFloat64), error, error),
        "");
  }
  void count() const {
    device().is_cpu() ? count_products<DeviceType::kCpu>() : count_products<DeviceType::kCuda>();
    g_products = 0;
  }
};

TEST_P(LinearCrossEntropy, GivesEqualBits) {
  for (const Dtype d : {Dtype::kFloat32, Dtype::kBFloat16}) {
    const Problem p = problem(300, 40, 150, d);
    for (const Reduction r : {Reduction::kMean, Reduction::kNone}) {
      const Array gy = r == Reduction::kNone ? draw({300}, 0.5, 2, 4)
                                             : full({}, 1.5, {Dtype::kFloat64, device()});
      const auto again = [&] {
        return run(p, gy, [&](const Variable& h, const Variable& W, const Variable& b) {
          return F::linear_cross_entropy(h, W, b, p.t, {.reduction = r, .chunk = 64});
        });
      };
      const Outcome first = again(), second = again();
      EXPECT_TRUE(array_equal(first.loss, second.loss));
      EXPECT_TRUE(array_equal(first.h, second.h));
      EXPECT_TRUE(array_equal(first.W, second.W));
      EXPECT_TRUE(array_equal(first.b, second.b));
    }
  }
}

// A product for the scores of each of three chunks, and one for each gradient that is wanted.
TEST_P(LinearCrossEntropy, ComputesWhatIsWantedAlone) {
  const Problem p = problem(12, 6, 9, Dtype::kFloat64);
  const auto products = [&](bool h, bool W, bool b, Reduction r) {
    const auto operand = [](const Array& a, bool wanted) {
      return wanted ? Variable(a) : Variable::constant(a);
    };
    const Variable vh = operand(p.h, h), vW = operand(p.W, W), vb = operand(p.b, b);
    count();
    const Variable loss = F::linear_cross_entropy(vh, vW, vb, p.t, {.reduction = r, .chunk = 4});
    const int forward = g_products;
    EXPECT_EQ(g_losses_only, r == Reduction::kNone || !(h || W || b));
    g_products = 0;
    if (h || W || b) F::sum(loss).backward();
    EXPECT_EQ(vh.grad().defined(), h);
    EXPECT_EQ(vW.grad().defined(), W);
    EXPECT_EQ(vb.grad().defined(), b);
    return std::array<int, 2>{forward, g_products};
  };
  using Counts = std::array<int, 2>;
  EXPECT_EQ(products(true, true, true, Reduction::kMean), (Counts{12, 0}));
  EXPECT_EQ(products(true, false, false, Reduction::kMean), (Counts{6, 0}));
  EXPECT_EQ(products(false, true, false, Reduction::kSum), (Counts{6, 0}));
  EXPECT_EQ(products(false, false, true, Reduction::kSum), (Counts{6, 0}));
  EXPECT_EQ(products(false, false, false, Reduction::kMean), (Counts{3, 0}));
  EXPECT_EQ(products(true, true, true, Reduction::kNone), (Counts{3, 12}));
  EXPECT_EQ(products(true, false, false, Reduction::kNone), (Counts{3, 6}));
  const NoBackprop off;
  EXPECT_EQ(products(false, false, false, Reduction::kMean), (Counts{3, 0}));
  count();
  const Variable loss = F::linear_cross_entropy(Variable(p.h), Variable(p.W), p.t, {.chunk = 4});
  EXPECT_EQ(g_products, 3);
  EXPECT_TRUE(g_losses_only);
  EXPECT_FALSE(loss.requires_grad());
}

TEST_P(LinearCrossEntropy, IsTheSameWithoutBackprop) {
  for (const Dtype d : kDtypes)
    for (const double extra : {0.0, 0.1}) {
      const Problem p = problem(12, 6, 9, d);
      const LinearCrossEntropyOptions options{
          .label_smoothing = extra, .z_loss = extra, .chunk = 5};
      const auto loss = [&] {
        return F::linear_cross_entropy(Variable(p.h), Variable(p.W), p.t, options).data();
      };
      const Array recorded = loss();
      const NoBackprop off;
      EXPECT_TRUE(array_equal(loss(), recorded)) << d;
    }
}

// So many tokens that rows of scores are computed to their ends, with what fills them up.
TEST_P(LinearCrossEntropy, ManyTokensOfAnyNumberOfClasses) {
  const int64_t tokens = 1100, size = 6;
  for (const int64_t classes : {1, 8, 9, 10, 11, 13, 15})
    for (const double z_loss : {0.0, 0.1})
      for (const bool bias : {true, false}) {
        const Problem p = problem(tokens, size, classes, Dtype::kBFloat16);
        const auto outcome = [&](Dtype d) {
          const Variable h(p.h.astype(d)), W(p.W.astype(d)), b(p.b.astype(d));
          const LinearCrossEntropyOptions options{
              .label_smoothing = z_loss, .z_loss = z_loss, .chunk = 400};
          const Variable loss = bias ? F::linear_cross_entropy(h, W, b, p.t, options)
                                     : F::linear_cross_entropy(h, W, p.t, options);
          loss.backward();
          return Outcome{loss.data(), h.grad(), W.grad(), bias ? b.grad() : Array()};
        };
        // In float64 two numbers fill a pack, in 16 bits eight.
        const Outcome wide = outcome(Dtype::kFloat64);
        for (const auto& [dtype, error] : {std::pair{Dtype::kFloat32, 1e-5},
                                           {Dtype::kFloat16, 2e-3},
                                           {Dtype::kBFloat16, 2e-2}}) {
          SCOPED_TRACE(message(dtype, " classes ", classes, " z_loss ", z_loss, " bias ", bias));
          const Outcome narrow = outcome(dtype);
          const auto near = [&](const Array& a, const Array& b) {
            const double largest = amax(abs(b)).item<double>();
            EXPECT_LE(amax(abs(a.astype(Dtype::kFloat64) - b)).item<double>(), error * largest);
          };
          near(narrow.loss, wide.loss);
          near(narrow.h, wide.h);
          near(narrow.W, wide.W);
          if (bias) near(narrow.b, wide.b);
        }
      }
}

// A token whose scores are no numbers spoils its own gradient alone.
TEST_P(LinearCrossEntropy, TokensThatAreNoNumbersSpoilNoOthers) {
  const int64_t tokens = 1100, classes = 9;
  const Problem p = problem(tokens, 4, classes, Dtype::kBFloat16);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const Array given = p.h.copy();
    given(7).fill(bad);
    const auto gradient = [&](const Array& h) {
      const Variable v(h), W(p.W);
      F::linear_cross_entropy(v, W, p.t, {.reduction = Reduction::kSum}).backward();
      return v.grad();
    };
    const Array spoilt = gradient(given), sound = gradient(p.h);
    EXPECT_TRUE(array_equal(spoilt(Slice(0, 7)), sound(Slice(0, 7))));
    EXPECT_TRUE(array_equal(spoilt(Slice(8, tokens)), sound(Slice(8, tokens))));
    for (const double g : spoilt(7).to_vector<double>()) EXPECT_TRUE(std::isnan(g));
  }
}

// 64 chunks, whose scores would be 64 times what one of them takes.
TEST_P(LinearCrossEntropy, HoldsTheScoresOfAChunk) {
  const int64_t tokens = 2048, size = 8, classes = 1000, chunk = 32;
  const Problem p = problem(tokens, size, classes, Dtype::kFloat32);
  for (const Reduction r : {Reduction::kMean, Reduction::kNone})
    for (const bool backprop : {true, false}) {
      const Variable h(p.h), W(p.W);
      const auto all = [&] {
        std::optional<NoBackprop> off;
        if (!backprop) off.emplace();
        const Variable loss =
            F::sum(F::linear_cross_entropy(h, W, p.t, {.reduction = r, .chunk = chunk}));
        if (backprop) loss.backward();
      };
      all();
      reset_peak_memory(device());
      const size_t before = memory_statistics(device()).in_use;
      all();
      const size_t extra = memory_statistics(device()).peak_in_use - before;
      // Gradients are there twice: kept and scaled.
      const auto bytes = [](int64_t count) { return size_t(count) * 4; };
      const size_t gradients = bytes(2 * (tokens + classes) * size);
      EXPECT_LE(extra, bytes(2 * chunk * classes) + gradients + bytes(8 * tokens) + (64u << 10));
      EXPECT_GE(extra, bytes(chunk * classes));
    }
}

TEST_P(LinearCrossEntropy, BackwardRunsAgain) {
  const Problem p = problem(12, 6, 9, Dtype::kFloat64);
  for (const Reduction r : {Reduction::kMean, Reduction::kNone}) {
    const Variable h(p.h), W(p.W);
    const Variable loss = F::sum(F::linear_cross_entropy(h, W, p.t, {.reduction = r, .chunk = 5}));
    loss.backward();
    const Array gh = h.grad().copy(), gW = W.grad().copy();
    h.set_grad(Array());
    W.set_grad(Array());
    loss.backward();
    EXPECT_TRUE(array_equal(h.grad(), gh));
    EXPECT_TRUE(array_equal(W.grad(), gW));
  }
}

// What the mean has made in the forward pass needs no operands; what is computed again notices.
TEST_P(LinearCrossEntropy, OverwrittenOperands) {
  const Problem p = problem(12, 6, 9, Dtype::kFloat64);
  for (const Reduction r : {Reduction::kMean, Reduction::kNone}) {
    const Variable h(p.h.copy()), W(p.W.copy());
    const Variable loss = F::sum(F::linear_cross_entropy(h, W, p.t, {.reduction = r}));
    W.data().fill(0);
    if (r == Reduction::kNone) {
      EXPECT_THROW(loss.backward(), GradientError);
      continue;
    }
    loss.backward();
    const Variable other_h(p.h), other_W(p.W);
    F::linear_cross_entropy(other_h, other_W, p.t).backward();
    EXPECT_TRUE(array_equal(h.grad(), other_h.grad()));
    EXPECT_TRUE(array_equal(W.grad(), other_W.grad()));
  }
}

TEST_P(LinearCrossEntropy, WeightsThatAreUnfrozenTooLate) {
  const DeviceScope scope(device());
  const Problem p = problem(4, 3, 5, Dtype::kFloat32);
  F::Linear head(3, 5);
  optimizers::SGD rule;
  rule.setup(head);
  rule.freeze(head.W);
  const Variable h(p.h);
  const Variable loss = F::linear_cross_entropy(h, head.W, p.t);
  rule.unfreeze(head.W);
  EXPECT_EQ(error_of<GradientError>([&] { loss.backward(); }),
            "LinearCrossEntropy: the gradient of operand 1 was not wanted in the forward pass, "
            "which makes it; unfreeze parameters before");
}

// One of 4096 tokens has a gradient that float16 rounds to 0 or to two digits.
TEST_P(LinearCrossEntropy, GradientsOfManyTokensAreNotRoundedAway) {
  const int64_t tokens = 4096, classes = 64;
  const Problem wide = problem(tokens, 4, classes, Dtype::kFloat64);
  const auto gradient = [&](Dtype d) {
    const Variable h(wide.h.astype(d)), W(wide.W.astype(d).astype(Dtype::kFloat64).astype(d));
    F::linear_cross_entropy(h, W, wide.t, {.label_smoothing = 0.1, .chunk = 1000}).backward();
    return W.grad().astype(Dtype::kFloat64);
  };
  const Array expected = gradient(Dtype::kFloat64);
  const double largest = amax(abs(expected)).item<double>();
  EXPECT_LE(amax(abs(gradient(Dtype::kFloat16) - expected)).item<double>(), 2e-3 * largest);
  EXPECT_LE(amax(abs(gradient(Dtype::kBFloat16) - expected)).item<double>(), 2e-2 * largest);
}

// Sums over 64 chunks in bfloat16 would stop to grow after a few.
TEST_P(LinearCrossEntropy, ChunksAddUpInFloat32) {
  const int64_t tokens = 2048;
  const Array t = zeros({tokens}, {Dtype::kInt32, device()});
  const Variable h(ones({tokens, 1}, {Dtype::kBFloat16, device()})),
      W(zeros({2, 1}, {Dtype::kBFloat16, device()})), b(zeros({2}, {Dtype::kBFloat16, device()}));
  F::linear_cross_entropy(h, W, b, t, {.reduction = Reduction::kSum, .chunk = 1}).backward();
  EXPECT_EQ(W.grad().to_vector<double>(), (std::vector<double>{-1024, 1024}));
  EXPECT_EQ(b.grad().to_vector<double>(), (std::vector<double>{-1024, 1024}));
}

TEST_P(LinearCrossEntropy, AutocastLeavesParametersAndTheLossInFloat32) {
  const Problem p = problem(12, 6, 9, Dtype::kFloat32);
  Parameter W(p.W);
  const Variable h(p.h);
  const AutocastScope autocast(Dtype::kBFloat16);
  const Variable loss = F::linear_cross_entropy(h, W, p.t);
  EXPECT_EQ(loss.dtype(), Dtype::kFloat32);
  W.zero_grad();
  loss.backward();
  EXPECT_EQ(W.grad().dtype(), Dtype::kFloat32);
  EXPECT_EQ(h.grad().dtype(), Dtype::kFloat32);
  const Variable plain(p.W);
  F::softmax_cross_entropy(F::linear(Variable(p.h), plain), p.t).backward();
  expect_near(W.grad(), plain.grad(), 3e-2);
}

// The table of the words serves as weights of the head, too.
TEST_P(LinearCrossEntropy, TiedWeights) {
  const DeviceScope scope(device());
  const Array ids = abs(labels(12, 9));
  const auto gradient = [&](bool composed) {
    F::EmbedID embed(9, 6, {.initialW = draw({9, 6}, -1, 1, 2)});
    embed.zero_grads();
    const Variable h = F::sin(embed(ids.astype(Dtype::kInt32)));
    const Array t = labels(12, 9);
    const Variable loss = composed ? F::softmax_cross_entropy(F::linear(h, embed.W), t)
                                   : F::linear_cross_entropy(h, embed.W, t, {.chunk = 5});
    loss.backward();
    return embed.W.grad().copy();
  };
  expect_near(gradient(false), gradient(true), 1e-12);
}

TEST_P(LinearCrossEntropy, IgnoredLabelsAlone) {
  const Problem p = problem(4, 3, 5, Dtype::kFloat64);
  const Array t = full({4}, -1, Dtype::kInt32).to(device());
  const Variable h(p.h), W(p.W);
  const Variable loss = F::linear_cross_entropy(h, W, t, {.label_smoothing = 0.1, .z_loss = 0.1});
  loss.backward();
  EXPECT_EQ(loss.data().item<double>(), 0);
  EXPECT_EQ(testing::difference(h.grad(), zeros_like(h.data())), "");
  EXPECT_EQ(testing::difference(W.grad(), zeros_like(W.data())), "");
}

// Also the number of a column that fills rows up.
TEST_P(LinearCrossEntropy, LabelsOutOfRange) {
  const Problem p = problem(3, 2, 3, Dtype::kFloat64);
  const Array t = array({0, 3, 1}).to(device());
  const auto losses = [&] {
    return F::linear_cross_entropy(p.h, p.W, t, {.reduction = Reduction::kNone});
  };
  if (device().is_cpu()) {
    EXPECT_EQ(error_of<ValueError>(losses),
              "LinearCrossEntropy: label 3 at position 1 is outside [0, 3) and not the ignored "
              "label -1");
    return;
  }
  const std::vector<double> values = losses().data().to_vector<double>();
  EXPECT_TRUE(std::isfinite(values[0]) && std::isnan(values[1]) && std::isfinite(values[2]));
}

// By default as many tokens as have 176 MiB of scores, in even chunks of a multiple of 64, or all.
TEST_P(LinearCrossEntropy, DefaultChunks) {
  const auto chunks = [&](int64_t tokens, int64_t classes) {
    const Variable h = Variable::constant(zeros({tokens, 1}, {Dtype::kFloat32, device()})),
                   W = Variable::constant(zeros({classes, 1}, {Dtype::kFloat32, device()}));
    count();
    F::linear_cross_entropy(h, W, zeros({tokens}, {Dtype::kInt32, device()}));
    return g_products;
  };
  EXPECT_EQ(chunks(3000, 1), 1);
  EXPECT_EQ(chunks(4096, 11264), 1);  // 176 MiB
  EXPECT_EQ(chunks(4097, 11264), 2);
  EXPECT_EQ(chunks(1024, 50000), 1);
  EXPECT_EQ(chunks(1025, 50000), 2);
}

CATENA_ON_DEVICES(LinearCrossEntropy);

}  // namespace
}  // namespace catena
