// Each rule for 20 steps against a plain double-precision reference, with decay and clipping.
#include <gtest/gtest.h>

#include <memory>
#include <tuple>

#include "catena/array/creation.h"
#include "catena/optimizers/ada_delta.h"
#include "catena/optimizers/ada_grad.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/lamb.h"
#include "catena/optimizers/lars.h"
#include "catena/optimizers/lion.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/nesterov_ag.h"
#include "catena/optimizers/rmsprop.h"
#include "catena/optimizers/rmsprop_graves.h"
#include "catena/optimizers/sgd.h"
#include "catena/optimizers/smorms3.h"
#include "catena/testing.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

using catena::testing::Model;

// One element's state in the reference.
struct Element {
  double p, a = 0, b = 0, c = 0;
};

// L2 norms of a parameter and of its gradient as the rule gets it.
struct Norms {
  double parameter = 0, gradient = 0;
};

struct Rule {
  const char* name;
  std::function<std::unique_ptr<Optimizer>()> make;
  std::function<void(Element& e, double g, double t)> step;
  // Of rules that look at norms, instead of step.
  std::function<void(Element& e, double g, const Norms& norms)> step_with_norms = {};
  // Of rules that look at norms of steps, which are 0.01 of this at a quotient of one.
  std::function<double(Element& e, double g, double t)> direction = {};

  bool has_norms() const { return step_with_norms || direction; }
};

std::ostream& operator<<(std::ostream& os, const Rule& rule) { return os << rule.name; }

const Rule kRules[] = {
    {"SGD", [] { return std::make_unique<SGD>(0.05); },
     [](Element& e, double g, double) { e.p -= 0.05 * g; }},
    {"MomentumSGD", [] { return std::make_unique<MomentumSGD>(0.02, 0.8); },
     [](Element& e, double g, double) {
       e.a = 0.8 * e.a - 0.02 * g;
       e.p += e.a;
     }},
    {"Adam",
     [] {
       return std::make_unique<Adam>(0.01, AdamOptions{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6});
     },
     [](Element& e, double g, double t) {
       e.a += 0.2 * (g - e.a);
       e.b += 0.05 * (g * g - e.b);
       const double rate = 0.01 * std::sqrt(1 - std::pow(0.95, t)) / (1 - std::pow(0.8, t));
       e.p -= rate * e.a / (std::sqrt(e.b) + 1e-6);
     }},
    {"AdamW",
     [] {
       return std::make_unique<AdamW>(
           0.01, AdamWOptions{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .decay = 0.1});
     },
     [](Element& e, double g, double t) {
       e.a += 0.2 * (g - e.a);
       e.b += 0.05 * (g * g - e.b);
       const double m = e.a / (1 - std::pow(0.8, t)), v = e.b / (1 - std::pow(0.95, t));
       e.p -= 0.01 * (m / (std::sqrt(v) + 1e-6) + 0.1 * e.p);
     }},
    {"LARS",
     [] {
       return std::make_unique<LARS>(
           0.5, LARSOptions{.momentum = 0.8, .trust = 0.02, .decay = 0.1, .eps = 1e-6});
     },
     {},
     [](Element& e, double g, const Norms& norms) {
       const double trust =
           0.02 * norms.parameter / (norms.gradient + 0.1 * norms.parameter + 1e-6);
       const double ratio = norms.parameter > 0 && norms.gradient > 0 ? trust : 1;
       e.a = 0.8 * e.a + 0.5 * ratio * (g + 0.1 * e.p);
       e.p -= e.a;
     }},
    {"AdaGrad", [] { return std::make_unique<AdaGrad>(0.05, 1e-3); },
     [](Element& e, double g, double) {
       e.a += g * g;
       e.p -= 0.05 * g / (std::sqrt(e.a) + 1e-3);
     }},
    {"RMSprop",
     [] { return std::make_unique<RMSprop>(0.02, RMSpropOptions{.alpha = 0.8, .eps = 1e-2}); },
     [](Element& e, double g, double) {
       e.a = 0.8 * e.a + 0.2 * g * g;
       e.p -= 0.02 * g / (std::sqrt(e.a) + 1e-2);
     }},
    {"RMSpropGraves",
     [] {
       return std::make_unique<RMSpropGraves>(
           0.01, RMSpropGravesOptions{.alpha = 0.8, .momentum = 0.7, .eps = 1e-2});
     },
     [](Element& e, double g, double) {
       e.a = 0.8 * e.a + 0.2 * g * g;
       e.b = 0.8 * e.b + 0.2 * g;
       e.c = 0.7 * e.c - 0.01 * g / std::sqrt(e.a - e.b * e.b + 1e-2);
       e.p += e.c;
     }},
    {"NesterovAG", [] { return std::make_unique<NesterovAG>(0.05, 0.8); },
     [](Element& e, double g, double) {
       e.a = 0.8 * e.a - 0.05 * g;
       e.p += 0.8 * 0.8 * e.a - 1.8 * 0.05 * g;
     }},
    {"AdaDelta", [] { return std::make_unique<AdaDelta>(0.9, 1e-3); },
     [](Element& e, double g, double) {
       e.a = 0.9 * e.a + 0.1 * g * g;
       const double dx = std::sqrt(e.b + 1e-3) / std::sqrt(e.a + 1e-3) * g;
       e.b = 0.9 * e.b + 0.1 * dx * dx;
       e.p -= dx;
     }},
    {"SMORMS3", [] { return std::make_unique<SMORMS3>(0.1, 1e-6); },
     [](Element& e, double grad, double t) {
       double& mem = e.a;
       if (t == 1) mem = 1;
       const double r = 1 / (mem + 1);
       e.b = (1 - r) * e.b + r * grad;
       e.c = (1 - r) * e.c + r * grad * grad;
       const double x = e.b * e.b / (e.c + 1e-6);
       e.p -= grad * std::min(0.1, x) / (std::sqrt(e.c) + 1e-6);
       mem = 1 + mem * (1 - x);
     }},
    {"Lion",
     [] {
       return std::make_unique<Lion>(0.01, LionOptions{.beta1 = 0.8, .beta2 = 0.95, .decay = 0.1});
     },
     [](Element& e, double g, double) {
       const double mixed = 0.8 * e.a + 0.2 * g;
       e.p -= 0.01 * ((mixed > 0) - (mixed < 0) + 0.1 * e.p);
       e.a = 0.95 * e.a + 0.05 * g;
     }},
    {"LAMB",
     [] {
       return std::make_unique<LAMB>(
           0.01, LAMBOptions{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .decay = 0.1});
     },
     {},
     {},
     [](Element& e, double g, double t) {
       e.a = 0.8 * e.a + 0.2 * g;
       e.b = 0.95 * e.b + 0.05 * g * g;
       const double m = e.a / (1 - std::pow(0.8, t)), v = e.b / (1 - std::pow(0.95, t));
       return m / (std::sqrt(v) + 1e-6) + 0.1 * e.p;
     }},
};

struct Extras {
  double maxnorm = 0, decay = 0;
  bool decay_first = false;
};

// All parameters side by side in the order of parameters().
class Reference {
 public:
  Reference(const Parameters& parameters, const Rule& rule, const Extras& extras)
      : rule_(rule), extras_(extras), dtype_(parameters[0].dtype()) {
    for (const auto& values : catena::testing::all_values(parameters)) {
      auto& elements = elements_.emplace_back();
      for (const double v : values) elements.push_back({v});
    }
  }
  void step(int64_t t) {
    const double decay_before = extras_.decay_first ? extras_.decay : 0;
    const double decay_after = extras_.decay_first ? 0 : extras_.decay;
    const auto gradient = [&](size_t k, size_t i) {
      return rounded(catena::testing::gradient_value(t, int64_t(k), int64_t(i))) +
             decay_before * elements_[k][i].p;
    };
    double squares = 0;
    for (size_t k = 0; k < elements_.size(); ++k) {
      for (size_t i = 0; i < elements_[k].size(); ++i) squares += gradient(k, i) * gradient(k, i);
    }
    const double norm = std::sqrt(squares);
    const double scale = extras_.maxnorm > 0 && norm > extras_.maxnorm ? extras_.maxnorm / norm : 1;
    clipped_ += scale < 1;
    for (size_t k = 0; k < elements_.size(); ++k) {
      const auto scaled = [&](size_t i) {
        return gradient(k, i) * scale + decay_after * elements_[k][i].p;
      };
      Norms norms;
      for (size_t i = 0; i < elements_[k].size(); ++i) {
        norms.parameter = std::hypot(norms.parameter, elements_[k][i].p);
        norms.gradient = std::hypot(norms.gradient, scaled(i));
      }
      if (rule_.direction) {
        step_by_directions(elements_[k], scaled, norms.parameter, double(t));
        continue;
      }
      for (size_t i = 0; i < elements_[k].size(); ++i) {
        Element& e = elements_[k][i];
        if (rule_.step_with_norms)
          rule_.step_with_norms(e, scaled(i), norms);
        else
          rule_.step(e, scaled(i), double(t));
      }
    }
  }
  // What the rule keeps of each parameter: the parameter itself, or its master copy.
  void expect_equal(Optimizer& optimizer, double tolerance) const {
    const Parameters& parameters = optimizer.parameters();
    for (size_t k = 0; k < parameters.size(); ++k) {
      const bool has_master = parameters[k].data().itemsize() == 2;
      const Array& kept =
          has_master ? optimizer.state_of(parameters[k]).back() : parameters[k].data();
      const std::vector<double> got = kept.to_vector<double>();
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], elements_[k][i].p,
                    tolerance * std::max(1.0, std::abs(elements_[k][i].p)))
            << parameters[k].name() << " element " << i;
      }
    }
  }
  int clipped() const { return clipped_; }

 private:
  void step_by_directions(std::vector<Element>& elements,
                          const std::function<double(size_t)>& gradient, double norm, double t) {
    std::vector<double> directions;
    double squares = 0;
    for (size_t i = 0; i < elements.size(); ++i) {
      directions.push_back(rule_.direction(elements[i], gradient(i), t));
      squares += directions.back() * directions.back();
    }
    const double quotient = norm > 0 && squares > 0 ? norm / std::sqrt(squares) : 1;
    for (size_t i = 0; i < elements.size(); ++i) elements[i].p -= 0.01 * quotient * directions[i];
  }
  // A gradient as parameters of 16 bits hold it.
  double rounded(double g) const {
    return itemsize(dtype_) == 2 ? full({}, g, dtype_).item<double>() : g;
  }

  const Rule& rule_;
  Extras extras_;
  Dtype dtype_;
  std::vector<std::vector<Element>> elements_;
  int clipped_ = 0;
};

class RuleTest : public ::testing::TestWithParam<std::tuple<Rule, Dtype, Device>> {};

void run(const std::tuple<Rule, Dtype, Device>& param, const Extras& extras, bool captured) {
  const auto& [rule, dtype, device] = param;
  Model model(dtype);
  model.to(device);
  const std::unique_ptr<Optimizer> optimizer = rule.make();
  optimizer->setup(model);
  if (captured) optimizer->prepare_for_capture();
  if (extras.decay_first) optimizer->add_hook("decay", weight_decay(extras.decay));
  if (extras.maxnorm > 0) optimizer->add_hook("clip", gradient_clipping(extras.maxnorm));
  if (!extras.decay_first && extras.decay > 0)
    optimizer->add_hook("decay", weight_decay(extras.decay));
  Reference reference(model.parameters(), rule, extras);
  for (int64_t t = 1; t <= 20; ++t) {
    step(*optimizer, model, t);
    reference.step(t);
  }
  EXPECT_EQ(optimizer->t(), 20);
  // Decay before a norm, which LARS and LAMB always look at, is added to the gradients in memory,
  // and those of 16 bits are rounded then.
  const bool before_a_norm = extras.decay_first || rule.has_norms();
  const bool rounds = extras.decay > 0 && before_a_norm && itemsize(dtype) == 2;
  reference.expect_equal(*optimizer, rounds ? 0.02 : dtype == dtype::float64 ? 1e-13 : 3e-6);
  for (const Parameter& p : model.parameters()) {
    if (p.data().itemsize() != 2) continue;
    const Array& master = optimizer->state_of(p).back();
    EXPECT_EQ(master.dtype(), dtype::float32);
    EXPECT_EQ(p.data().to_vector<float>(), master.astype(dtype).to_vector<float>());
  }
  EXPECT_EQ(extras.maxnorm > 0, reference.clipped() > 0 && reference.clipped() < 20);
}

TEST_P(RuleTest, FollowsTheReference) { run(GetParam(), {}, false); }
TEST_P(RuleTest, FollowsTheReferenceWithDeviceValues) { run(GetParam(), {}, true); }
TEST_P(RuleTest, ClipsThenDecays) { run(GetParam(), {1.1, 0.1, false}, false); }
TEST_P(RuleTest, DecaysThenClips) { run(GetParam(), {1.1, 0.1, true}, false); }

// Elements are shared out to threads and taken in vectors: each is as in a short parameter.
TEST_P(RuleTest, TakesLongParameters) {
  const auto& [rule, dtype, device] = GetParam();
  if (rule.has_norms()) return;
  const Shape rows{10001, 7};
  const auto kept = [dtype = dtype](Optimizer& optimizer, const Parameter& p) {
    return itemsize(dtype) == 2 ? optimizer.state_of(p).back() : p.data();
  };
  const auto values = [&, dtype = dtype, device = device](double first) {
    return catena::testing::Pair::values({7}, dtype, first).to(device);
  };
  const Parameter row(values(0.5)), all(values(0.5).broadcast_to(rows).copy());
  const std::unique_ptr<Optimizer> of_row = rule.make(), of_all = rule.make();
  of_row->setup({row});
  of_all->setup({all});
  for (const double first : {0.25, -1.0, 0.75}) {
    row.set_grad(values(first));
    all.set_grad(values(first).broadcast_to(rows).copy());
    of_row->update();
    of_all->update();
  }
  EXPECT_EQ(catena::testing::difference(kept(*of_all, all), kept(*of_row, row).broadcast_to(rows),
                                        1e-6, 1e-6),
            "");
}

// A model without a single element is updated as any other, and the count follows it to a device.
TEST_P(RuleTest, CountsUpdatesOfParametersWithoutElements) {
  const auto& [rule, dtype, device] = GetParam();
  for (const bool captured : {false, true}) {
    const Parameter none(zeros({0, 3}, {dtype, device}));
    const std::unique_ptr<Optimizer> optimizer = rule.make();
    optimizer->setup({none});
    if (captured) optimizer->prepare_for_capture();
    optimizer->add_hook("clip", gradient_clipping(1.1));
    optimizer->add_hook("decay", weight_decay(0.1));
    const auto update = [&, device = device] {
      optimizer->zero_grads();
      none.set_grad(zeros({0, 3}, {none.dtype(), device}));
      optimizer->update();
    };
    for (int64_t t = 1; t <= 3; ++t) {
      update();
      EXPECT_EQ(optimizer->t(), t);
    }
    none.to(cpu(2));
    update();
    EXPECT_EQ(optimizer->t(), 4);
    for (const Array& state : optimizer->state_of(none)) EXPECT_EQ(state.shape(), Shape({0, 3}));
    const auto saved = optimizer->state();
    const std::unique_ptr<Optimizer> other = rule.make();
    other->setup({none});
    other->load_state({saved.begin(), saved.end()});
    EXPECT_EQ(other->t(), 4);
  }
}

// A rule of a user over whole arenas, which leaves the count to the base class: p -= lr * t.
class Ramp : public Optimizer {
 public:
  Ramp() : Optimizer("lr", 0.5) {}
  std::vector<double> seen;

 protected:
  bool updates_arenas() const override { return true; }
  void update_arena(OptimizerCall& call) override {
    EXPECT_EQ(call.counter, nullptr);
    seen.push_back(call.step.device_value ? call.step.device_value->item<double>()
                                          : call.step.value);
    subtract(*call.parameter, lr() * seen.back(), *call.parameter);
  }
};

// The arena of one dtype has no elements at all, the other has.
TEST(UserRule, OverArenasUpdatesThoseWithoutElements) {
  for (const Device device : catena::testing::test_devices()) {
    for (const bool captured : {false, true}) {
      const Parameter none(zeros({0, 3}, {dtype::float32, device}));
      const Parameter some(zeros({2}, {dtype::float64, device}));
      Ramp rule;
      rule.setup({none, some});
      if (captured) rule.prepare_for_capture();
      for (int64_t t = 1; t <= 3; ++t) {
        rule.zero_grads();
        catena::testing::set_gradients({none, some}, t);
        rule.update();
      }
      EXPECT_EQ(rule.seen, (std::vector<double>{1, 1, 2, 2, 3, 3})) << device;
      EXPECT_EQ(some.data().to_vector<double>(), (std::vector<double>{-3, -3})) << device;
    }
  }
}

std::vector<std::tuple<Rule, Dtype, Device>> cases() {
  std::vector<std::tuple<Rule, Dtype, Device>> result;
  for (const Rule& rule : kRules) {
    for (const Dtype dtype : {dtype::float32, dtype::float64, dtype::float16, dtype::bfloat16}) {
      for (const Device device : catena::testing::test_devices())
        result.emplace_back(rule, dtype, device);
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Rules, RuleTest, ::testing::ValuesIn(cases()), [](const auto& info) {
  std::string device = std::get<2>(info.param).name();
  std::replace(device.begin(), device.end(), ':', '_');
  return message(std::get<0>(info.param).name, "_", std::get<1>(info.param), "_", device);
});

TEST(Rules, AdamReportsTheCorrectedRate) {
  Model model;
  Adam adam(0.1);
  adam.setup(model);
  EXPECT_THROW(adam.effective_lr(), ValueError);
  step(adam, model, 1);
  EXPECT_NEAR(adam.effective_lr(), 0.1 * std::sqrt(1 - 0.999) / (1 - 0.9), 1e-12);
  EXPECT_THROW(adam.set_beta1(1.0), ValueError);
}

// A number behind the rate would be another one for each rule.
static_assert(!std::is_constructible_v<AdamW, double, double>);
static_assert(!std::is_constructible_v<AdamWOptions, double>);

TEST(Rules, OfUsersOverArenasRefuseHalfPrecision) {
  Model model(dtype::float16);
  Ramp ramp;
  EXPECT_THROW(ramp.setup(model), DtypeError);
}

TEST(Rules, HaveReferences) {
  for (const OptimizerRule& row : optimizer_rules())
    EXPECT_TRUE(
        std::ranges::any_of(kRules, [&](const Rule& r) { return r.name == std::string(row.name); }))
        << row.name << " has no reference in kRules";
}

TEST(Rules, NumbersHaveRanges) {
  expect_contains(error_of<ValueError>([] { Adam(0.1, {.beta1 = 1}); }),
                  {"Adam: expected beta1 in [0, 1), got 1"});
  expect_contains(error_of<ValueError>([] { Adam(0.1, {.eps = 0}); }),
                  {"Adam: expected eps in (0, inf), got 0"});
  expect_contains(error_of<ValueError>([] { AdamW(0.1, {.decay = -1}); }),
                  {"AdamW: expected decay in [0, inf), got -1"});
  expect_contains(error_of<ValueError>([] { MomentumSGD().set_hyper_parameter("momentum", NAN); }),
                  {"MomentumSGD: expected momentum in [0, 1], got nan"});
  expect_contains(error_of<ValueError>([] { optimizer_rule("Sdg"); }),
                  {"no rule 'Sdg'", "SGD, MomentumSGD, Adam, AdamW, LARS"});
}

TEST(Rules, AreSavedAndResumedBitForBit) {
  for (const Rule& rule : kRules) {
    for (const Dtype dtype : {dtype::float32, dtype::bfloat16}) {
      Model model(dtype), other(dtype);
      const std::unique_ptr<Optimizer> first = rule.make(), resumed = rule.make();
      first->setup(model);
      for (int64_t t = 0; t < 5; ++t) step(*first, model, t);
      other.copy_parameters_from(model.parameters());
      resumed->setup(other);
      resumed->load_state(catena::testing::copied_state(*first));
      for (int64_t t = 5; t < 10; ++t) {
        step(*first, model, t);
        step(*resumed, other, t);
      }
      EXPECT_EQ(catena::testing::all_values(other.parameters()),
                catena::testing::all_values(model.parameters()))
          << rule.name;
    }
  }
}

// Norms of parameters that are summed in several pieces, and whose last one is short.
TEST(Rules, LAMBSumsLongParameters) {
  for (const Device device : catena::testing::test_devices()) {
    const int64_t n = 40001;
    const Parameter p(full({n}, 0.5, {dtype::float32, device}));
    const Parameter q(full({3}, 2.0, {dtype::float32, device}));
    LAMB rule(0.1, {.decay = 0.5});
    rule.setup({p, q});
    p.set_grad(full({n}, -3.0, dtype::float32));
    q.set_grad(full({3}, 3.0, dtype::float32));
    rule.update();
    // Steps of -1 + 0.25 and 1 + 1, of one size in all elements: p moves by the rate times itself.
    for (const double v : p.data().to_vector<double>()) ASSERT_NEAR(v, 0.5 + 0.1 * 0.5, 1e-6);
    for (const double v : q.data().to_vector<double>()) ASSERT_NEAR(v, 2 - 0.1 * 2, 1e-6);
  }
}

// Arenas have gaps, whose parameters and gradients are zero.
TEST(Rules, GapsStayZero) {
  for (const Rule& rule : kRules) {
    for (const Dtype dtype : {dtype::float32, dtype::bfloat16}) {
      Model model(dtype);
      const std::unique_ptr<Optimizer> optimizer = rule.make();
      optimizer->setup(model);
      optimizer->add_hook("decay", weight_decay(0.1));
      for (int64_t t = 1; t <= 5; ++t) step(*optimizer, model, t);
      const ParameterArena& arena = optimizer->layout().arenas()[0];
      const std::vector<double> values = arena.data().memory.to_vector<double>();
      for (size_t s = 0; s < arena.slots().size(); ++s) {
        const ParameterArena::Slot& slot = arena.slots()[s];
        for (int64_t i = slot.offset + slot.size; i < arena.end_of(s); ++i)
          EXPECT_EQ(values[size_t(i)], 0) << rule.name;
      }
    }
  }
}

// The variance n - g^2 of equal gradients rounds to less than 0 at times; eps is smaller.
TEST(Rules, RMSpropGravesTakesAVarianceBelowZeroForZero) {
  const Parameter p(zeros({1000}, dtype::float32));
  RMSpropGraves rule(0.01, {.alpha = 0.5, .eps = 1e-12});
  rule.setup({p});
  for (int t = 0; t < 60; ++t) {
    p.set_grad(linspace(1, 2, 1000).astype(dtype::float32));
    rule.update();
  }
  for (const double v : p.data().to_vector<double>()) ASSERT_TRUE(std::isfinite(v));
}

TEST(Rules, NotANumberStaysOne) {
  for (const Rule& rule : kRules) {
    const Parameter p(ones({3}, dtype::float64));
    const std::unique_ptr<Optimizer> optimizer = rule.make();
    optimizer->setup({p});
    p.set_grad(array({1.0, double(NAN), 1.0}));
    optimizer->update();
    EXPECT_TRUE(std::isnan(p.data().to_vector<double>()[1])) << rule.name;
  }
}

TEST(Rules, AdaDeltaHasAFactorForARate) {
  AdaDelta rule;
  EXPECT_EQ(rule.lr(), 1);
  const Parameter p(zeros({1}, dtype::float64));
  rule.setup({p});
  rule.set_lr(0.5);
  p.set_grad(ones({1}, dtype::float64));
  rule.update();
  const double dx = std::sqrt(1e-6 / (0.05 + 1e-6));
  EXPECT_NEAR(p.data().to_vector<double>()[0], -0.5 * dx, 1e-15);
  EXPECT_NEAR(rule.state_of(p)[1].to_vector<double>()[0], 0.05 * dx * dx, 1e-18);
}

TEST(Rules, AdamWDecaysParametersWithoutGradientsByTheRateAlone) {
  const Parameter p(full({3}, 2, dtype::float64));
  AdamW rule(0.5, {.decay = 0.1});
  rule.setup({p});
  for (int t = 0; t < 2; ++t) {
    p.set_grad(zeros({3}, dtype::float64));
    rule.update();
  }
  EXPECT_DOUBLE_EQ(p.data().to_vector<double>()[0], 2 * 0.95 * 0.95);
}

}  // namespace
}  // namespace catena::optimizers
