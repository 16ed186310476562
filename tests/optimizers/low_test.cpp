// 16-bit copies of float32 parameters: made when asked for, then written by the rule's kernel.
#include <gtest/gtest.h>

#include "catena/optimizers/adam.h"
#include "catena/optimizers/lars.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/optimizers/sgd.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

using catena::testing::Model;
using catena::testing::set_gradients;
using catena::testing::test_devices;

std::vector<float> rounded(const Parameter& p, Dtype dtype) {
  return p.data().astype(dtype).to_vector<float>();
}

TEST(Low, IsMadeAnewOnlyAfterWrites) {
  for (const Device device : test_devices()) {
    Model model;
    model.to(device);
    const Parameter& p = model.l1.W;
    ParameterState& state = *p.state();
    const Array low = state.low(dtype::bfloat16);
    EXPECT_EQ(low.to_vector<float>(), rounded(p, dtype::bfloat16));
    const uint64_t writes = low.storage()->version;
    state.low(dtype::bfloat16);
    EXPECT_EQ(low.storage()->version, writes) << "nothing has changed";
    p.data().fill(3);
    EXPECT_FALSE(state.is_low_current());
    EXPECT_EQ(state.low(dtype::bfloat16).to_vector<float>(), std::vector<float>(15, 3));
    EXPECT_EQ(state.low(dtype::bfloat16).raw_data(), low.raw_data());
    model.to(cpu(3));
    EXPECT_EQ(state.low(dtype::bfloat16).device(), cpu(3));
    EXPECT_EQ(state.low(dtype::float16).dtype(), dtype::float16);
  }
}

TEST(Low, OfAParameterOfThatDtypeIsTheParameter) {
  Model model(dtype::float16);
  EXPECT_EQ(model.l1.W.state()->low(dtype::float16).raw_data(), model.l1.W.data().raw_data());
  expect_contains(error_of<DtypeError>([&] { model.l1.W.state()->low(dtype::float32); }),
                  {"low", "float16 or bfloat16, got float32"});
}

using MakeRule = std::unique_ptr<Optimizer> (*)();
const MakeRule kRules[] = {
    []() -> std::unique_ptr<Optimizer> { return std::make_unique<SGD>(0.1); },
    []() -> std::unique_ptr<Optimizer> { return std::make_unique<Adam>(0.1); },
    []() -> std::unique_ptr<Optimizer> { return std::make_unique<LARS>(0.1); },
};

// The copy needs no kernel after an update: it is current and right as it is.
TEST(Low, IsWrittenByTheRule) {
  for (const Device device : test_devices()) {
    for (const Dtype dtype : {dtype::float16, dtype::bfloat16}) {
      for (const MakeRule make : kRules) {
        Model model, twin;
        model.to(device);
        twin.to(device);
        const auto rule = make(), plain = make();
        rule->setup(model);
        plain->setup(twin);
        for (const Parameter& p : Parameters{model.l1.W, model.l2.b}) p.state()->low(dtype);
        for (int64_t t = 1; t <= 3; ++t) {
          step(*rule, model, t);
          step(*plain, twin, t);
          for (const Parameter& p : Parameters{model.l1.W, model.l2.b}) {
            EXPECT_TRUE(p.state()->is_low_current());
            EXPECT_EQ(p.state()->low_memory().to_vector<float>(), rounded(p, dtype));
          }
        }
        EXPECT_EQ(catena::testing::all_values(model.parameters()),
                  catena::testing::all_values(twin.parameters()));
        const Array& low = rule->layout().arenas()[0].low();
        const int64_t offset = rule->layout().arenas()[0].slots().back().offset;
        EXPECT_EQ(model.l1.W.state()->low_memory().raw_data(),
                  static_cast<char*>(low.raw_data()) + offset * low.itemsize());
        EXPECT_FALSE(model.l1.b.state()->low_memory().defined()) << "nobody asked for it";
      }
    }
  }
}

// Loads, copies and moves count as writes; frozen parameters and skipped updates keep their copy.
TEST(Low, FollowsEveryWrite) {
  for (const Device device : test_devices()) {
    Model model;
    model.to(device);
    Adam rule(0.1);
    rule.setup(model);
    rule.add_group("frozen", {"/l2/*"}, {.frozen = true});
    const auto scale = add_loss_scale(rule);
    const auto look = [&](const char* when) {
      for (const Parameter& p : model.parameters())
        EXPECT_EQ(p.state()->low(dtype::bfloat16).to_vector<float>(), rounded(p, dtype::bfloat16))
            << when;
    };
    look("before an update");
    step(rule, model, 1);
    look("after an update");
    model.copy_parameters_from(Model(dtype::float32));
    set_gradients(model.parameters(), 2);
    model.l1.W.grad().fill(INFINITY);
    rule.update();
    EXPECT_EQ(scale->skipped(), 1);
    look("after a copy and a skipped update");
    model.l2.W.data().fill(0.3);
    step(rule, model, 3);
    look("after a frozen parameter was written");
    model.to(cpu(2));
    look("after a move");
    step(rule, model, 4);
    look("after an update there");
  }
}

}  // namespace
}  // namespace catena::optimizers
