// n_step_lstm and the layer NStepLSTM beyond their records: dropout, arenas, providers.
#include "catena/functions/connection/n_step_lstm.h"

#include <algorithm>

#include "catena/autograd/backward.h"
#include "catena/core/config.h"
#include "catena/core/graph.h"
#include "catena/functions/array/get_item.h"
#include "catena/functions/noise/dropout.h"
#include "catena/functions/recompute.h"
#include "catena/kernels/rnn.h"
#include "catena/optimizers/adam.h"
#include "catena/testing_gtest.h"
#include "functions/functions_test_util.h"
#include "precision_scope.h"

namespace catena {
namespace {

// Operands of a call.
struct Operands {
  Variable x, hx, cx;
  Variables weights;
  int64_t layers() const { return static_cast<int64_t>(weights.size()) / 3; }
  Variables all() const {
    Variables result{x, hx, cx};
    result.insert(result.end(), weights.begin(), weights.end());
    return result;
  }
  F::LstmResult call(double dropout = 0, bool train = true) const {
    return F::n_step_lstm(layers(), dropout, hx, cx, weights, x, train);
  }
};

struct Extents {
  int64_t steps, sequences, inputs, cells, layers;
};

Operands operands(Device device, const Extents& z, Dtype dtype = Dtype::kFloat64) {
  uint64_t seed = 1;
  const auto draw = [&](const Shape& shape, double range) {
    return Variable(random_array(shape, -range, range, Dtype::kFloat64, cpu(), seed++)
                        .astype(dtype)
                        .to(device));
  };
  Operands p{draw({z.steps, z.sequences, z.inputs}, 1),
             draw({z.layers, z.sequences, z.cells}, 1),
             draw({z.layers, z.sequences, z.cells}, 1),
             {}};
  const double range = 1 / std::sqrt(double(z.cells));
  for (int64_t l = 0; l < z.layers; ++l) {
    p.weights.push_back(draw({4 * z.cells, l == 0 ? z.inputs : z.cells}, range));
    p.weights.push_back(draw({4 * z.cells, z.cells}, range));
    p.weights.push_back(draw({4 * z.cells}, range));
  }
  return p;
}

// Sends numbers of [0.5, 1) back from all results.
void run_back(const F::LstmResult& r) {
  const auto weigh = [](const Variable& y) {
    return random_array(y.shape(), 0.5, 1, Dtype::kFloat64, cpu(), 9)
        .astype(y.dtype())
        .to(y.device());
  };
  backward({r.hy, r.cy, r.ys}, {weigh(r.hy), weigh(r.cy), weigh(r.ys)});
}

// Results, and the gradients of all operands, in float64 on the CPU. `between` is the time between
// forward and backward.
Arrays outcome(
    const Operands& p, const std::function<void()>& between = [] {}) {
  const F::LstmResult r = p.call();
  between();
  run_back(r);
  Arrays all{r.hy.data(), r.cy.data(), r.ys.data()};
  for (const Variable& v : p.all()) all.push_back(v.grad());
  for (Array& a : all) a = a.to_cpu().astype(Dtype::kFloat64);
  return all;
}

// The largest difference, relative to the largest number of each array.
double distance(const Arrays& a, const Arrays& b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> left = a[i].to_vector<double>(), right = b[i].to_vector<double>();
    double largest = 1e-300, difference = 0;
    for (size_t k = 0; k < left.size(); ++k) {
      largest = std::max(largest, std::abs(right[k]));
      difference = std::max(difference, std::abs(left[k] - right[k]));
      if (left[k] != left[k]) difference = INFINITY;
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

class NStepLstms : public OnDevice {
 protected:
  Operands small(int64_t layers = 2, int64_t inputs = 3) const {
    return operands(device(), {4, 3, inputs, 5, layers});
  }
};

// Functions -------------------------------------------------------------------------------------

TEST_P(NStepLstms, ComputeTheSameWithoutAGraph) {
  const Operands p = small();
  const F::LstmResult recorded = p.call();
  const NoBackprop off;
  const F::LstmResult plain = p.call();
  for (const auto& [a, b] :
       {std::pair(recorded.hy, plain.hy), {recorded.cy, plain.cy}, {recorded.ys, plain.ys}})
    EXPECT_NO_THROW(assert_allclose(a.data(), b.data(), 1e-14, 1e-14));
  EXPECT_FALSE(plain.ys.requires_grad());
}

TEST_P(NStepLstms, GoBackTwice) {
  const Operands p = small();
  const F::LstmResult r = p.call();
  run_back(r);
  Arrays first;
  for (const Variable& v : p.all()) first.push_back(v.grad().copy());
  run_back(r);
  size_t i = 0;
  for (const Variable& v : p.all())
    EXPECT_EQ(testing::difference(v.grad(), first[i++]), "") << "operand " << i - 1;
}

// Parameters too, whose gradients kernels write in their place.
TEST_P(NStepLstms, SumTheGradientsOfWeightsThatLayersShare) {
  const Operands p = small(1, 5);
  std::vector<Parameter> once, twice;
  for (const Variable& w : p.weights) once.emplace_back(w.data().copy());
  for (int i = 0; i < 2; ++i)
    for (const Variable& w : p.weights) twice.emplace_back(w.data().copy());
  const auto run_back_with = [&](const std::vector<Parameter>& parameters) {
    Variables weights;
    for (size_t i = 0; i < 6; ++i) weights.push_back(parameters[i % parameters.size()].variable());
    F::sum(F::square(F::n_step_lstm(2, 0, {}, {}, weights, p.x).ys)).backward();
  };
  run_back_with(once);
  run_back_with(twice);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_NO_THROW(
        assert_allclose(once[i].grad(), twice[i].grad() + twice[i + 3].grad(), 1e-12, 1e-12));
}

TEST_P(NStepLstms, TakeSequencesWithoutSteps) {
  const Operands p = operands(device(), {0, 3, 2, 5, 2});
  const F::LstmResult r = p.call();
  EXPECT_EQ(testing::difference(r.hy.data(), p.hx.data()), "");
  EXPECT_EQ(testing::difference(r.cy.data(), p.cx.data()), "");
  EXPECT_EQ(r.ys.shape(), (Shape{0, 3, 5}));
  F::sum(r.hy * 2).backward();
  EXPECT_EQ(testing::difference(p.hx.grad(), full({2, 3, 5}, 2.0, {dtype::float64, device()})), "");
}

// Without an element of x the recurrence is computed on variables.
TEST_P(NStepLstms, TakeStepsWithoutNumbers) {
  const Operands none = operands(device(), {4, 3, 0, 5, 2}),
                 zero = operands(device(), {4, 3, 1, 5, 2});
  Variables weights = none.weights;
  weights[0] = Variable(zeros({20, 1}, {dtype::float64, device()}));
  const Array lengths = array({2, 4, 1});
  const auto a =
      F::n_step_lstm(2, 0, none.hx, none.cx, none.weights, F::PackedSequences(none.x, lengths));
  const auto b =
      F::n_step_lstm(2, 0, none.hx, none.cx, weights, F::PackedSequences(zero.x, lengths));
  EXPECT_NO_THROW(assert_allclose(a.hy.data(), b.hy.data(), 1e-12, 1e-12));
  EXPECT_NO_THROW(assert_allclose(a.cy.data(), b.cy.data(), 1e-12, 1e-12));
  EXPECT_NO_THROW(assert_allclose(a.ys.rows().data(), b.ys.rows().data(), 1e-12, 1e-12));
}

// Dropout ---------------------------------------------------------------------------------------

TEST_P(NStepLstms, DropBetweenLayersWhileTraining) {
  const Operands p = small();
  random::seed(5);
  const F::LstmResult r = p.call(0.5);
  random::seed(5);
  const Variables first(p.weights.begin(), p.weights.begin() + 3),
      second(p.weights.begin() + 3, p.weights.end());
  const auto layer = [](const Variable& states, int64_t l) {
    return F::get_item(states, {Slice(l, l + 1)});
  };
  const auto below = F::n_step_lstm(1, 0, layer(p.hx, 0), layer(p.cx, 0), first, p.x);
  const auto above =
      F::n_step_lstm(1, 0, layer(p.hx, 1), layer(p.cx, 1), second, F::dropout(below.ys, 0.5));
  EXPECT_EQ(testing::difference(r.ys.data(), above.ys.data()), "");
  EXPECT_EQ(testing::difference(r.hy.data()(0), below.hy.data()(0)), "");
  EXPECT_EQ(testing::difference(r.cy.data()(1), above.cy.data()(0)), "");
  EXPECT_NE(testing::difference(r.ys.data(), p.call().ys.data()), "");
  EXPECT_EQ(testing::difference(p.call(0.5, false).ys.data(), p.call().ys.data()), "");
}

TEST_P(NStepLstms, RefuseStatesOfOtherLayersBeforeTheyDrop) {
  Operands p = small();
  p.hx = Variable(draw({3, 3, 5}));
  EXPECT_EQ(error_of<ShapeError>([&] { p.call(0.5); }),
            "NStepLSTM: the state hx has shape (3, 3, 5), expected (n_layers, n, out) with "
            "n_layers = 2");
}

TEST_P(NStepLstms, AreRecomputedWithTheSameMask) {
  Arrays gradients[2];
  for (const bool again : {false, true}) {
    random::seed(2);
    const DeviceScope scope(device());
    F::NStepLSTM lstm(2, 3, 5, {.dropout = 0.5, .dtype = dtype::float64});
    random::seed(6);
    const Variable x(draw({4, 3, 3}));
    const auto f = [&](const Variable& v) { return lstm(v).ys; };
    F::sum(F::square(again ? F::recompute(f, x) : f(x))).backward();
    gradients[again] = lstm.gradients();
    gradients[again].push_back(x.grad());
  }
  for (size_t i = 0; i < gradients[0].size(); ++i)
    EXPECT_EQ(testing::difference(gradients[1][i], gradients[0][i]), "") << "gradient " << i;
}

// The layer -------------------------------------------------------------------------------------

TEST_P(NStepLstms, TheLayerNamesAndCopiesItsParameters) {
  const DeviceScope scope(device());
  F::NStepLSTM lstm(2, 3, 5, {.forget_bias_init = 1});
  EXPECT_EQ(lstm.parameter_names(),
            (std::vector<std::string>{"0/Wx", "0/Wh", "0/b", "1/Wx", "1/Wh", "1/b"}));
  EXPECT_EQ(lstm.in_size(), 3);
  EXPECT_EQ(lstm.out_size(), 5);
  EXPECT_EQ(lstm.layers[1].Wx.shape(), (Shape{20, 5}));
  EXPECT_EQ(lstm.layers[0].b.data().at({Slice(10, 15)}).to_vector<float>(),
            std::vector<float>(5, 1));
  EXPECT_EQ(lstm.layers[0].b.data().sum().item<float>(), 5);
  const F::NStepLSTM copy = lstm;
  EXPECT_FALSE(copy.layers[1].Wh == lstm.layers[1].Wh);
  EXPECT_EQ(testing::difference(copy.layers[1].Wh.data(), lstm.layers[1].Wh.data()), "");
}

TEST_P(NStepLstms, TheLayerRefusesSizesAndRatiosThatMakeNoSense) {
  EXPECT_EQ(error_of<ValueError>([] { F::NStepLSTM(0, 3, 5); }),
            "NStepLSTM: expected n_layers, in_size and out_size of at least 1, got 0, 3 and 5");
  EXPECT_EQ(error_of<ValueError>([] { F::NStepLSTM(1, 3, 5, {.dropout = 1}); }),
            "NStepLSTM: expected a dropout of [0, 1), got 1");
  EXPECT_THROW(F::NStepLSTM(1, 3, 5, {.dtype = dtype::int32}), DtypeError);
}

// The gradients of a layer's weights, neighbours in the arena: written over what is there, then
// added.
TEST_P(NStepLstms, WriteIntoTheGradientsOfAnArena) {
  struct Model : FunctionSet {
    F::NStepLSTM lstm{2, 3, 5, {.dtype = dtype::float64}};
    CATENA_FUNCTIONS(lstm)
  } model;
  model.to(device());
  const Array x = draw({4, 3, 3});
  F::sum(F::square(model.lstm(x).ys)).backward();
  Arrays expected;
  for (const Array& g : model.gradients()) expected.push_back(g.copy());
  optimizers::Adam optimizer;
  optimizer.setup(model);
  const Arrays before = model.gradients();
  const auto end_of = [](const Parameter& p) {
    return static_cast<char*>(p.grad().raw_data()) + p.size() * p.grad().itemsize();
  };
  const auto& [Wx, Wh, b] = model.lstm.layers[0];
  EXPECT_EQ(end_of(Wx), Wh.grad().raw_data());
  EXPECT_EQ(end_of(Wh), b.grad().raw_data());
  for (int times = 1; times <= 2; ++times) {
    if (times == 1) optimizer.zero_grads();
    F::sum(F::square(model.lstm(x).ys)).backward();
    for (size_t i = 0; i < expected.size(); ++i) {
      const Array g = model.gradients()[i];
      EXPECT_EQ(g.raw_data(), before[i].raw_data());
      EXPECT_NO_THROW(assert_allclose(g, expected[i] * double(times), 1e-12, 1e-12));
    }
  }
}

// A pass in two parts: the first computes all, the second hands out what it kept.
TEST_P(NStepLstms, LeaveWeightsForLater) {
  const DeviceScope scope(device());
  const F::NStepLSTM at_once(2, 3, 5, {.dtype = dtype::float64});
  F::NStepLSTM lstm = at_once, other = at_once;
  const Variable x(draw({4, 3, 3}));
  F::sum(F::square(lstm(x).ys)).backward();
  const Array gx = x.grad().copy();
  DeferredWeights later;
  F::sum(F::square(other(x).ys)).backward({.weights_later = &later});
  EXPECT_EQ(testing::difference(x.grad(), gx), "");
  backward_weights(later);
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(testing::difference(other.gradients()[i], lstm.gradients()[i]), "");
}

CATENA_ON_DEVICES(NStepLstms);

// Providers -------------------------------------------------------------------------------------

constexpr Extents kMedium{17, 6, 24, 40, 2};
const char *const kOurs = "cudnn:off", *const kCudnn = "lstm/cudnn:only";
// cuDNN where it can, also where it is slower.
const char* const kCudnnFirst = "lstm/cudnn:always";

Arrays expected(const Extents& z, Dtype rounded) {
  // The same numbers as in the dtype under test.
  Operands p = operands(cpu(), z, rounded);
  const auto wide = [](Variable& v) { v = Variable(v.data().astype(Dtype::kFloat64)); };
  wide(p.x), wide(p.hx), wide(p.cx);
  for (Variable& w : p.weights) wide(w);
  return outcome(p);
}

// Exact float32 keeps its digits with each provider.
TEST(LstmProviders, AgreeWithDouble) {
  CATENA_NEEDS_CUDNN();
  struct Case {
    Dtype dtype;
    Precision precision;
    double error;
  };
  for (const Case& c : {Case{Dtype::kFloat64, Precision::kFloat32, 1e-12},
                        Case{Dtype::kFloat32, Precision::kFloat32, 2e-5},
                        Case{Dtype::kFloat32, Precision::kTf32, 1e-2},
                        Case{Dtype::kFloat16, Precision::kFloat32, 2e-2},
                        Case{Dtype::kBFloat16, Precision::kFloat32, 1e-1}}) {
    for (const char* rules : {kOurs, c.dtype == Dtype::kBFloat16 ? kCudnnFirst : kCudnn}) {
      SCOPED_TRACE(message(c.dtype, " by ", rules, c.precision == Precision::kTf32 ? " tf32" : ""));
      const PrecisionScope precision(c.precision);
      const ProviderScope scope(rules);
      const Arrays got = outcome(operands(cuda_device(0), kMedium, c.dtype));
      EXPECT_LT(distance(got, expected(kMedium, c.dtype)), c.error);
    }
  }
}

// The backward call goes to the provider of the forward call, whatever the rules say by then.
TEST(LstmProviders, GoBackAsTheyWentForward) {
  CATENA_NEEDS_CUDNN();
  const Arrays right = expected(kMedium, Dtype::kFloat32);
  for (const auto& [first, then] : {std::pair(kOurs, kCudnn), {kCudnn, kOurs}}) {
    SCOPED_TRACE(first);
    std::optional<ProviderScope> scope(std::in_place, first);
    const Arrays got =
        outcome(operands(cuda_device(0), kMedium, Dtype::kFloat32), [&, then = then] {
          scope.reset();
          scope.emplace(then);
        });
    EXPECT_LT(distance(got, right), 2e-5);
  }
}

// Two passes over one graph give equal bits: cuDNN's reserve space is not used up.
TEST(LstmProviders, CudnnGoesBackTwice) {
  CATENA_NEEDS_CUDNN();
  const ProviderScope scope(kCudnn);
  const Operands p = operands(cuda_device(0), kMedium, Dtype::kFloat32);
  const F::LstmResult r = p.call();
  run_back(r);
  Arrays first;
  for (const Variable& v : p.all()) first.push_back(v.grad().copy());
  run_back(r);
  size_t i = 0;
  for (const Variable& v : p.all())
    EXPECT_NO_THROW(assert_allclose(v.grad(), first[i++], 1e-6, 1e-6));
}

TEST(LstmProviders, AreReplayedInGraphs) {
  CATENA_NEEDS_CUDNN();
  const Device device = cuda_device(0);
  const DeviceScope scope(device);
  for (const char* rules : {kOurs, kCudnn}) {
    SCOPED_TRACE(rules);
    const ProviderScope only(rules);
    F::NStepLSTM lstm(2, 24, 40), eager = lstm;
    const auto draw = [&](uint64_t seed) {
      return random_array({17, 6, 24}, -1, 1, Dtype::kFloat32, device, seed);
    };
    const Array x = draw(1);
    const auto step = [&](F::NStepLSTM& l) {
      l.zero_grads();
      F::sum(F::square(l(x).ys)).backward();
    };
    step(lstm);
    cuda::Graph graph = cuda::Graph::capture(device, [&] { step(lstm); });
    x.assign(draw(2));
    graph.launch();
    step(eager);
    for (size_t i = 0; i < 6; ++i)
      EXPECT_NO_THROW(assert_allclose(lstm.gradients()[i], eager.gradients()[i], 1e-5, 1e-5));
  }
}

// Whether cuDNN takes a forward call for so many sequences under the rules.
bool cudnn_takes(const char* rules, Dtype dtype, Precision precision, int64_t sequences) {
  const DeviceScope device(cuda_device(0));
  const ProviderScope scope(rules);
  const PrecisionScope products(precision);
  const auto draw = [&](const Shape& shape) {
    return random_array(shape, -1, 1, dtype, cuda_device(0));
  };
  const Array x = draw({3, sequences, 8}), y = draw({3, sequences, 16}), Wx = draw({64, 8}),
              Wh = draw({64, 16}), b = draw({64}), h = draw({1, sequences, 16}), c = h.copy();
  LstmCall call{};
  call.x = &x, call.y = &y, call.hT = &h, call.cT = &c;
  call.weights = {{&Wx, &Wh, &b}};
  return kernels::lstm.provider(DeviceType::kCuda, "cudnn")(call);
}

TEST(LstmProviders, CudnnLeavesWhatIsFasterAsProducts) {
  CATENA_NEEDS_CUDNN();
  const auto takes = [](const char* rules, Dtype dtype, Precision precision, int64_t sequences) {
    return cudnn_takes(rules, dtype, precision, sequences);
  };
  for (const char* rules : {"", kCudnnFirst, kCudnn}) {
    SCOPED_TRACE(rules);
    const bool asked = *rules != '\0';
    EXPECT_EQ(takes(rules, Dtype::kFloat16, Precision::kFloat32, 20), asked);
    EXPECT_EQ(takes(rules, Dtype::kFloat32, Precision::kTf32, 64), asked);
    EXPECT_TRUE(takes(rules, Dtype::kFloat32, Precision::kTf32, 20));
    EXPECT_TRUE(takes(rules, Dtype::kFloat32, Precision::kFloat32, 64));
  }
}

TEST(LstmProviders, CudnnDeclinesWhereSumsMustNotVary) {
  CATENA_NEEDS_CUDNN();
  const Operands p = operands(cuda_device(0), kMedium, Dtype::kFloat32);
  const bool before = config().deterministic;
  config().deterministic = true;
  Arrays runs[2];
  for (Arrays& run : runs) run = outcome(p);
  {
    const ProviderScope scope(kCudnn);
    EXPECT_THROW(p.call(), DeviceError);
  }
  config().deterministic = before;
  EXPECT_EQ(distance(runs[0], runs[1]), 0);
}

}  // namespace
}  // namespace catena
