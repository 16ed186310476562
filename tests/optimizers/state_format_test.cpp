// States in bfloat16, and 16-bit parameters without master copies.
#include <gtest/gtest.h>

#include <memory>
#include <tuple>

#include "catena/array/creation.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/adamw.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

using catena::testing::all_values;
using catena::testing::Model;
using catena::testing::set_gradients;
using catena::testing::test_devices;

// torch 2.15, 5 steps of AdamW([p], lr=0.01, betas=(0.9, 0.99), weight_decay=0.1, fused=True) on
// the CPU, with gradient_value(t, i, i) rounded to bfloat16.
TEST(StateFormat, IsPyTorchsOfBFloat16Parameters) {
  const std::vector<double> start{0.5, -1.25, 2, 0.0078125, -0.3, 100, 1e-3, -7};
  const std::vector<double> p_after{0.4609375,    -1.25, 2.015625,          0.037353515625,
                                    -0.322265625, 100,   -0.00457763671875, -6.875};
  const std::vector<double> m_after{0.0126953125, -0.051513671875,    -0.0703125,   0.013916015625,
                                    0.107421875,  0.0012054443359375, -0.064453125, -0.06591796875};
  const std::vector<double> v_after{0.00112152099609375, 0.002777099609375, 0.0019683837890625,
                                    0.0023040771484375,  0.004058837890625, 0.00144195556640625,
                                    0.00286865234375,    0.0019683837890625};
  for (const Device device : test_devices()) {
    const Parameter p(array(start, {8}).astype(dtype::bfloat16).to(device));
    AdamW rule(
        0.01,
        {.beta2 = 0.99, .decay = 0.1, .state_dtype = dtype::bfloat16, .master_copies = false});
    rule.setup({p});
    for (int64_t t = 1; t <= 5; ++t) {
      std::vector<double> g;
      for (int64_t i = 0; i < 8; ++i) g.push_back(catena::testing::gradient_value(t, i, i));
      p.set_grad(array(g, {8}).astype(dtype::bfloat16).to(device));
      rule.update();
    }
    EXPECT_EQ(p.data().to_vector<double>(), p_after) << device;
    EXPECT_EQ(rule.state_of(p)[0].to_vector<double>(), m_after) << device;
    EXPECT_EQ(rule.state_of(p)[1].to_vector<double>(), v_after) << device;
  }
}

struct Case {
  Dtype dtype;
  bool narrow, masters;
  Device device;
};

std::unique_ptr<Optimizer> make_rule(bool decays, std::optional<Dtype> states, bool masters) {
  if (decays)
    return std::make_unique<AdamW>(
        0.01, AdamWOptions{.decay = 0.1, .state_dtype = states, .master_copies = masters});
  return std::make_unique<Adam>(
      0.01, AdamOptions{.beta2 = 0.95, .state_dtype = states, .master_copies = masters});
}

class Formats : public ::testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Optimizer> make(bool decays) const {
    return make_rule(decays, GetParam().narrow ? std::optional(dtype::bfloat16) : std::nullopt,
                     GetParam().masters);
  }
};

// The usual format, whose states and master copies this rounds after each update.
void round_states(Optimizer& optimizer, const Case& c) {
  for (const Parameter& p : optimizer.parameters()) {
    const Arrays& states = optimizer.state_of(p);
    for (size_t k = 0; c.narrow && k < 2; ++k) states[k].assign(states[k].astype(dtype::bfloat16));
    if (!c.masters && states.size() == 3) states[2].assign(p.data());
  }
}

TEST_P(Formats, AreTheUsualOneRoundedInEachUpdate) {
  const Case& c = GetParam();
  for (const bool decays : {false, true}) {
    Model model(c.dtype), twin(c.dtype);
    model.to(c.device);
    twin.to(c.device);
    const auto rule = make(decays), usual = make_rule(decays, {}, true);
    rule->setup(model);
    usual->setup(twin);
    rule->add_group("slow", {"/l2/*"}, {.rate = 0.5});
    usual->add_group("slow", {"/l2/*"}, {.rate = 0.5});
    if (c.dtype == dtype::float32) model.l1.W.state()->low(dtype::bfloat16);
    for (int64_t t = 1; t <= 20; ++t) {
      for (Model* m : {&model, &twin}) set_gradients(m->parameters(), t);
      rule->update();
      usual->update();
      round_states(*usual, c);
    }
    EXPECT_EQ(all_values(model.parameters()), all_values(twin.parameters()));
    for (size_t i = 0; i < model.parameters().size(); ++i) {
      const Arrays& own = rule->state_of(model.parameters()[i]);
      const Arrays& wide = usual->state_of(twin.parameters()[i]);
      ASSERT_EQ(own.size(), c.masters ? wide.size() : 2);
      for (size_t k = 0; k < own.size(); ++k)
        EXPECT_EQ(own[k].to_vector<double>(), wide[k].to_vector<double>());
      EXPECT_EQ(own[0].dtype(), c.narrow ? dtype::bfloat16 : dtype::float32);
    }
    if (c.dtype == dtype::float32) {
      EXPECT_EQ(model.l1.W.state()->low(dtype::bfloat16).to_vector<double>(),
                model.l1.W.data().astype(dtype::bfloat16).to_vector<double>());
    }
  }
}

// Elements [first, first + n) of parameters, updated by the slot; all of the parameters.
std::vector<double> updated_in_part(const Case& c, int64_t first, int64_t n) {
  const Dtype states = c.narrow ? dtype::bfloat16 : dtype::float32;
  const auto values = [&](double from, double to, Dtype dtype) {
    return linspace(from, to, 1031).astype(dtype).to(c.device);
  };
  const Array p = values(-1, 1, c.dtype), master = p.astype(dtype::float32);
  Arrays parts;
  for (const Array& a :
       {p, values(1, -2, c.dtype), values(0, 1, states), values(2, 1, states), master})
    parts.push_back(a(Slice(first, first + n)));
  OptimizerCall call;
  call.rule = &optimizer_rule("Adam");
  call.parameter = &parts[0];
  call.gradient = &parts[1];
  call.states[0] = &parts[2];
  call.states[1] = &parts[3];
  if (c.masters && c.dtype != dtype::float32) call.master = &parts[4];
  call.learning_rate.value = 0.1;
  call.step.value = 3;
  const double numbers[] = {0.9, 0.95, 1e-8, 0};
  std::copy(std::begin(numbers), std::end(numbers), call.numbers);
  kernels::optimizer_update(c.device, call);
  return p.to_vector<double>();
}

// Parts that begin at no multiple of 16 bytes and end within a pack.
TEST_P(Formats, TakeUnalignedArrays) {
  const std::vector<double> start = updated_in_part(GetParam(), 0, 0);
  const std::vector<double> all = updated_in_part(GetParam(), 0, 1031);
  const std::vector<double> part = updated_in_part(GetParam(), 1, 1029);
  EXPECT_NE(all[0], start[0]);
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(part[i], i == 0 || i == 1030 ? start[i] : all[i]) << i;
}

void train(Optimizer& optimizer, const Model& model, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; ++t) {
    set_gradients(model.parameters(), t);
    optimizer.update();
  }
}

std::map<std::string, Array> saved_state(Optimizer& optimizer) {
  std::map<std::string, Array> saved;
  for (const auto& [name, array] : optimizer.state()) saved[name] = array.copy();
  return saved;
}

TEST_P(Formats, AreSavedAndResumedBitForBit) {
  const Case& c = GetParam();
  Model model(c.dtype), other(c.dtype);
  model.to(c.device);
  other.to(c.device);
  const auto rule = make(true), resumed = make(true);
  rule->setup(model);
  train(*rule, model, 0, 5);
  const auto saved = saved_state(*rule);
  EXPECT_EQ(saved.at("m/l1/W").dtype(), c.narrow ? dtype::bfloat16 : dtype::float32);
  EXPECT_EQ(saved.contains("master/l1/W"), c.masters && c.dtype != dtype::float32);
  other.copy_parameters_from(model);
  resumed->setup(other);
  resumed->load_state(saved);
  other.to(cpu(2));
  train(*rule, model, 5, 10);
  train(*resumed, other, 5, 10);
  EXPECT_EQ(resumed->state_of(other.l1.W)[1].dtype(), c.narrow ? dtype::bfloat16 : dtype::float32);
  EXPECT_EQ(resumed->state_of(other.l1.W)[1].device(), cpu(2));
  if (!c.device.is_cpu()) return;  // powers differ in their last bits
  EXPECT_EQ(all_values(other.parameters()), all_values(model.parameters()));
}

// What one format has saved the other takes: rounded, widened, without or with new master copies.
TEST_P(Formats, TakeStatesOfTheUsualOneAndGiveThemBack) {
  const Case& c = GetParam();
  Model model(c.dtype);
  model.to(c.device);
  const auto usual = make_rule(true, {}, true), rule = make(true);
  usual->setup(model);
  train(*usual, model, 0, 5);
  const auto saved = saved_state(*usual);
  rule->setup(model);
  rule->load_state(saved);
  EXPECT_EQ(rule->t(), 5);
  const Dtype dtype = c.narrow ? dtype::bfloat16 : dtype::float32;
  const std::vector<double> v = saved.at("v/l2/W").astype(dtype).to_vector<double>();
  EXPECT_EQ(rule->state_of(model.l2.W)[1].to_vector<double>(), v);
  const auto own = saved_state(*rule);
  usual->setup(model);
  usual->load_state(own);
  EXPECT_EQ(usual->state_of(model.l2.W)[1].dtype(), dtype::float32);
  EXPECT_EQ(usual->state_of(model.l2.W)[1].to_vector<double>(), v);
  if (c.masters) return;
  EXPECT_EQ(usual->state_of(model.l2.W).back().to_vector<double>(),
            model.l2.W.data().to_vector<double>());
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const Device device : test_devices()) {
    result.push_back({dtype::float32, true, true, device});
    for (const Dtype dtype : {dtype::float16, dtype::bfloat16}) {
      result.push_back({dtype, true, true, device});
      result.push_back({dtype, false, false, device});
      result.push_back({dtype, true, false, device});
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Rules, Formats, ::testing::ValuesIn(cases()), [](const auto& info) {
  const Case& c = info.param;
  std::string device = c.device.name();
  std::replace(device.begin(), device.end(), ':', '_');
  return message(c.dtype, c.narrow ? "_narrow" : "_wide", c.masters ? "_" : "_alone_", device);
});

// The parameters alone, and half of the rest.
TEST(StateFormat, HasFewerBytes) {
  const auto bytes = [](const AdamWOptions& options) {
    Model model(dtype::bfloat16);
    AdamW rule(0.01, options);
    rule.setup(model);
    const ParameterArena& arena = rule.layout().arenas()[0];
    return arena.state_bytes() / arena.size();
  };
  EXPECT_EQ(bytes({}), 12);
  EXPECT_EQ(bytes({.state_dtype = dtype::bfloat16}), 8);
  EXPECT_EQ(bytes({.master_copies = false}), 8);
  EXPECT_EQ(bytes({.state_dtype = dtype::bfloat16, .master_copies = false}), 4);
}

// As AdamOptions::state_dtype says.
TEST(StateFormat, OfSixteenBitsLosesSmallChanges) {
  for (const double beta2 : {0.999, 0.99}) {
    const Parameter p(zeros({1}, dtype::float32));
    Adam rule(0.01, {.beta2 = beta2, .state_dtype = dtype::bfloat16});
    rule.setup({p});
    const auto v_after = [&](double g, int steps) {
      for (int t = 0; t < steps; ++t) {
        p.set_grad(full({1}, g, dtype::float32));
        rule.update();
      }
      return rule.state_of(p)[1].to_vector<double>()[0];
    };
    const double risen = v_after(1, 10000);
    const double fallen = v_after(0, 10000);
    if (beta2 == 0.999) {
      EXPECT_LT(risen, 0.5);
      EXPECT_GT(risen, 0.1);
      EXPECT_EQ(fallen, risen);
    } else {
      EXPECT_GT(risen, 0.6);
      EXPECT_LT(fallen, 1e-6);
    }
  }
}

TEST(StateFormat, RefusesOtherDtypes) {
  expect_contains(error_of<DtypeError>([] { AdamW(0.1, {.state_dtype = dtype::float16}); }),
                  {"AdamW: expected state_dtype bfloat16, got float16"});
  Adam rule(0.1, {.state_dtype = dtype::bfloat16});
  Model model(dtype::float64);
  expect_contains(error_of<DtypeError>([&] { rule.setup(model); }),
                  {"setup: Adam keeps states of bfloat16", "got float64", "without state_dtype"});
}

}  // namespace
}  // namespace catena::optimizers
