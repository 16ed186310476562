// Rules that update parameter by parameter, of 16-bit parameters: they see the master copies.
#include <gtest/gtest.h>

#include "catena/array/math.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/optimizer.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

using catena::testing::all_values;
using catena::testing::copied_state;
using catena::testing::Model;

// A rule as users write them, with one state and the dtypes that it met.
struct Plain : Optimizer {
  Plain() : Optimizer("lr", 1e-4) {}
  std::vector<Dtype> seen;
  std::vector<std::string> state_names() const override { return {"sum"}; }
  void update_one(const Array& p, const Array& g, const Arrays& states) override {
    EXPECT_EQ(states.size(), 1u) << "without the master copy";
    seen = {p.dtype(), g.dtype(), states[0].dtype()};
    states[0] += g;
    p -= lr() * g;
  }
};

class Masters : public ::testing::TestWithParam<std::tuple<Dtype, Device>> {
 protected:
  Dtype dtype = std::get<0>(GetParam());
  Device device = std::get<1>(GetParam());
};

// 1e-4 is a 39th of the distance of bfloat16 numbers at 1: 200 steps by 16-bit numbers change
// nothing.
TEST_P(Masters, KeepStepsThatSixteenBitsLose) {
  const Parameter p(full({4}, 1.0, {dtype, device}));
  Plain rule;
  rule.setup({p});
  for (int t = 0; t < 200; ++t) {
    p.set_grad(ones({4}, {dtype, device}));
    rule.update();
  }
  EXPECT_EQ(rule.seen, std::vector<Dtype>(3, dtype::float32));
  const double master = rule.state_of(p).back().to_vector<double>()[0];
  EXPECT_NEAR(master, 0.98, 1e-5);
  EXPECT_EQ(p.data().to_vector<double>()[0], full({}, master, dtype).item<double>());
  EXPECT_EQ(rule.state_of(p)[0].to_vector<double>()[0], 200);
}

TEST_P(Masters, FollowWhatOthersWrite) {
  const Parameter p(full({4}, 1.0, {dtype, device}));
  Plain rule;
  rule.setup({p});
  for (int t = 0; t < 10; ++t) {
    p.set_grad(ones({4}, {dtype, device}));
    rule.update();
  }
  p.data()[2].fill(8);
  p.set_grad(ones({4}, {dtype, device}));
  rule.update();
  const std::vector<double> master = rule.state_of(p).back().to_vector<double>();
  EXPECT_NEAR(master[0], 1 - 11e-4, 1e-6);
  EXPECT_NEAR(master[2], 8 - 1e-4, 1e-6);
}

TEST_P(Masters, AreSavedAndMove) {
  Model model(dtype), other(dtype);
  model.to(device);
  other.to(device);
  Plain rule, resumed;
  rule.setup(model);
  resumed.setup(other);
  for (int64_t t = 1; t <= 4; ++t) step(rule, model, t);
  const auto saved = copied_state(rule);
  EXPECT_TRUE(saved.contains("master/l1/W") && saved.contains("sum/l1/W"));
  other.copy_parameters_from(model);
  resumed.load_state(saved);
  other.to(cpu(2));
  for (int64_t t = 5; t <= 8; ++t) {
    step(rule, model, t);
    step(resumed, other, t);
  }
  EXPECT_EQ(all_values(other.parameters()), all_values(model.parameters()));
  EXPECT_EQ(resumed.state_of(other.l1.W).back().to_vector<double>(),
            rule.state_of(model.l1.W).back().to_vector<double>());
  EXPECT_EQ(resumed.state_of(other.l1.W).back().device(), cpu(2));
}

std::vector<std::tuple<Dtype, Device>> cases() {
  std::vector<std::tuple<Dtype, Device>> result;
  for (const Dtype dtype : {dtype::float16, dtype::bfloat16})
    for (const Device device : catena::testing::test_devices()) result.emplace_back(dtype, device);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Rules, Masters, ::testing::ValuesIn(cases()), [](const auto& info) {
  std::string device = std::get<1>(info.param).name();
  std::replace(device.begin(), device.end(), ':', '_');
  return message(std::get<0>(info.param), "_", device);
});

// A state of the same name keeps its name.
TEST(MastersOfRules, WithAStateOfThatNameAreCalledOtherwise) {
  struct Rule : Plain {
    std::vector<std::string> state_names() const override { return {"master"}; }
  };
  for (const Dtype dtype : {dtype::float32, dtype::bfloat16}) {
    Rule rule;
    Model model(dtype);
    rule.setup(model);
    step(rule, model, 1);
    const auto saved = copied_state(rule);
    EXPECT_TRUE(saved.contains("master/l1/W"));
    EXPECT_EQ(saved.contains("float32/l1/W"), dtype == dtype::bfloat16);
    const std::vector<double> sums = rule.state_of(model.l1.W)[0].to_vector<double>();
    step(rule, model, 2);
    rule.load_state(saved);
    EXPECT_EQ(rule.state_of(model.l1.W)[0].to_vector<double>(), sums);
  }
}

}  // namespace
}  // namespace catena::optimizers
