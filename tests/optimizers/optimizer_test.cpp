// The base class: setup, gradients, norms, hooks, rules of one's own, states.
#include "catena/optimizers/optimizer.h"

#include <gtest/gtest.h>

#include <thread>

#include "catena/autograd/function_node.h"
#include "catena/autograd/placement.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/moving_average.h"
#include "catena/optimizers/schedules.h"
#include "catena/optimizers/sgd.h"
#include "catena/testing.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

using catena::testing::all_values;
using catena::testing::copied_state;
using catena::testing::expect_near;
using catena::testing::Model;
using catena::testing::set_gradients;
using catena::testing::step;

// p -= rate * sign-free gradient, written as users would.
struct Plain : Optimizer {
  explicit Plain(double lr) : Optimizer("lr", lr) {}
  std::vector<std::string> state_names() const override { return {"count"}; }
  Arrays init_state(const Array& parameter, const Array&) override {
    return {scalar_array(0, {dtype::float64, parameter.device()})};
  }
  void update_one_cpu(const Array& p, const Array& g, const Arrays& states) override {
    devices.push_back(current_device());
    states[0] += 1;
    p -= g * lr();
  }
  void update_one_gpu(const Array& p, const Array& g, const Arrays& states) override {
    update_one_cpu(p, g, states);
  }
  std::vector<Device> devices;
};

struct Grown : Parameterized {
  OwnedParameter W;
  explicit Grown(Dtype dtype) : W(ones({2}, dtype)) {}
  CATENA_PARAMETERS(W)
};

TEST(Optimizer, ReportsModelsWithoutParameters) {
  struct Empty : FunctionSet {
    void visit_parameters(const Visitor&, const std::string&) override {}
  } model;
  SGD sgd;
  EXPECT_THROW(sgd.setup(model), ValueError);
  EXPECT_THROW(sgd.update(), ValueError);
  EXPECT_THROW(sgd.zero_grads(), ValueError);
}

// Update_one gets the piece of a parameter that this rank has: a rule may refuse it.
TEST(Optimizer, RulesMayRefuseParameters) {
  struct Whole : Plain {
    using Plain::Plain;
    void check_parameter(const std::string& name, const Parameter& p) const override {
      CATENA_CHECK(ValueError, p.placement() == nullptr, name, " is ",
                   p.placement()->text(p.shape()));
    }
  } rule(0.1);
  Model model;
  rule.setup(model);
  const Parameter before = model.l1.W;
  before.place(cut_along(before.shape(), 0, 5, 10, {.index = 1, .count = 2}));
  expect_contains(error_of<ValueError>([&] { rule.setup(model); }),
                  {"/l1/W is 5 of 10 rows, ranks 1/2"});
}

// A layer is added to a model that is being trained.
TEST(Optimizer, SetupAgainKeepsWhatItHeld) {
  for (const Dtype dtype : {dtype::float32, dtype::float16}) {
    FunctionBag model;
    const auto add = [&](const std::string& name) { model.add(name, Grown(dtype)); };
    const auto states = [](Adam& adam, const Parameter& p) {
      std::vector<std::vector<double>> values;
      for (const Array& state : adam.state_of(p))
        values.push_back(state.astype(dtype::float64).to_vector<double>());
      return values;
    };
    add("b");
    Adam adam(0.1);
    const auto average = add_moving_average(adam, 0.5);
    adam.setup(model);
    const Parameter b = model.get<Grown>("b").W;
    for (int i = 0; i < 3; ++i) step(adam, model, i + 1);
    const auto before = states(adam, b);
    const std::vector<double> mean = average->of(b).to_vector<double>();
    add("a");
    adam.setup(model);
    EXPECT_EQ(adam.t(), 3);
    EXPECT_EQ(states(adam, b), before);
    EXPECT_EQ(average->of(b).to_vector<double>(), mean);
    const Parameter a = model.get<Grown>("a").W;
    EXPECT_EQ(states(adam, a)[0], std::vector<double>(2, 0));
    FunctionBag another;
    another.add("b", Grown(dtype));
    adam.setup(another);
    EXPECT_EQ(adam.t(), 0) << "names alone do not make it the same model";
    EXPECT_EQ(states(adam, another.get<Grown>("b").W)[0], std::vector<double>(2, 0));
  }
}

TEST(Optimizer, SetupOfAListNamesByPosition) {
  const Parameter a(ones({2}, dtype::float32)), b(ones({3}, dtype::float32));
  SGD sgd(1.0);
  sgd.setup({a, b, a});
  EXPECT_EQ(sgd.layout().parameters().size(), 2u);
  EXPECT_EQ(b.name(), "/1");
  a.set_grad(ones({2}, dtype::float32));
  sgd.update();
  EXPECT_EQ(a.data().to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(b.data().to_vector<float>(), (std::vector<float>{1, 1, 1}));
}

TEST(Optimizer, SetupTakesWhatCollectParametersGives) {
  Model model, same;
  SGD sgd(0.5), of_model(0.5);
  sgd.setup(model.collect_parameters());
  EXPECT_EQ(sgd.layout().parameters().size(), model.parameters().size());
  of_model.setup(same);
  const auto before = all_values(model.parameters());
  step(sgd, model, 1);
  step(of_model, same, 1);
  EXPECT_NE(all_values(model.parameters()), before);
  EXPECT_EQ(all_values(model.parameters()), all_values(same.parameters()));
}

TEST(Optimizer, ZeroGradsWritesNothingUntilItMust) {
  Model model;
  SGD sgd(1.0);
  sgd.setup(model);
  set_gradients(model.parameters(), 1);
  const void* before = sgd.layout().arenas()[0].gradient().memory.raw_data();
  const uint64_t writes = sgd.layout().arenas()[0].gradient().memory.storage()->version;
  sgd.zero_grads();
  EXPECT_EQ(sgd.layout().arenas()[0].gradient().memory.storage()->version, writes);
  EXPECT_TRUE(model.l1.W.state()->is_stale());
  const auto values = all_values(model.parameters());
  sgd.update();  // nothing flowed: the old gradients must not be used again
  EXPECT_EQ(all_values(model.parameters()), values);
  EXPECT_EQ(sgd.layout().arenas()[0].gradient().memory.raw_data(), before);
  EXPECT_EQ(sgd.compute_grads_norm(), 0);
}

TEST(Optimizer, GradientsAddUpWithoutZeroGrads) {
  Model model;
  SGD sgd(1.0);
  sgd.setup(model);
  const Array one = ones({2}, dtype::float32);
  model.l2.b.accumulate_grad(one);
  model.l2.b.accumulate_grad(one);
  const std::vector<float> before = model.l2.b.data().to_vector<float>();
  sgd.update();
  EXPECT_EQ(model.l2.b.data().to_vector<float>()[0], before[0] - 2);
}

double reference_norm(const Parameters& parameters) {
  double squares = 0;
  for (const Parameter& p : parameters) {
    for (const double g : p.grad().to_vector<double>()) squares += g * g;
  }
  return std::sqrt(squares);
}

TEST(Optimizer, NormClippingAndDecayOnTheHost) {
  Model model;
  model.l1.to(cpu(1));  // the norm is over all devices
  SGD sgd;
  sgd.setup(model);
  set_gradients(model.parameters(), 2);
  const double norm = reference_norm(model.parameters());
  EXPECT_NEAR(sgd.compute_grads_norm(), norm, 1e-6);
  sgd.clip_grads(2 * norm);
  EXPECT_NEAR(sgd.compute_grads_norm(), norm, 1e-6);
  sgd.clip_grads(norm / 2);
  EXPECT_NEAR(sgd.compute_grads_norm(), norm / 2, 1e-6);
  EXPECT_NEAR(model.l1.W.grad().to_vector<double>()[1],
              catena::testing::gradient_value(2, 0, 1) / 2, 1e-6);
  EXPECT_THROW(sgd.clip_grads(0), ValueError);

  const double g = model.l2.W.grad().to_vector<double>()[0],
               p = model.l2.W.data().to_vector<double>()[0];
  sgd.weight_decay(0.25);
  EXPECT_NEAR(model.l2.W.grad().to_vector<double>()[0], g + 0.25 * p, 1e-6);
}

TEST(Optimizer, ClippingLeavesZeroGradientsAlone) {
  Model model;
  MomentumSGD sgd(0.1);
  sgd.setup(model);
  sgd.add_hook("clip", gradient_clipping(0.1));
  const auto before = all_values(model.parameters());
  sgd.zero_grads();
  sgd.update();
  EXPECT_EQ(all_values(model.parameters()), before);
}

TEST(Optimizer, HooksRunInOrderAndSeeWhatTheRuleWouldSee) {
  Model model;
  SGD sgd(1.0);
  sgd.setup(model);
  std::vector<std::string> calls;
  double seen = 0;
  sgd.add_hook("decay", weight_decay(0.5));
  sgd.add_hook("look", [&](UpdateContext& update) {
    update.apply();
    seen = model.l2.b.grad().to_vector<double>()[0];
    calls.push_back("look");
  });
  sgd.add_hook("last", [&](UpdateContext&) { calls.push_back("last"); });
  set_gradients(model.parameters(), 1);
  const double p = model.l2.b.data().to_vector<double>()[0],
               g = model.l2.b.grad().to_vector<double>()[0];
  sgd.update();
  EXPECT_EQ(calls, (std::vector<std::string>{"look", "last"}));
  EXPECT_NEAR(seen, g + 0.5 * p, 1e-6);
  EXPECT_NEAR(model.l2.b.data().to_vector<double>()[0], p - (g + 0.5 * p), 1e-6);  // decayed once
  sgd.remove_hook("look");
  sgd.remove_hook("decay");
  sgd.update();
  EXPECT_EQ(calls.size(), 3u);
  EXPECT_THROW(sgd.remove_hook("look"), IndexError);
}

TEST(Optimizer, RulesOfUsersGetEachParameterOnItsDevice) {
  Model model;
  model.l1.to(cpu(1));
  Plain plain(0.1);
  plain.setup(model);
  SGD sgd(0.1);
  Model twin;
  sgd.setup(twin);
  for (int64_t t = 1; t <= 3; ++t) {
    plain.add_hook("decay", weight_decay(0.1));
    sgd.add_hook("decay", weight_decay(0.1));
    step(plain, model, t);
    step(sgd, twin, t);
  }
  expect_near(all_values(model.parameters()), all_values(twin.parameters()), 1e-6);
  EXPECT_EQ(std::count(plain.devices.begin(), plain.devices.end(), cpu(1)), 6);
  EXPECT_EQ(plain.state_of(model.l1.W)[0].item<double>(), 3);
  model.l1.to(cpu(0));
  step(plain, model, 4);
  EXPECT_EQ(plain.state_of(model.l1.W)[0].item<double>(), 4);

  struct Nothing : Optimizer {
    Nothing() : Optimizer("lr", 1) {}
  } nothing;
  nothing.setup(model);
  EXPECT_THROW(nothing.update(), ValueError);
}

TEST(Optimizer, StatesOfUsersMayDependOnTheDevice) {
  struct Rule : Optimizer {
    Rule() : Optimizer("lr", 1) {}
    std::vector<std::string> state_names() const override { return {"count"}; }
    Arrays init_state_cpu(const Array& p, const Array&) override { return {full_like(p, 7.0)}; }
    Arrays init_state_gpu(const Array& p, const Array&) override { return {full_like(p, 9.0)}; }
    void update_one(const Array&, const Array&, const Arrays&) override {}
  };
  struct Plain : Optimizer {
    Plain() : Optimizer("lr", 1) {}
    std::vector<std::string> state_names() const override { return {"count"}; }
    void update_one(const Array&, const Array&, const Arrays&) override {}
  };
  for (const Device device : testing::devices()) {
    Model model;
    Rule rule;
    rule.setup(model.to(device));
    const Array state = rule.state_of(model.l1.W)[0];
    EXPECT_EQ(state.device(), device);
    EXPECT_EQ(state.to_vector<double>()[0], device.is_cpu() ? 7 : 9);
    Plain plain;
    plain.setup(model);
    EXPECT_EQ(plain.state_of(model.l1.W)[0].to_vector<double>()[0], 0) << "zeros by default";
  }
}

// Whether or not they share an arena with parameters that have some.
TEST(Optimizer, RulesOfUsersGetParametersWithoutElements) {
  const Parameter alone(zeros({0}, dtype::float64)), beside(zeros({2, 0}, dtype::float32)),
      some(ones({2}, dtype::float32));
  Plain plain(0.5);
  plain.setup({alone, beside, some});
  for (int t = 0; t < 3; ++t) {
    plain.zero_grads();
    some.set_grad(ones({2}, dtype::float32));
    plain.update();
  }
  for (const Parameter& p : {alone, beside, some})
    EXPECT_EQ(plain.state_of(p)[0].item<double>(), 3) << p.shape();
  EXPECT_EQ(some.data().to_vector<double>(), (std::vector<double>{-0.5, -0.5}));
}

TEST(Optimizer, AccumulatesGradientsOfReplicas) {
  for (const bool replica_in_arena : {false, true}) {
    Model master;
    SGD sgd(0.5), other;
    sgd.setup(master);
    Model replica = master;
    replica.to(cpu(1));
    if (replica_in_arena) other.setup(replica);
    set_gradients(master.parameters(), 1);
    replica.zero_grads();
    set_gradients(replica.parameters(), 2);
    const double p = master.l1.W.data().to_vector<double>()[4];
    sgd.accumulate_grads(replica.gradients());
    sgd.update();
    const double g =
        catena::testing::gradient_value(1, 0, 4) + catena::testing::gradient_value(2, 0, 4);
    EXPECT_NEAR(master.l1.W.data().to_vector<double>()[4], p - 0.5 * g, 1e-6);

    sgd.zero_grads();  // the first contribution overwrites
    sgd.accumulate_grads(replica);
    EXPECT_EQ(master.l2.W.grad().to_vector<float>(), replica.l2.W.grad().to_vector<float>());
  }
  Model master;
  SGD sgd;
  sgd.setup(master);
  EXPECT_THROW(sgd.accumulate_grads(Arrays(3)), ValueError);
}

// That steps go on with the same bits is tested for each rule in rules_test.cpp.
TEST(Optimizer, StatesBringTheirNumbersAndChangeNothingWhereTheyDoNotFit) {
  Model model;
  Adam a(0.01), b(1.0);
  a.setup(model);
  a.set_beta1(0.8);
  step(a, model, 1);
  auto saved = copied_state(a);
  EXPECT_TRUE(saved.count("m/l1/W") && saved.count("v/l2/b") && saved.count("t") &&
              saved.count("alpha"));
  Model second = model;
  b.setup(second);
  b.prepare_for_capture();
  b.load_state(saved);
  EXPECT_EQ(b.t(), 1);
  EXPECT_EQ(b.alpha(), 0.01);
  EXPECT_EQ(b.beta1(), 0.8);

  saved.erase("m/l1/W");
  saved["v/l1/W"] = zeros({2}, dtype::float32);
  saved["more"] = zeros({2});
  step(b, second, 2);
  expect_contains(
      error_of<IoError>([&] { b.load_state(saved); }),
      {"missing: m/l1/W", "v/l1/W: expected (5, 3) float32, got (2,)", "unknown: more"});
  EXPECT_EQ(b.t(), 2);
}

// Adds its inputs, recording itself.
Variable recorded_sum(const Variable& a, const Variable& b) {
  struct Sum : FunctionNode {
    std::string label() const override { return "Sum"; }
    void backward(BackwardContext& c) override {
      for (const int i : {0, 1}) c.set_grad(i, c.grad_output());
    }
  };
  const Variable* const inputs[] = {&a, &b};
  return (new Sum)->connect(inputs, add(a.data(), b.data()));
}

TEST(Optimizer, RatesAreChecked) {
  EXPECT_THROW(SGD{NAN}, ValueError);
  EXPECT_THROW(SGD(-1.0), ValueError);
  EXPECT_THROW(MomentumSGD(0.1, 5.0), ValueError);
  EXPECT_THROW(Adam{INFINITY}, ValueError);
  expect_contains(error_of<ValueError>([] { gradient_clipping(-1); }),
                  {"gradient_clipping", "above 0, got -1"});
  {
    Model model;
    SGD sgd(0.1);
    sgd.setup(model);
    expect_contains(error_of<ValueError>([&] { sgd.clip_grads(NAN); }),
                    {"clip_grads", "above 0, got nan"});
    sgd.add_hook("mine", [](UpdateContext& update) { update.clip_norm(0); });
    sgd.zero_grads();
    expect_contains(error_of<ValueError>([&] { sgd.update(); }),
                    {"UpdateContext::clip_norm", "above 0, got 0"});
  }
  EXPECT_THROW(weight_decay(NAN), ValueError);
  SGD sgd(0.0);
  EXPECT_THROW(sgd.set_lr(NAN), ValueError);
  EXPECT_EQ(sgd.lr(), 0.0);
}

TEST(Optimizer, StepsWithoutGradientsAreNoticed) {
  const OwnedParameter p(ones({2}, dtype::float32));
  SGD sgd(1.0);
  sgd.setup({p});
  sgd.zero_grads();
  ::testing::internal::CaptureStderr();
  sgd.update();
  sgd.update();
  const std::string text = ::testing::internal::GetCapturedStderr();
  const size_t said = text.find("no parameter got a gradient since zero_grads");
  ASSERT_NE(said, std::string::npos) << text;
  EXPECT_EQ(text.find("no parameter", said + 1), std::string::npos) << "said once";
  SGD other(1.0);
  other.setup({p});
  other.zero_grads();
  p.set_grad(ones({2}, dtype::float32));
  ::testing::internal::CaptureStderr();
  other.update();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Optimizer, ForgottenLayersAreNoticed) {
  struct Forgetful : FunctionSet {
    OwnedParameter kept{ones({3}, dtype::float32)}, forgotten{ones({3}, dtype::float32)};
    CATENA_PARAMETERS(kept)
  } model;
  const OwnedParameter unused(ones({5}, dtype::float32));
  SGD sgd(1.0);
  sgd.setup(model);
  EXPECT_TRUE(forgotten_parameters().empty());
  Variable loss = recorded_sum(model.kept, model.forgotten);
  EXPECT_TRUE(forgotten_parameters().empty()) << "it may only be asked, as a teacher is";
  loss.set_grad(ones({3}, dtype::float32));
  loss.backward();
  std::thread([] { EXPECT_TRUE(forgotten_parameters().empty()); }).join();
  EXPECT_EQ(forgotten_parameters(), std::vector<std::string>{"(3,) float32"});
  EXPECT_TRUE(forgotten_parameters().empty());  // named once

  const Parameter loose(ones({2}, dtype::float32));
  SGD other(1.0);
  other.setup({loose});
  recorded_sum(loose, loose);
  EXPECT_TRUE(forgotten_parameters().empty());
}

// A lambda that captures a layer by value trains a copy.
TEST(Optimizer, GradientsThatNobodyUsesAreErrors) {
  Model model;
  SGD sgd(1.0);
  sgd.setup(model);
  const auto step = [&](const Parameter& p) {
    const Variable loss = recorded_sum(model.l1.W, p);
    loss.set_grad(ones(loss.shape(), loss.dtype()));
    sgd.zero_grads();
    loss.backward();
    return error_of<GradientError>([&] { sgd.update(); });
  };
  const Parameter lost(ones(model.l1.W.shape(), model.l1.W.dtype()));
  expect_contains(step(lost), {"update: ", "no model lists", "float32"});
  expect_contains(step(lost), {"no model lists"});
  EXPECT_EQ(sgd.t(), 0);
  EXPECT_EQ(step(model.l1.W), "no error");
  lost.grad();  // somebody updates it by hand
  EXPECT_EQ(step(lost), "no error");
  const Parameter held(ones(model.l1.W.shape(), model.l1.W.dtype()));
  SGD other;
  other.setup({held});
  EXPECT_EQ(step(held), "no error");
  const Parameter loose(ones({2}, dtype::float32));
  const Variable apart = recorded_sum(loose, loose);  // a pass over other parameters
  apart.set_grad(ones({2}, dtype::float32));
  apart.backward();
  EXPECT_EQ(step(model.l1.W), "no error");
  sgd.setup(Parameters{model.l1.W});
  EXPECT_EQ(step(Parameter(lost.data())), "no error") << "a part is trained on purpose";
  Model another;
  other.setup(another);
  EXPECT_EQ(error_of<GradientError>([&] { other.update(); }), "no error") << "not of that pass";
}

TEST(Optimizer, HyperParametersByName) {
  MomentumSGD sgd(0.1, 0.9);
  sgd.set_hyper_parameter("momentum", 0.5);
  sgd.set_hyper_parameter("lr", 0.2);
  EXPECT_EQ(sgd.momentum(), 0.5);
  EXPECT_EQ(sgd.lr(), 0.2);
  EXPECT_THROW(sgd.set_hyper_parameter("alpha", 1), ValueError);
}

TEST(Optimizer, SchedulesScaleWithTheRanks) {
  using namespace optimizers;
  const Schedule one = step_decay(0.1, 0.1, 10);
  EXPECT_DOUBLE_EQ(scaled(4, one)(12), 0.04);
  const Schedule many = scaled_warmup(8, 5, one);
  EXPECT_DOUBLE_EQ(many(0), 0.1) << "the rate of one rank";
  EXPECT_DOUBLE_EQ(many(1), 0.1 * (1 + 7 / 5.0));
  EXPECT_DOUBLE_EQ(many(4), 0.1 * (1 + 7 * 4 / 5.0));
  EXPECT_DOUBLE_EQ(many(5), 0.8);
  EXPECT_DOUBLE_EQ(many(10), 0.08) << "the schedule is not delayed";
  EXPECT_DOUBLE_EQ(scaled_warmup(1, 5, one)(3), 0.1);
  EXPECT_DOUBLE_EQ(scaled_warmup(4, 0, one)(0), 0.4);
  EXPECT_DOUBLE_EQ(linearly_scaled(0.1, 1024, 256), 0.4);
  EXPECT_THROW(scaled_warmup(0, 5, one), ValueError);
  EXPECT_THROW(scaled_warmup(2, -1, one), ValueError);
  EXPECT_THROW(scaled_warmup(2, 1, nullptr), ValueError);
  EXPECT_THROW(scaled(2, nullptr), ValueError);
  EXPECT_THROW(linearly_scaled(0.1, 0, 256), ValueError);
}

TEST(Optimizer, ParametersOfAListHaveNamesOfTheirOwn) {
  const Parameter a(ones({2}, dtype::float32)), b(ones({2}, dtype::float32)),
      c(ones({2}, dtype::float32));
  Adam first(0.1), second(0.1);
  first.setup({a, b});
  second.setup({b, c});  // of which one has the name that the other would get
  second.zero_grads();
  b.set_grad(full({2}, 1.0, dtype::float32));
  c.set_grad(full({2}, 5.0, dtype::float32));
  second.update();
  second.load_state(copied_state(second));
  EXPECT_NEAR(second.state_of(b)[0].to_vector<double>()[0], 0.1, 1e-6);
  EXPECT_NEAR(second.state_of(c)[0].to_vector<double>()[0], 0.5, 1e-6);
}

TEST(Optimizer, StatesKeepTheirNamesWhenOthersHoldTheParameters) {
  Model model;
  Adam all;
  SGD first, second;
  all.setup(model);
  first.setup(model.l1);
  second.setup(model.l2);
  const auto saved = copied_state(all);
  for (const char* name : {"m/l1/W", "m/l2/W", "v/l1/b", "v/l2/b"})
    EXPECT_TRUE(saved.count(name)) << name;
}

// The name of a parameter may have a slash in front or not.
TEST(Optimizer, MasterCopiesAreLoadedWhateverTheParameterIsCalled) {
  for (const char* name : {"W", "/W", "", "master", "block/W"}) {
    const Parameter p(full({4}, 1.0, dtype::float16), name);
    SGD sgd(1e-5);
    sgd.setup({p});
    for (int t = 0; t < 10; ++t) {
      sgd.zero_grads();
      p.set_grad(ones({4}, dtype::float16));
      sgd.update();
    }
    const auto saved = copied_state(sgd);
    const std::vector<double> master = sgd.state_of(p).back().to_vector<double>();
    EXPECT_LT(master[0], 1);
    sgd.load_state(saved);
    EXPECT_EQ(sgd.state_of(p).back().to_vector<double>(), master) << name;
  }
}

TEST(Optimizer, HooksMayChangeTheHooks) {
  Model model;
  SGD sgd;
  sgd.setup(model);
  std::string calls;
  const auto named = [&](const char* name) {
    const std::string text(100, *name);  // which a hook that is gone would no longer have
    return [&calls, text](UpdateContext&) { calls += text[0]; };
  };
  sgd.add_hook("once", [&, text = std::string(100, 'o')](UpdateContext& update) {
    update.optimizer().remove_hook("once");
    for (int i = 0; i < 20; ++i) update.optimizer().add_hook(message("new", i), named("n"));
    update.optimizer().add_hook("last", named("r"));
    calls += text[0];
  });
  sgd.add_hook("last", named("l"));
  step(sgd, model, 1);
  EXPECT_EQ(calls, "ol") << "changes hold from the next update on";
  calls.clear();
  sgd.update();
  EXPECT_EQ(calls, "r" + std::string(20, 'n'));
}

TEST(Optimizer, AFailedSetupLeavesItAsItWas) {
  struct Rule : Optimizer {
    Rule() : Optimizer("lr", 0.5) {}
    void check_dtype(Dtype d) const override {
      CATENA_CHECK(DtypeError, d == dtype::float32, "float32 alone");
    }
    void update_one(const Array& p, const Array& g, const Arrays&) override { p -= g * lr(); }
  } rule;
  Model model;
  struct Three : FunctionSet {
    catena::testing::Pair l1{2, 2}, l2{2, 2}, l3{2, 2, dtype::float64};
    CATENA_FUNCTIONS(l1, l2, l3)
  } wrong;
  rule.setup(model);
  step(rule, model, 1);
  EXPECT_THROW(rule.setup(wrong), DtypeError);
  EXPECT_THROW(rule.setup(wrong.parameters()), DtypeError);
  EXPECT_EQ(rule.parameters(), model.parameters());
  EXPECT_EQ(rule.t(), 1);
  rule.accumulate_grads(model.gradients());
  rule.update();
  EXPECT_EQ(rule.t(), 2);
}

}  // namespace
}  // namespace catena::optimizers
