// Weights under autocast: cast at most once a step, by the update itself inside an optimizer, and
// to the values that each use would have made.
#include <thread>

#include "catena/autograd/autocast.h"
#include "catena/autograd/function_set.h"
#include "catena/core/graph.h"
#include "catena/functions/array.h"
#include "catena/functions/connection.h"
#include "catena/functions/loss.h"
#include "catena/kernels/copy.h"
#include "catena/optimizers/adam.h"
#include "catena/testing_markers.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

namespace F = catena::functions;

// Casts of float32 to 16 bits, counted by a provider that declines.
int g_casts = 0;
bool g_counting = false;

bool count_casts(const CopyCall& call) {
  const bool narrows = call.source.dtype() == Dtype::kFloat32 && call.destination.itemsize() == 2;
  if (g_counting && narrows) ++g_casts;
  return false;
}
template <DeviceType kType>
void provide_counter() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  kernels::copy.providers(kType);  // loads them, so that this one comes before all
  kernels::copy.provide(kType, "casts", &count_casts, 1001);
}

struct Net : FunctionSet {
  F::Convolution2D c1{1, 4, 3, {.pad = 1}}, c2{4, 4, 3, {.pad = 1}};
  F::Linear last{4 * 36, 3, {.flatten = true}};
  CATENA_FUNCTIONS(c1, c2, last)
  Variable operator()(const Variable& x) const {
    return last(F::relu(c2(F::relu(c2(F::relu(c1(x)))))));  // c2 twice
  }
  // What autocast does, each weight cast in each use.
  Variable cast_in_each_use(const Variable& x, Dtype low) const {
    const auto cast = [&](const Parameter& p) { return F::cast(p.variable(), low); };
    const F::ConvolutionOptions padded{.pad = 1};
    const auto convolve = [&](const F::Convolution2D& c, const Variable& h) {
      return F::relu(F::convolution_2d(h, cast(c.W), cast(c.b), padded));
    };
    const Variable h = convolve(c2, convolve(c2, convolve(c1, x)));
    return F::linear(F::reshape(h, {-1, 4 * 36}), cast(last.W), cast(last.b));
  }
};

class AutocastWeights : public OnDevice {
 protected:
  void SetUp() override {
    device().is_cuda() ? provide_counter<DeviceType::kCuda>() : provide_counter<DeviceType::kCpu>();
    random::seed(3);
    net_.to(device());
  }
  Array x(Dtype low) const {
    return random_array({8, 1, 6, 6}, -1, 1, dtype::float32, device(), 5).astype(low);
  }
  Variable loss(const Net& net, Dtype low) const {
    const AutocastScope scope(low);
    return F::softmax_cross_entropy(net(x(low)), t_.to(device()));
  }
  static int casts_of(const std::function<void()>& run) {
    g_casts = 0;
    g_counting = true;
    run();
    g_counting = false;
    return g_casts;
  }
  static std::vector<std::vector<double>> values(const Net& net) {
    std::vector<std::vector<double>> result;
    for (const Parameter& p : net.parameters()) result.push_back(p.data().to_vector<double>());
    return result;
  }

  Net net_;
  const Array t_ = array({0, 1, 2, 0, 1, 2, 0, 1}, cpu(0));
};

TEST_P(AutocastWeights, AreCastOnceAndThenWrittenByTheUpdate) {
  for (const Dtype low : {dtype::bfloat16, dtype::float16}) {
    Net net = net_;
    optimizers::Adam rule(0.01);
    rule.setup(net);
    for (int step = 0; step < 3; ++step) {
      Variable y;
      rule.zero_grads();
      const Array input = x(low);
      const int forward = casts_of([&] {
        const AutocastScope scope(low);
        y = net(input);
      });
      EXPECT_EQ(forward, step == 0 ? 6 : 0) << "step " << step << ", " << low;
      F::softmax_cross_entropy(F::cast(y, dtype::float32), t_.to(device())).backward();
      EXPECT_EQ(casts_of([&] { rule.update(); }), 0) << "step " << step << ", " << low;
    }
  }
}

TEST_P(AutocastWeights, GiveTheBitsOfACastInEachUse) {
  for (const Dtype low : {dtype::bfloat16, dtype::float16}) {
    Net shared = net_, each = net_;
    optimizers::Adam rule(0.01), reference(0.01);
    rule.setup(shared);
    reference.setup(each);
    for (int step = 0; step < 3; ++step) {
      rule.zero_grads();
      reference.zero_grads();
      const Variable a = loss(shared, low);
      const Variable b = F::softmax_cross_entropy(
          F::cast(each.cast_in_each_use(x(low), low), dtype::float32), t_.to(device()));
      EXPECT_EQ(a.item<double>(), b.item<double>()) << step;
      a.backward();
      b.backward();
      for (size_t k = 0; k < shared.parameters().size(); ++k) {
        const Parameter p = shared.parameters()[k], q = each.parameters()[k];
        EXPECT_EQ(p.grad().dtype(), dtype::float32);
        EXPECT_EQ(p.grad().to_vector<double>(), q.grad().to_vector<double>()) << p.name();
      }
      rule.update();
      reference.update();
      EXPECT_EQ(values(shared), values(each)) << step;
    }
  }
}

// Without an optimizer, and where something else writes a weight.
TEST_P(AutocastWeights, AreCastAgainAfterAWrite) {
  const Array input = x(dtype::bfloat16);
  const auto forward = [&] {
    const AutocastScope scope(dtype::bfloat16);
    net_(input);
  };
  EXPECT_EQ(casts_of(forward), 6);
  EXPECT_EQ(casts_of(forward), 0);
  net_.c2.b.data().fill(0.25);
  EXPECT_EQ(casts_of(forward), 1);
  EXPECT_EQ(net_.c2.b.state()->low_memory().to_vector<double>(), std::vector<double>(4, 0.25));
  optimizers::Adam rule(0.01);
  rule.setup(net_);
  EXPECT_EQ(casts_of(forward), 0) << "a move is no write";
  rule.arena(0).data().memory.fill(0.5);  // as a broadcast over the ranks does
  EXPECT_EQ(casts_of(forward), 6);
  EXPECT_EQ(net_.c1.W.state()->low_memory().to_vector<double>(), std::vector<double>(36, 0.5));
}

// One parameter's write does not touch what graphs hold of the others.
TEST_P(AutocastWeights, AreRememberedByGraphsEachForItself) {
  optimizers::Adam rule(0.01);
  rule.setup(net_);
  const auto step = [&] {
    rule.zero_grads();
    loss(net_, dtype::bfloat16).backward();
    rule.update();
  };
  step();
  const Variable before = loss(net_, dtype::bfloat16);
  net_.last.b.data().fill(1);  // no backward needs it
  net_.last.b.state()->low(dtype::bfloat16);
  before.backward();
  const Variable late = loss(net_, dtype::bfloat16);
  step();
  expect_contains(error_of<GradientError>([&] { late.backward(); }), {"overwritten"});
}

TEST_P(AutocastWeights, AreSharedByThreads) {
  const auto run = [&] {
    const NoBackprop off;
    return loss(net_, dtype::bfloat16).item<double>();
  };
  const double expected = run();
  for (int round = 0; round < 20; ++round) {
    net_.c1.W.data().note_write();
    std::vector<double> results(4);
    std::vector<std::thread> threads;
    for (double& result : results) threads.emplace_back([&] { result = run(); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(results, std::vector<double>(4, expected));
  }
}

CATENA_ON_DEVICES(AutocastWeights);

// A captured step, replayed, is the step: also after weights were loaded in between, and where no
// update writes the copies.
TEST(AutocastWeightsCaptured, FollowWhatIsWrittenBetweenReplays) {
  CATENA_NEEDS_GPU();
  const Device device = cuda_device(0);
  const DeviceScope scope(device);
  for (const bool in_optimizer : {true, false}) {
    std::vector<std::vector<std::vector<double>>> results;
    for (const bool captured : {false, true}) {
      random::seed(3);
      Net net;
      net.to(device);
      optimizers::Adam rule(0.01);
      if (in_optimizer) rule.setup(net);
      const Array x = random_array({8, 1, 6, 6}, -1, 1, dtype::bfloat16, device, 5);
      const Array t = array({0, 1, 2, 0, 1, 2, 0, 1}, cpu(0)).to(device);
      const auto step = [&] {
        const AutocastScope autocast(dtype::bfloat16);
        in_optimizer ? rule.zero_grads() : net.zero_grads();
        F::softmax_cross_entropy(net(x), t).backward();
        if (in_optimizer) return rule.update();
        for (const Parameter& p : net.parameters()) p.data() -= p.grad() * 0.01;
      };
      step();
      step();
      cuda::Graph graph;
      if (in_optimizer) rule.prepare_for_capture();
      if (captured) graph = cuda::Graph::capture(device, step);
      for (int k = 0; k < 4; ++k) {
        if (k == 2) net.c2.W.data().fill(0.125);
        captured ? graph.launch() : step();
      }
      results.emplace_back();
      for (const Parameter& p : net.parameters())
        results.back().push_back(p.data().to_vector<double>());
    }
    EXPECT_EQ(results[0], results[1]) << in_optimizer;
  }
}

}  // namespace
}  // namespace catena
