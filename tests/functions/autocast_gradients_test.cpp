// Gradients of float32 parameters whose products were in 16 bits: sums that are never rounded to 16
// bits, however the pass runs, and dtypes of results under autocast.
#include <optional>

#include "catena/autograd/autocast.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/function_hook.h"
#include "catena/autograd/parameter.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/array/cast.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss/linear_cross_entropy.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/functions/math/matmul.h"
#include "catena/functions/normalization/layer_normalization.h"
#include "catena/functions/recompute.h"
#include "deterministic_scope.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

constexpr Dtype kLows[] = {Dtype::kBFloat16, Dtype::kFloat16};

// A function of two parameters, and its value without autocast.
struct Case {
  const char* name;
  Shape W, b;
  std::function<Variable(const VariableOperand& W, const VariableOperand& b)> f;
  bool narrow_W = false;  // the kernel gives the gradient of W in 16 bits
};

class AutocastGradients : public OnDevice {
 protected:
  // Numbers of 16 bits, as float32.
  Array numbers(const Shape& shape, Dtype low, uint64_t seed) const {
    return draw(shape, -1, 1, seed).astype(low).astype(Dtype::kFloat32);
  }
  std::vector<Case> cases(Dtype low, Dtype dtype) const {
    const Array x = numbers({300, 6}, low, 1).astype(dtype),
                image = numbers({40, 2, 5, 5}, low, 2).astype(dtype),
                many = random_array({300}, 0, 9, Dtype::kInt32, device(), 3),
                labels = random_array({300}, 0, 7, Dtype::kInt32, device(), 4);
    return {
        {"linear", {7, 6}, {7}, [=](const auto& W, const auto& b) { return F::linear(x, W, b); }},
        {"stack",
         {7, 6},
         {7},
         [=](const auto& W, const auto& b) {
           return F::linear(x.reshape({3, 100, 6}), W, b);
         }},
        {"matmul",
         {6, 7},
         {2, 300},
         [=](const auto& W, const auto& b) { return F::matmul(b, F::matmul(x, W)); }},
        {"ids", {9, 6}, {6}, [=](const auto& W, const auto&) { return F::embed_id(many, W); }},
        {"twice",
         {7, 6},
         {7},
         [=](const auto& W, const auto& b) {
           const Variable again = F::embed_id(labels, W);
           return F::linear(x, W, b) + F::matmul(again, x(Slice(0, 7)).T());
         }},
        {"convolution",
         {3, 2, 3, 3},
         {3},
         [=](const auto& W, const auto& b) { return F::convolution_2d(image, W, b); },
         true}};
  }
  // The gradients of W and b where that of the result is `gy`.
  struct Gradients {
    Array W, b;
  };
  static Gradients gradients(const Case& c, const Array& W, const Array& b, Dtype low,
                             const BackwardOptions& options = {}) {
    const Parameter w(W), v(b);
    Variable y;
    {
      const AutocastScope scope(low);
      y = c.f(w, v);
    }
    y.set_grad(gradient_of(y, low));
    w.zero_grad();
    v.zero_grad();
    y.backward(options);
    if (options.weights_later) backward_weights(*options.weights_later);
    return {w.grad().copy(), v.grad().copy()};
  }
  static Array gradient_of(const Variable& y, Dtype low) {
    const Dtype narrow = is_narrow_float(low) ? low : Dtype::kBFloat16;
    return random_array(y.shape(), -1, 1, Dtype::kFloat64, y.device(), 9)
        .astype(narrow)
        .astype(y.dtype());
  }
};

// Against float64: operands and the gradient of the result are numbers of 16 bits, so that the sums
// are exact but for float32.
TEST_P(AutocastGradients, AreSumsInFloat32) {
  for (const Dtype low : kLows) {
    const std::vector<Case> narrow = cases(low, Dtype::kFloat32),
                            exact = cases(low, Dtype::kFloat64);
    for (size_t i = 0; i < narrow.size(); ++i) {
      if (std::string(narrow[i].name) == "matmul" || std::string(narrow[i].name) == "twice")
        continue;  // intermediate results are rounded
      SCOPED_TRACE(message(narrow[i].name, " ", low));
      const Array W = numbers(narrow[i].W, low, 5), b = numbers(narrow[i].b, low, 6);
      const Gradients got = gradients(narrow[i], W, b, low);
      const Parameter w(W.astype(Dtype::kFloat64)), v(b.astype(Dtype::kFloat64));
      const Variable y = exact[i].f(w, v);
      y.set_grad(gradient_of(y, low));
      y.backward();
      EXPECT_EQ(got.W.dtype(), Dtype::kFloat32);
      EXPECT_EQ(got.b.dtype(), Dtype::kFloat32);
      const double rounding = narrow[i].narrow_W ? 0.02 : 2e-5;
      assert_allclose(got.W.astype(Dtype::kFloat64), w.grad(), rounding, rounding);
      assert_allclose(got.b.astype(Dtype::kFloat64), v.grad(), 1e-6, 2e-5);
    }
  }
}

// They reach the parameter by other ways, too: in parts, and from a function that runs again; with
// retain_grad in 16 bits, through the gradient of the copy.
TEST_P(AutocastGradients, AreThoseOfEveryKindOfPass) {
  const DeterministicScope deterministic;
  for (const Case& c : cases(Dtype::kBFloat16, Dtype::kFloat32)) {
    SCOPED_TRACE(c.name);
    const Array W = draw(c.W, -1, 1, 5, Dtype::kFloat32), b = draw(c.b, -1, 1, 6, Dtype::kFloat32);
    const Gradients plain = gradients(c, W, b, Dtype::kBFloat16);
    DeferredWeights later;
    const Gradients parts = gradients(c, W, b, Dtype::kBFloat16, {.weights_later = &later});
    testing::assert_array_equal(parts.W, plain.W);
    testing::assert_array_equal(parts.b, plain.b);
    const Gradients rounded = gradients(c, W, b, Dtype::kBFloat16, {.retain_grad = true});
    assert_allclose(rounded.W, plain.W, 0.05, 0.02);
    const Gradients dropped =
        gradients(c, W, b, Dtype::kBFloat16, {.drop_parameter_gradients = true});
    EXPECT_FALSE(any(dropped.W != 0.0).truth());
    EXPECT_FALSE(any(dropped.b != 0.0).truth());
    Case again = c;
    again.f = [&](const VariableOperand& w, const VariableOperand& v) {
      return F::recompute([&](const Variables&) { return Variables{c.f(w, v)}; }, Variables())[0];
    };
    const Gradients recomputed = gradients(again, W, b, Dtype::kBFloat16);
    testing::assert_array_equal(recomputed.W, plain.W);
    testing::assert_array_equal(recomputed.b, plain.b);
  }
}

// The second pass adds to what the first one has left.
TEST_P(AutocastGradients, AddUp) {
  const DeterministicScope deterministic;
  for (const Case& c : cases(Dtype::kBFloat16, Dtype::kFloat32)) {
    SCOPED_TRACE(c.name);
    const Parameter W(draw(c.W, -1, 1, 5, Dtype::kFloat32)),
        b(draw(c.b, -1, 1, 6, Dtype::kFloat32));
    std::vector<Array> sums;
    for (int pass = 0; pass < 2; ++pass) {
      const AutocastScope scope(Dtype::kBFloat16);
      const Variable y = c.f(W, b);
      y.set_grad(gradient_of(y, Dtype::kBFloat16));
      y.backward();
      sums.push_back(W.grad().copy());
    }
    assert_allclose(sums[1], sums[0] * 2, 1e-5, 1e-5);
  }
}

TEST_P(AutocastGradients, LeaveFrozenParametersAlone) {
  const Case c = cases(Dtype::kBFloat16, Dtype::kFloat32)[0];
  const Parameter W(draw(c.W, -1, 1, 5, Dtype::kFloat32)), b(draw(c.b, -1, 1, 6, Dtype::kFloat32));
  Variable y;
  {
    const AutocastScope scope(Dtype::kBFloat16);
    y = c.f(W, b);
  }
  W.variable().node()->requires_grad = false;  // as a frozen group does
  y.set_grad(ones_like(y.data()));
  y.backward();
  EXPECT_FALSE(W.state()->has_gradient());
  EXPECT_TRUE(b.state()->has_gradient());
}

// A copy that the program holds: it keeps its gradient where that is asked for, and one that has
// come in 16 bits takes the next one, too. What the parameter's memory held before does not count.
TEST_P(AutocastGradients, OfCopiesThatProgramsHold) {
  const Array x = draw({4, 2, 5, 5}, -1, 1, 1, Dtype::kBFloat16);
  for (const bool retains : {false, true}) {
    const Parameter W(draw({3, 2, 3, 3}, -1, 1, 2, Dtype::kFloat32));
    W.set_grad(full(W.shape(), NAN, {Dtype::kFloat32, device()}));
    W.zero_grad();
    const Variable copy = F::cast(W, Dtype::kBFloat16);
    const Variable y = F::convolution_2d(x, copy) + F::convolution_2d(x, copy);
    y.set_grad(ones_like(y.data()));
    y.backward({.retain_grad = retains});
    EXPECT_EQ(copy.grad().defined(), retains);
    EXPECT_TRUE(all(isfinite(W.grad())).truth());
    EXPECT_TRUE(any(W.grad() != 0.0).truth());
  }
  const Parameter W(draw({7, 5}, -1, 1, 2, Dtype::kFloat32));
  const Variable copy = F::cast(W, Dtype::kBFloat16), y = F::linear(x, copy);
  y.set_grad(ones_like(y.data()));
  y.backward({.retain_grad = true});
  EXPECT_EQ(copy.grad().dtype(), Dtype::kBFloat16);
}

TEST_P(AutocastGradients, AreNamedWhereTheyAreNotFinite) {
  const Parameter W(zeros({2, 3}, {Dtype::kFloat32, device()}));
  const Array x = full({4, 3}, 1e30, {Dtype::kFloat32, device()});
  NanFinder finder;
  const FunctionHookScope hook(finder);
  const AutocastScope scope(Dtype::kBFloat16);
  const Variable y = F::linear(x, W);
  y.set_grad(full({4, 2}, 1e30, {Dtype::kBFloat16, device()}));
  expect_contains(error_of<ValueError>([&] { y.backward(); }),
                  {"Linear: the gradient of input 1, parameter", "(2, 3) float32"});
}

// Ids of tables that kernels treat differently: few, sorted, by rows; with repeated and left out
// ones.
TEST_P(AutocastGradients, OfTablesOfAnySize) {
  struct Table {
    int64_t rows, size, ids;
  };
  for (const Table t : {Table{5, 3, 20}, {40, 130, 70}, {40000, 8, 1500}, {40000, 5, 1500}})
    for (const bool deterministic : {false, true})
      for (const bool accumulate : {false, true}) {
        SCOPED_TRACE(message(t.rows, " ", t.size, " ", deterministic, " ", accumulate));
        const DeterministicScope scope(deterministic);
        const Array ids = random_array({t.ids}, 0, 1, Dtype::kFloat64, device(), 3);
        const Array x = (square(ids) * double(t.rows)).astype(Dtype::kInt32);
        const Array gy = draw({t.ids, t.size}, -1, 1, 8).astype(Dtype::kBFloat16);
        const auto gradient = [&](Dtype dtype) {
          const Parameter W(zeros({t.rows, t.size}, {dtype, device()}));
          if (accumulate) W.set_grad(ones({t.rows, t.size}, {dtype, device()}));
          const AutocastScope autocast(Dtype::kBFloat16);
          const Variable y = F::embed_id(x, W, 2);
          EXPECT_EQ(y.dtype(), dtype == Dtype::kFloat64 ? dtype : Dtype::kBFloat16);
          y.set_grad(gy.astype(y.dtype()));
          y.backward();
          return W.grad().astype(Dtype::kFloat64);
        };
        assert_allclose(gradient(Dtype::kFloat32), gradient(Dtype::kFloat64), 1e-5, 1e-6);
      }
}

TEST_P(AutocastGradients, OfTheHeadAreNotRounded) {
  const Array h = numbers({40, 6}, Dtype::kBFloat16, 1), W = numbers({9, 6}, Dtype::kBFloat16, 2),
              b = numbers({9}, Dtype::kBFloat16, 5);
  const Array t = random_array({40}, 0, 9, Dtype::kInt32, device(), 3);
  for (const F::Reduction reduction : {F::Reduction::kMean, F::Reduction::kNone}) {
    const Parameter w(W), v(b);
    Array once;
    for (int pass = 1; pass <= 2; ++pass) {
      const AutocastScope scope(Dtype::kBFloat16);
      const Variable loss = F::linear_cross_entropy(h, w, v, t, {.reduction = reduction});
      EXPECT_EQ(loss.dtype(), Dtype::kFloat32);
      loss.set_grad(full(loss.shape(), 3, {Dtype::kFloat32, device()}));
      loss.backward();
      // The gradient of the scores is rounded to 16 bits, the sums over tokens are not: those of
      // all classes are 0 for each number of h but for the first error.
      if (pass == 1) once = w.grad().copy();
      assert_allclose(w.grad(), once * double(pass), 1e-6, 1e-5);
      const double scale = 3.0 * pass * (reduction == F::Reduction::kNone ? 40 : 1);
      const Array narrow = w.grad().astype(Dtype::kBFloat16).astype(Dtype::kFloat32);
      EXPECT_TRUE(any(narrow != w.grad()).truth()) << "rounded to 16 bits";
      assert_allclose(sum(w.grad(), 0), zeros({6}, {Dtype::kFloat32, device()}), 0.01 * scale, 0);
      assert_allclose(sum(v.grad(), 0), zeros({}, {Dtype::kFloat32, device()}), 0.01 * scale, 0);
    }
  }
}

// Dtypes of results ---------------------------------------------------------------------------

class AutocastResults : public OnDevice {};

struct CountCasts : FunctionHook {
  int casts = 0;
  void forward_begins(const FunctionCall& call) override {
    casts += std::string(call.name()) == "Cast";
  }
};

TEST_P(AutocastResults, SumsOf16BitsAreInFloat32) {
  const Array x = draw({30, 40}, -1, 1, 1, Dtype::kBFloat16);
  const auto results = [](const Variable& v) {
    return Variables{F::sum(v), F::mean(v, 1), F::sum(v, 0, true)};
  };
  const Variable a(x), exact(x.astype(Dtype::kFloat64));
  Variables got;
  {
    const AutocastScope scope(Dtype::kBFloat16);
    got = results(a);
  }
  const Variables expected = results(exact);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].dtype(), Dtype::kFloat32);
    EXPECT_EQ(got[i].shape(), expected[i].shape());
    assert_allclose(got[i].data().astype(Dtype::kFloat64), expected[i].data(), 1e-5, 1e-5);
  }
  (F::sum(F::square(got[1])) + got[0]).backward();
  (F::sum(F::square(expected[1])) + expected[0]).backward();
  EXPECT_EQ(a.grad().dtype(), Dtype::kBFloat16);
  assert_allclose(a.grad().astype(Dtype::kFloat64), exact.grad(), 1e-3, 0x1p-8);
  EXPECT_EQ(results(a)[1].dtype(), Dtype::kBFloat16) << "without a scope";
}

TEST_P(AutocastResults, SoftmaxStaysIn16Bits) {
  const Array x = draw({30, 40}, -9, 9, 1, Dtype::kFloat16);
  const AutocastScope scope(Dtype::kFloat16);
  EXPECT_EQ(F::softmax(x).dtype(), Dtype::kFloat16);
  EXPECT_EQ(F::log_softmax(x).dtype(), Dtype::kFloat32);
  assert_allclose(F::softmax(x).data().astype(Dtype::kFloat64),
                  F::softmax(x.astype(Dtype::kFloat64)).data(), 1e-7, 0x1p-10);
}

// The kernels read 16-bit scores and give losses of float32; a gradient of 65536, as with a loss
// scale, is no float16.
TEST_P(AutocastResults, LossesOf16BitScoresAreInFloat32) {
  const Array t = random_array({20}, -1, 30, Dtype::kInt32, device(), 2);
  for (const Dtype low : kLows) {
    const Array x = draw({20, 30}, -4, 4, 1, low);
    const Array weight = draw({30}, 0.5, 2, 3, Dtype::kFloat32);
    for (const F::SoftmaxCrossEntropyOptions& options : std::vector<F::SoftmaxCrossEntropyOptions>{
             {},
             {.normalize = false},
             {.reduction = F::Reduction::kSum},
             {.reduction = F::Reduction::kNone},
             {.class_weight = weight, .label_smoothing = 0.1}}) {
      const Variable a(x), exact(x.astype(Dtype::kFloat32));
      const auto run = [&](const Variable& v) {
        const AutocastScope scope(low);
        CountCasts count;
        const FunctionHookScope hook(count);
        const Variable loss = F::softmax_cross_entropy(v, t, options);
        EXPECT_EQ(loss.dtype(), Dtype::kFloat32);
        EXPECT_EQ(count.casts, 0);
        loss.set_grad(full(loss.shape(), 65536, {Dtype::kFloat32, device()}));
        loss.backward();
        return loss.data();
      };
      assert_allclose(run(a), run(exact), 1e-6, 1e-6);
      EXPECT_EQ(a.grad().dtype(), low);
      EXPECT_EQ(testing::difference(a.grad(), exact.grad().astype(low)), "");
    }
  }
  const AutocastScope scope(Dtype::kBFloat16);
  const Array none = zeros({0, 3}, {Dtype::kBFloat16, device()}),
              no_labels = zeros({0}, {Dtype::kInt32, device()});
  EXPECT_EQ(F::softmax_cross_entropy(none, no_labels).dtype(), Dtype::kFloat32);
}

// Against numerical gradients: the gradient of a loss that was recorded in 16 bits, recorded.
TEST_P(AutocastResults, LossesHaveGradientsOfHigherOrder) {
  const Variable x(draw({4, 5}, -1, 1, 1, Dtype::kBFloat16));
  const Array t = random_array({4}, 0, 5, Dtype::kInt32, device(), 2);
  const AutocastScope scope(Dtype::kBFloat16);
  F::softmax_cross_entropy(x, t).backward({.create_graph = true});
  const Variable g = x.grad_variable();
  EXPECT_EQ(g.dtype(), Dtype::kBFloat16);
  F::sum(F::square(g)).backward();
  EXPECT_EQ(x.grad().dtype(), Dtype::kBFloat16);
}

// A stream of float32 goes on in 16 bits where it meets them; without a scope in the wider dtype.
TEST_P(AutocastResults, AddedNormalizationsGoOnIn16Bits) {
  const Variable x(draw({4, 6}, -1, 1, 1, Dtype::kFloat32)),
      r(draw({4, 6}, -1, 1, 2, Dtype::kBFloat16));
  const Parameter gamma(draw({6}, 0.5, 1.5, 3, Dtype::kFloat32)),
      beta(draw({6}, -1, 1, 4, Dtype::kFloat32));
  for (const bool swapped : {false, true}) {
    const AutocastScope scope(Dtype::kBFloat16);
    const F::AddNormalizationResult both = swapped ? F::add_layer_normalization(r, x, gamma, beta)
                                                   : F::add_layer_normalization(x, r, gamma, beta);
    EXPECT_EQ(both.sum.dtype(), Dtype::kBFloat16);
    EXPECT_EQ(both.y.dtype(), Dtype::kBFloat16);
    testing::assert_array_equal(both.sum.data(), x.data().astype(Dtype::kBFloat16) + r.data());
    F::sum(both.y).backward();
    EXPECT_EQ(x.grad().dtype(), Dtype::kFloat32);
    EXPECT_EQ(r.grad().dtype(), Dtype::kBFloat16);
    EXPECT_EQ(gamma.grad().dtype(), Dtype::kFloat32);
    const Variable d(draw({4, 6})), w(both.sum.data());
    EXPECT_EQ(F::add_layer_normalization(x, x, gamma, beta).sum.dtype(), Dtype::kFloat32);
  }
}

CATENA_ON_DEVICES(AutocastGradients);
CATENA_ON_DEVICES(AutocastResults);

}  // namespace
}  // namespace catena
