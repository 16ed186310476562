// Each rule for 20 steps against a plain double-precision reference, with decay and clipping.
#include <gtest/gtest.h>

#include <memory>
#include <tuple>

#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/lars.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

using catena::testing::Model;

// One element's state in the reference.
struct Element {
  double p, a = 0, b = 0;
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
    {"Adam", [] { return std::make_unique<Adam>(0.01, 0.8, 0.95, 1e-6); },
     [](Element& e, double g, double t) {
       e.a += 0.2 * (g - e.a);
       e.b += 0.05 * (g * g - e.b);
       const double rate = 0.01 * std::sqrt(1 - std::pow(0.95, t)) / (1 - std::pow(0.8, t));
       e.p -= rate * e.a / (std::sqrt(e.b) + 1e-6);
     }},
    {"AdamW", [] { return std::make_unique<AdamW>(0.01, 0.8, 0.95, 1e-6, 0.1); },
     [](Element& e, double g, double t) {
       e.a += 0.2 * (g - e.a);
       e.b += 0.05 * (g * g - e.b);
       const double m = e.a / (1 - std::pow(0.8, t)), v = e.b / (1 - std::pow(0.95, t));
       e.p -= 0.01 * (m / (std::sqrt(v) + 1e-6) + 0.1 * e.p);
     }},
    {"LARS",
     [] { return std::make_unique<LARS>(0.5, 0.8, 0.02, 0.1, 1e-6); },
     {},
     [](Element& e, double g, const Norms& norms) {
       const double trust =
           0.02 * norms.parameter / (norms.gradient + 0.1 * norms.parameter + 1e-6);
       const double ratio = norms.parameter > 0 && norms.gradient > 0 ? trust : 1;
       e.a = 0.8 * e.a + 0.5 * ratio * (g + 0.1 * e.p);
       e.p -= e.a;
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
    optimizer->zero_grads();
    catena::testing::set_gradients(model.parameters(), t);
    optimizer->update();
    reference.step(t);
  }
  EXPECT_EQ(optimizer->t(), 20);
  // Decay before a norm, which LARS always looks at, is added to the gradients in memory, and those
  // of 16 bits are rounded then.
  const bool before_a_norm = extras.decay_first || rule.step_with_norms;
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

TEST(UserRule, OverArenasReadsTheStep) {
  for (const Device device : catena::testing::test_devices()) {
    for (const bool captured : {false, true}) {
      Model model(dtype::float64);
      model.to(device);
      Ramp rule;
      rule.setup(model);
      if (captured) rule.prepare_for_capture();
      const double before = model.parameters()[0].data().to_vector<double>()[0];
      for (int64_t t = 1; t <= 3; ++t) {
        rule.zero_grads();
        catena::testing::set_gradients(model.parameters(), t);
        rule.update();
      }
      EXPECT_EQ(rule.seen, (std::vector<double>{1, 2, 3})) << device;
      EXPECT_EQ(rule.t(), 3);
      EXPECT_DOUBLE_EQ(model.parameters()[0].data().to_vector<double>()[0], before - 3) << device;
    }
  }
}

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

TEST(Rules, EagerAndPreparedUpdatesGiveEqualBits) {
  for (const Rule& rule : kRules) {
    std::vector<std::vector<std::vector<double>>> results;
    for (const bool prepared : {false, true}) {
      Model model;
      const std::unique_ptr<Optimizer> optimizer = rule.make();
      optimizer->setup(model);
      if (prepared) optimizer->prepare_for_capture();
      optimizer->add_hook("clip", gradient_clipping(0.5));
      for (int64_t t = 1; t <= 10; ++t) {
        if (t == 5) optimizer->set_lr(optimizer->lr() / 2);
        catena::testing::set_gradients(model.parameters(), t);
        optimizer->update();
      }
      results.push_back(catena::testing::all_values(model.parameters()));
    }
    EXPECT_EQ(results[0], results[1]) << rule.name;
  }
}

TEST(Rules, AdamReportsTheCorrectedRate) {
  Model model;
  Adam adam(0.1, 0.9, 0.999);
  adam.setup(model);
  EXPECT_THROW(adam.effective_lr(), ValueError);
  catena::testing::set_gradients(model.parameters(), 1);
  adam.update();
  EXPECT_NEAR(adam.effective_lr(), 0.1 * std::sqrt(1 - 0.999) / (1 - 0.9), 1e-12);
  EXPECT_THROW(adam.set_beta1(1.0), ValueError);
}

TEST(Rules, OfUsersOverArenasRefuseHalfPrecision) {
  Model model(dtype::float16);
  Ramp ramp;
  EXPECT_THROW(ramp.setup(model), DtypeError);
}

// Rows of the table against the classes, so that neither can change alone.
TEST(Rules, HaveTheDefaultsOfTheirRows) {
  const std::pair<const char*, std::unique_ptr<Optimizer>> rules[] = {
      {"SGD", std::make_unique<SGD>()},
      {"MomentumSGD", std::make_unique<MomentumSGD>()},
      {"Adam", std::make_unique<Adam>()},
      {"AdamW", std::make_unique<AdamW>()},
      {"LARS", std::make_unique<LARS>()}};
  for (const OptimizerRule& row : optimizer_rules()) {
    const auto is_row = [&](const auto& rule) { return std::string(rule.first) == row.name; };
    EXPECT_TRUE(std::ranges::any_of(rules, is_row)) << row.name << " is not compared with its row";
    EXPECT_TRUE(
        std::ranges::any_of(kRules, [&](const Rule& r) { return r.name == std::string(row.name); }))
        << row.name << " has no reference in kRules";
  }
  for (const auto& [name, optimizer] : rules) {
    const OptimizerRule& row = optimizer_rule(name);
    std::vector<std::pair<std::string, double>> presets{{row.rate_name, row.rate}};
    for (const auto& number : row.numbers) presets.emplace_back(number.name, number.preset);
    EXPECT_EQ(optimizer->hyper_parameters(), presets) << name;
  }
}

TEST(Rules, NumbersHaveRanges) {
  expect_contains(error_of<ValueError>([] { Adam(0.1, 1.0); }),
                  {"Adam: expected beta1 in [0, 1), got 1"});
  expect_contains(error_of<ValueError>([] { Adam(0.1, 0.9, 0.9, 0); }),
                  {"Adam: expected eps in (0, inf), got 0"});
  expect_contains(error_of<ValueError>([] { AdamW(0.1, 0.9, 0.9, 1e-8, -1); }),
                  {"AdamW: expected decay in [0, inf), got -1"});
  expect_contains(error_of<ValueError>([] { MomentumSGD().set_hyper_parameter("momentum", NAN); }),
                  {"MomentumSGD: expected momentum in [0, 1], got nan"});
  expect_contains(error_of<ValueError>([] { optimizer_rule("Sdg"); }),
                  {"no rule 'Sdg'", "SGD, MomentumSGD, Adam, AdamW, LARS"});
}

TEST(Rules, AdamWDecaysParametersWithoutGradientsByTheRateAlone) {
  const Parameter p(full({3}, 2, dtype::float64));
  AdamW rule(0.5, 0.9, 0.999, 1e-8, 0.1);
  rule.setup({p});
  for (int t = 0; t < 2; ++t) {
    p.set_grad(zeros({3}, dtype::float64));
    rule.update();
  }
  EXPECT_DOUBLE_EQ(p.data().to_vector<double>()[0], 2 * 0.95 * 0.95);
}

}  // namespace
}  // namespace catena::optimizers
