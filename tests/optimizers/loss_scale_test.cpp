// Mixed precision: dynamic loss scales, skipped updates, and training with 16-bit parameters.
#include "catena/optimizers/loss_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "catena/core/graph.h"
#include "catena/functions/array.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"
#include "catena/testing_markers.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

namespace F = catena::functions;
using catena::testing::all_values;
using catena::testing::copied_state;
using catena::testing::expect_near;
using catena::testing::Model;
using catena::testing::set_gradients;

const Dtype kDtypes[] = {dtype::float32, dtype::float64, dtype::float16, dtype::bfloat16};

void make_infinite(const Parameter& p) {
  p.grad()[-1].fill(std::numeric_limits<double>::infinity());
}

TEST(LossScale, StepsThatAreNotFiniteAreSkippedAndTheScaleFalls) {
  for (const Device device : catena::testing::test_devices()) {
    for (const Dtype dtype : kDtypes) {
      Model model(dtype);
      model.to(device);
      Adam adam(0.1);
      adam.setup(model);
      const auto scale = add_loss_scale(adam, {.initial = 1024, .interval = 3});
      step(adam, model, 1);
      EXPECT_EQ(adam.t(), 1);
      EXPECT_EQ(scale->good_steps(), 1);

      const auto before = copied_state(adam);
      const auto values = all_values(model.parameters());
      for (const double bad : {double(INFINITY), -double(INFINITY), double(NAN)}) {
        set_gradients(model.parameters(), 2);
        model.l1.b.grad()[1].fill(bad);
        adam.update();
      }
      EXPECT_EQ(all_values(model.parameters()), values) << dtype;
      EXPECT_EQ(adam.t(), 1);
      EXPECT_EQ(scale->value(), 128);
      EXPECT_EQ(scale->skipped(), 3);
      EXPECT_EQ(scale->good_steps(), 0);
      for (const auto& [name, array] : adam.state()) {
        if (name.starts_with("loss_scale")) continue;
        EXPECT_EQ(array.to_vector<double>(), before.at(name).to_vector<double>()) << name;
      }

      for (int64_t t = 1; t <= 3; ++t) {
        EXPECT_EQ(scale->value(), 128);
        step(adam, model, t);
      }
      EXPECT_EQ(scale->value(), 256) << "after three good steps";
      EXPECT_EQ(scale->good_steps(), 0);
      EXPECT_EQ(adam.t(), 4);
    }
  }
}

TEST(LossScale, StaysWithinItsBounds) {
  Model model;
  SGD sgd(0.1);
  sgd.setup(model);
  const auto scale = add_loss_scale(sgd, {.initial = 4, .interval = 1, .least = 2, .most = 8});
  for (int i = 0; i < 3; ++i) step(sgd, model, 1);
  EXPECT_EQ(scale->value(), 8);
  for (int i = 0; i < 5; ++i) {
    set_gradients(model.parameters(), 1);
    make_infinite(model.l1.W);
    sgd.update();
  }
  EXPECT_EQ(scale->value(), 2);
}

// A linear layer whose gradients follow from its input alone.
struct Probe {
  F::Linear layer;
  explicit Probe(Dtype dtype, Device device = cpu(0)) : layer(make(dtype)) { layer.to(device); }
  static F::Linear make(Dtype dtype) {
    const DeviceScope scope(cpu(0));
    F::LinearOptions options;
    options.initialW = catena::testing::Pair::values({2, 3}, dtype, 0.5);
    options.nobias = true;
    return F::Linear(3, 2, options);
  }
  Variable loss(double x) {
    const Array input = full({1, 3}, x, {layer.W.dtype(), layer.W.device()});
    return F::sum(layer(Variable::constant(input)));
  }
};

// Gradients of 2^-27 are zero in float16, but not with a scale.
TEST(LossScale, KeepsSmallGradients) {
  for (const Device device : catena::testing::test_devices()) {
    for (const bool scaled : {false, true}) {
      Probe probe(dtype::float16, device);
      SGD sgd(1024);
      sgd.setup(probe.layer);
      const auto scale = add_loss_scale(sgd, {.initial = 1024});
      const Array& master = sgd.state_of(probe.layer.W)[0];
      const double before = master.to_vector<double>()[0];
      sgd.zero_grads();
      const Variable loss = probe.loss(0x1p-13) * 0x1p-14;
      (scaled ? scale->scaled(loss) : loss).backward();
      sgd.update();
      const double step = before - master.to_vector<double>()[0];
      EXPECT_EQ(step, scaled ? 0x1p-17 : 0) << device;
    }
  }
}

TEST(LossScale, StatesWithoutItSayWhenToAddIt) {
  Probe a(dtype::float32), b(dtype::float32);
  Adam with, without;
  with.setup(a.layer);
  without.setup(b.layer);
  add_loss_scale(with);
  expect_contains(error_of<IoError>([&] { with.load_state(copied_state(without)); }),
                  {"missing: loss_scale/value", "call add_loss_scale after it is loaded"});
  expect_contains(error_of<IoError>([&] { without.load_state(copied_state(with)); }),
                  {"unknown: loss_scale/value", "call add_loss_scale before it is loaded"});
}

TEST(LossScale, ScalesAndUnscalesExactly) {
  for (const Dtype dtype : {dtype::float32, dtype::float64}) {
    Probe a(dtype), b(dtype);
    Adam with(0.1), without(0.1);
    with.setup(a.layer);
    without.setup(b.layer);
    const auto scale = add_loss_scale(with);
    for (Optimizer* rule : {static_cast<Optimizer*>(&with), static_cast<Optimizer*>(&without)})
      rule->add_hook("decay", weight_decay(0.1));
    for (const double x : {0.3, -1.7, 0.01}) {
      with.zero_grads();
      without.zero_grads();
      const Variable scaled = scale->scaled(a.loss(x));
      EXPECT_EQ(scaled.dtype(), dtype);
      scaled.backward();
      b.loss(x).backward();
      EXPECT_DOUBLE_EQ(with.compute_grads_norm(), without.compute_grads_norm());
      with.update();
      without.update();
      EXPECT_EQ(all_values(a.layer.parameters()), all_values(b.layer.parameters()));
    }
    EXPECT_EQ(scale->skipped(), 0);
  }
  DynamicLossScale alone({.initial = 64});
  for (const Dtype dtype : {dtype::float16, dtype::bfloat16}) {
    const Variable loss(full({}, 3, dtype));
    const Variable product = alone.scaled(loss);
    EXPECT_EQ(product.dtype(), dtype::float32);
    EXPECT_EQ(product.data().item<double>(), 192);
    product.backward();
    EXPECT_EQ(loss.grad().item<double>(), 64);
  }
}

TEST(LossScale, ClippingAndDecaySeeUnscaledGradients) {
  Probe a(dtype::float32), b(dtype::float32);
  SGD with(0.1), without(0.1);
  with.setup(a.layer);
  without.setup(b.layer);
  const auto scale = add_loss_scale(with);
  for (SGD* rule : {&with, &without}) {
    rule->add_hook("clip", gradient_clipping(0.5));
    rule->add_hook("decay", weight_decay(0.1));
    rule->add_hook("again", gradient_clipping(0.4));
  }
  for (const double x : {0.3, -1.7, 0.01}) {
    with.zero_grads();
    without.zero_grads();
    scale->scaled(a.loss(x)).backward();
    b.loss(x).backward();
    with.clip_grads(0.6);
    without.clip_grads(0.6);
    with.weight_decay(0.01);
    without.weight_decay(0.01);
    with.update();
    without.update();
    expect_near(all_values(a.layer.parameters()), all_values(b.layer.parameters()), 1e-6);
  }
}

TEST(LossScale, HooksMaySeeTheGradients) {
  Probe probe(dtype::float32);
  SGD sgd(0.1);
  sgd.setup(probe.layer);
  const auto scale = add_loss_scale(sgd);
  double seen = 0;
  sgd.add_hook("look", [&](UpdateContext& update) {
    update.apply();
    seen = probe.layer.W.grad().to_vector<double>()[0];
  });
  sgd.zero_grads();
  scale->scaled(probe.loss(0.25)).backward();
  sgd.update();
  EXPECT_EQ(seen, 0.25);
}

// A clipped factor of 2^-26 is zero in float16, the gradients that it makes are not.
TEST(LossScale, FactorsAreNotRoundedTo16Bits) {
  for (const Device device : catena::testing::test_devices()) {
    for (const Dtype dtype : {dtype::float16, dtype::bfloat16}) {
      Model model(dtype);
      model.to(device);
      SGD sgd(0.1);
      sgd.setup(model);
      const auto scale = add_loss_scale(sgd, {.initial = 0x1p24});
      int64_t count = 0;
      for (const Parameter& p : model.parameters()) {
        count += p.size();
        p.set_grad(full(p.shape(), 4096, {dtype, device}));
      }
      const double norm = 0x1p-12 * std::sqrt(double(count));
      double seen = 0, clipped = 0;
      sgd.add_hook("look", [&](UpdateContext& update) {
        update.clip_norm(norm / 4);
        update.apply();
        seen = model.l1.W.grad().to_vector<double>()[0];
        clipped = sgd.compute_grads_norm();  // of what is in memory now
      });
      sgd.update();
      EXPECT_NEAR(seen / 0x1p-14, 1, 0.01) << dtype;
      EXPECT_NEAR(clipped / (norm / 4), 1, 0.01) << dtype;
    }
  }
}

TEST(LossScale, OneDeviceSkipsForAll) {
  Model model;
  model.l1.to(cpu(1));
  MomentumSGD rule(0.1);
  rule.setup(model);
  const auto scale = add_loss_scale(rule, {.initial = 16});
  const auto before = all_values(model.parameters());
  for (const Parameter& p : {Parameter(model.l1.W), Parameter(model.l2.W)}) {
    set_gradients(model.parameters(), 1);
    make_infinite(p);
    rule.update();
    EXPECT_EQ(all_values(model.parameters()), before);
  }
  EXPECT_EQ(scale->value(), 4);
  EXPECT_EQ(rule.t(), 0);
  step(rule, model, 1);
  EXPECT_NE(all_values(model.parameters()), before);
  EXPECT_EQ(rule.t(), 1);
  const Variable loss(full({}, 3, {dtype::float32, cpu(1)}));
  EXPECT_EQ(scale->scaled(loss).data().item<double>(), 12) << "the scale is on every device";
}

TEST(LossScale, FollowsAModelThatMoves) {
  Model model(dtype::bfloat16);
  Adam adam(0.1);
  adam.setup(model);
  const auto scale = add_loss_scale(adam, {.initial = 16});
  const auto bad_step = [&] {
    set_gradients(model.parameters(), 1);
    make_infinite(model.l2.b);
    adam.update();
  };
  bad_step();
  step(adam, model, 1);
  const auto masters = adam.state_of(model.l1.W)[2].to_vector<double>();
  model.to(cpu(2));
  adam.settle_layout();
  EXPECT_EQ(adam.state_of(model.l1.W)[2].to_vector<double>(), masters) << "all bits move along";
  EXPECT_EQ(adam.state_of(model.l1.W)[2].device(), cpu(2));
  bad_step();
  EXPECT_EQ(scale->value(), 4);
  EXPECT_EQ(adam.t(), 1);
}

TEST(LossScale, TakesModelsWithoutElements) {
  const Parameter none(zeros({0}, dtype::float16));
  Adam adam;
  adam.setup({none});
  const auto scale = add_loss_scale(adam, {.interval = 2});
  for (int i = 0; i < 2; ++i) {
    adam.zero_grads();
    adam.update();
  }
  EXPECT_EQ(adam.t(), 2);
  EXPECT_EQ(scale->value(), 65536);
}

// States ------------------------------------------------------------------------------------------

void train(Optimizer& optimizer, Model& model, int64_t from, int64_t to) {
  for (int64_t t = from; t <= to; ++t) {
    set_gradients(model.parameters(), t);
    if (t % 5 == 0) make_infinite(model.l1.W);
    optimizer.update();
  }
}

TEST(LossScale, StatesResumeBitForBit) {
  for (const Dtype dtype : kDtypes) {
    const LossScaleOptions options{.initial = 256, .interval = 3};
    Model whole(dtype);
    AdamW once(0.01);
    once.setup(whole);
    const auto scale = add_loss_scale(once, options);
    train(once, whole, 1, 12);

    Model first(dtype);
    AdamW a(0.01);
    a.setup(first);
    add_loss_scale(a, options);
    train(a, first, 1, 7);
    const auto saved = copied_state(a);
    EXPECT_EQ(saved.count("master/l1/W"), itemsize(dtype) == 2 ? 1u : 0u);
    EXPECT_TRUE(saved.count("loss_scale/value") && saved.count("loss_scale/good_steps") &&
                saved.count("loss_scale/skipped"));

    for (const bool model_first : {true, false}) {  // in any order
      Model second(dtype);
      AdamW b(1.0);
      b.setup(second);
      const auto resumed = add_loss_scale(b, options);
      if (model_first) second.copy_parameters_from(first);
      b.load_state(saved);
      if (!model_first) second.copy_parameters_from(first);
      EXPECT_EQ(b.t(), 6);
      train(b, second, 8, 12);
      EXPECT_EQ(all_values(second.parameters()), all_values(whole.parameters())) << dtype;
      EXPECT_EQ(resumed->value(), scale->value());
      EXPECT_EQ(resumed->good_steps(), scale->good_steps());
      EXPECT_EQ(resumed->skipped(), 2);
      EXPECT_EQ(b.t(), once.t());
      const auto x = b.state(), y = once.state();
      for (size_t i = 0; i < x.size(); ++i)
        EXPECT_EQ(x[i].second.to_vector<double>(), y[i].second.to_vector<double>()) << x[i].first;
    }
  }
}

TEST(LossScale, AStateWithoutMasterCopiesTakesTheParameters) {
  Model wide(dtype::float32), narrow(dtype::bfloat16);
  Adam a(0.1), b(0.1);
  a.setup(wide);
  b.setup(narrow);
  train(a, wide, 1, 3);
  for (size_t k = 0; k < wide.parameters().size(); ++k)
    narrow.parameters()[k].data().assign(wide.parameters()[k].data());  // as files are loaded
  b.load_state(copied_state(a));
  EXPECT_EQ(b.t(), 3);
  EXPECT_EQ(b.state_of(narrow.l1.W)[0].to_vector<float>(),
            a.state_of(wide.l1.W)[0].to_vector<float>());
  EXPECT_EQ(b.state_of(narrow.l1.W)[2].to_vector<float>(), narrow.l1.W.data().to_vector<float>());

  expect_contains(error_of<IoError>([&] { a.load_state(copied_state(b)); }),
                  {"unknown: master/l1/W", "Master copies belong to 16-bit parameters"});
  auto partial = copied_state(b);
  partial.erase("master/l1/W");
  expect_contains(error_of<IoError>([&] { b.load_state(partial); }), {"missing: master/l1/W"});
}

// Whatever writes a 16-bit parameter need not know of its master copy.
TEST(MasterCopies, FollowParametersThatAreWritten) {
  for (const Dtype dtype : {dtype::float16, dtype::bfloat16}) {
    Model model(dtype);
    SGD sgd(0.0);
    sgd.setup(model);
    model.l2.b.copy_from(full({2}, 5, dtype));
    step(sgd, model, 1);
    EXPECT_EQ(model.l2.b.data().to_vector<float>(), (std::vector<float>{5, 5}));
    EXPECT_EQ(sgd.state_of(model.l2.b)[0].to_vector<float>(), (std::vector<float>{5, 5}));
  }
}

// Errors ------------------------------------------------------------------------------------------

TEST(LossScale, RefusesNonsense) {
  const auto refused = [](const LossScaleOptions& options, const char* text) {
    expect_contains(error_of<ValueError>([&] { DynamicLossScale{options}; }), {text});
  };
  refused({.growth = 0.5}, "growth of at least 1, got 0.5");
  refused({.backoff = 0}, "backoff in (0, 1], got 0");
  refused({.interval = 0}, "positive interval, got 0");
  refused({.initial = 0.5}, "0 < least <= initial <= most, got least 1");
  refused({.initial = NAN}, "initial nan");
  SGD sgd;
  add_loss_scale(sgd);
  expect_contains(error_of<ValueError>([&] { add_loss_scale(sgd); }), {"has a loss scale already"});
  struct Plain : Optimizer {
    Plain() : Optimizer("lr", 0.1) {}
  } plain;
  expect_contains(error_of<ValueError>([&] { add_loss_scale(plain); }),
                  {"the stage 'loss scale' skips updates"});
}

// Training ----------------------------------------------------------------------------------------

struct Small : FunctionSet {
  F::Linear l1, l2;
  explicit Small(Dtype dtype) : l1(make(16, 6, dtype)), l2(make(3, 16, dtype)) {}
  CATENA_FUNCTIONS(l1, l2)
  static F::Linear make(int64_t out, int64_t in, Dtype dtype) {
    const DeviceScope scope(cpu(0));
    F::LinearOptions options;
    options.initialW = catena::testing::Pair::values({out, in}, dtype, -0.3);
    return F::Linear(in, out, options);
  }
  Variable loss(const Array& x, const Array& t) {
    const Variable y = l2(F::relu(l1(Variable::constant(x))));
    return F::softmax_cross_entropy(F::cast(y, dtype::float32), t);
  }
};

// A prepared update waits for nothing and reads its numbers from the device, so that the same calls
// may be captured: host and device values give equal bits. On a GPU the replay is compared too.
TEST(MixedPrecision, ReplaysEqualEagerStepsBitForBit) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  const auto run = [&](bool replay) {
    Small model(dtype::float16);
    model.to(gpu);
    Adam adam(0.01);
    adam.setup(model);
    const auto scale = add_loss_scale(adam, {.initial = 65536.0 * 64, .interval = 5});
    const Array x = catena::testing::Pair::values({8, 6}, dtype::float16, -1).to(gpu);
    const Array t = zeros({8}, {dtype::int32, gpu});
    const auto step = [&] {
      adam.zero_grads();
      scale->scaled(model.loss(x, t)).backward();
      adam.update();
    };
    cuda::Graph graph;
    for (int i = 0; i < 40; ++i) {
      if (replay && i == 3) {
        adam.prepare_for_capture();
        graph = cuda::Graph::capture(gpu, step);
      }
      graph.defined() ? graph.launch() : step();
    }
    EXPECT_GT(scale->skipped(), 0);
    auto values = all_values(model.parameters());
    values.push_back({scale->value(), double(scale->skipped()), double(adam.t())});
    return values;
  };
  EXPECT_EQ(run(true), run(false));
}

// What `steps` updates with infinite gradients write.
std::string log_of_infinite_steps(int steps, const LossScaleOptions& options) {
  const Parameter p(ones({3}, dtype::float32));
  SGD sgd(0.1);
  sgd.setup({p});
  const auto scale = add_loss_scale(sgd, options);
  scale->scaled(Variable::constant(ones({}, dtype::float32)));
  ::testing::internal::CaptureStderr();
  for (int t = 0; t < steps; ++t) {
    p.set_grad(full({3}, INFINITY, dtype::float32));
    sgd.update();
  }
  EXPECT_EQ(scale->skipped(), steps);
  return ::testing::internal::GetCapturedStderr();
}

TEST(LossScaleWarnings, ARowOfSkippedUpdatesAtTheLeastScaleIsNoticed) {
  const int64_t row = DynamicLossScale::kHopeless;
  const std::string text = log_of_infinite_steps(int(3 * row), {.initial = 1});
  const std::string what = "all of the last 50 updates were skipped";
  const size_t first = text.find(what);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find("down to its least, 1"), std::string::npos) << text;
  EXPECT_EQ(text.find(what, first + 1), std::string::npos) << "shown once";
  EXPECT_NE(log_of_infinite_steps(int(3 * row), {}).find(what), std::string::npos);
  EXPECT_EQ(log_of_infinite_steps(int(row) - 1, {.initial = 1}), "");
  EXPECT_EQ(log_of_infinite_steps(int(3 * row), {.backoff = 1}), "") << "the scale does not fall";
}

// Skips from before a state was saved are not those of the updates after it was loaded.
TEST(LossScaleWarnings, SkipsOfALoadedStateAreOld) {
  const Parameter p(ones({3}, dtype::float32));
  SGD sgd(0.1);
  sgd.setup({p});
  const auto scale = add_loss_scale(sgd, {.initial = 1});
  auto state = copied_state(sgd);
  state["loss_scale/skipped"].fill(2.0 * DynamicLossScale::kHopeless);
  sgd.load_state(state);
  EXPECT_EQ(scale->skipped(), 2 * DynamicLossScale::kHopeless);
  scale->scaled(Variable::constant(ones({}, dtype::float32)));
  ::testing::internal::CaptureStderr();
  for (int t = 0; t < 2 * DynamicLossScale::kHopeless; ++t) {
    p.set_grad(ones({3}, dtype::float32));
    sgd.update();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// A rank may have had no samples in its first steps.
TEST(LossScaleWarnings, AScaleThatNoLossTakesIsNoticedAtTheThirdUpdate) {
  const Parameter p(ones({3}, dtype::float32));
  SGD sgd(0.1);
  sgd.setup({p});
  add_loss_scale(sgd);
  ::testing::internal::CaptureStderr();
  std::vector<bool> was_warned;
  for (int t = 0; t < 4; ++t) {
    p.set_grad(ones({3}, dtype::float32));
    sgd.update();
    const std::string text = ::testing::internal::GetCapturedStderr();
    was_warned.push_back(text.find("no loss was multiplied by it") != std::string::npos);
    ::testing::internal::CaptureStderr();
  }
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(was_warned, (std::vector<bool>{false, false, true, false}));
}

}  // namespace
}  // namespace catena::optimizers
