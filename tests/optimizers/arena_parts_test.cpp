// Arenas that keep a part of their data and gradients: what is freed, what is updated, and what
// parameters say whose values or gradients are not here.
#include <gtest/gtest.h>

#include <memory>

#include "catena/functions/connection.h"
#include "catena/functions/math.h"
#include "catena/optimizers/adam.h"
#include "error_text.h"
#include "optimizers/models.h"

namespace catena::optimizers {
namespace {

namespace F = catena::functions;
using catena::testing::all_values;
using catena::testing::Model;
using catena::testing::set_gradients;
using catena::testing::test_devices;

// This process keeps one of several parts; there are no others to gather from.
struct Part : UpdateStage, Processes {
  Share own;
  bool sums_parts = false;
  explicit Part(int64_t index, int64_t count) : own{index, count} {}
  UpdatePhase phase() const override { return UpdatePhase::kGather; }
  const char* name() const override { return "part"; }
  Processes* processes() override { return this; }
  Share share() const override { return own; }
  void sum(const Arrays&, Sum of) override { sums_parts |= of == Sum::kParts; }
  void run(UpdateContext&) override {}
};

// As a reduction leaves gradients of which this process keeps its part.
void keep_gradient(ParameterArena& arena) {
  arena.collect_gradient();
  arena.settle_gradients();
  const Array own = arena.own_gradient(true);
  own.assign(arena.gradient().part(arena.covers()));
  arena.keep_own_gradient(own);
}

// As an exchange brings values that were let go.
void bring(ParameterArena& arena, const Array& values) {
  const Array whole = arena.memory_for_data();
  whole.assign(values);
  arena.take_whole_data(whole);
}

TEST(ArenaParts, TakeTheirShareOfTheBytes) {
  Model model(dtype::float16);
  Adam rule(0.1);
  rule.add_stage(std::make_shared<Part>(1, 2));
  rule.setup(model);
  ParameterArena& arena = rule.arena(0);
  const int64_t size = arena.size(), states = arena.state_bytes();
  EXPECT_EQ(states, 12 * size / 2);
  EXPECT_EQ(arena.bytes(), 4 * size + states);
  keep_gradient(arena);
  EXPECT_EQ(arena.bytes(), 3 * size + states);
  arena.keep_own_data(true);
  EXPECT_EQ(arena.bytes(), 2 * size + states);
  EXPECT_EQ(arena.data().covers, arena.covers());
  EXPECT_EQ(arena.covered().gradient.raw_data(), arena.gradient().memory.raw_data());
  EXPECT_THROW(arena.make_states({}, {0, size}), IndexError);
}

// Parameters whose values or gradients are not here.
struct Kept : ::testing::Test {
  struct Net : FunctionSet {
    F::Linear l1{3, 4}, l2{4, 2};
    CATENA_FUNCTIONS(l1, l2)
    Variable operator()(const Array& x) const { return l2(F::tanh(l1(x))); }
  } net;
  Adam rule{0.1};
  const Array x = catena::testing::Pair::values({5, 3}, dtype::float32, 0.25);
  std::vector<std::vector<double>> before;

  void SetUp() override {
    rule.add_stage(std::make_shared<Part>(1, 2));  // /l1/b and /l1/W
    rule.setup(net);
    before = all_values(net.parameters());
  }
  ParameterArena& arena() { return rule.arena(0); }
};

TEST_F(Kept, ValuesThatAreNotHereAreAnErrorThatNamesTheParameter) {
  arena().keep_own_data(true);
  EXPECT_TRUE(rule.layout().in_place());
  const Parameter& W = net.l2.W;
  EXPECT_EQ(W.shape(), (Shape{2, 4}));
  EXPECT_EQ(W.dtype(), dtype::float32);
  EXPECT_EQ(W.device(), cpu(0));
  const auto expect_named = [](const std::string& error, const char* who) {
    expect_contains(error, {who, "/l2/W'", "not in this process", "take_whole_data"});
  };
  expect_named(error_of<ValueError>([&] { W.data(); }), "Parameter::data");
  expect_named(error_of<ValueError>([&] { W.to(cpu(1)); }), "Parameter::data");
  expect_named(error_of<ValueError>([&] { W.clone(); }), "Parameter::data");
  expect_named(error_of<ValueError>([&] {
                 W.copy_from(zeros({2, 4}, dtype::float32));
               }),
               "Parameter::data");
  expect_named(error_of<ValueError>([&] { W.state()->low(dtype::bfloat16); }), "low");
  expect_contains(error_of<ValueError>([&] { net(x); }), {"Linear 'l1'", "/l1/W'", "not in this"});
  EXPECT_FALSE(W.variable().data().is_writable());
}

TEST_F(Kept, ComeBackWithTheirValues) {
  const Array whole = arena().data().memory.copy();
  const Variable y = net(x);
  arena().keep_own_data(true);
  y.set_grad(ones(y.shape(), dtype::float32));
  expect_contains(error_of<ValueError>([&] { y.backward(); }), {"backward of Linear", "/l2/W'"});
  bring(arena(), whole);
  EXPECT_EQ(all_values(net.parameters()), before);
  rule.zero_grads();
  y.set_grad(ones(y.shape(), dtype::float32));
  y.backward();  // a gathered parameter is not an overwritten one
  EXPECT_TRUE(net.l1.W.state()->has_gradient());
}

// An update while a parameter is away is a write of it.
TEST_F(Kept, UpdatesCountForParametersThatAreAway) {
  const Array whole = arena().data().memory.copy();
  const Variable y = net(x);
  rule.zero_grads();
  arena().keep_own_data(true);
  rule.update();
  bring(arena(), whole);
  y.set_grad(ones(y.shape(), dtype::float32));
  expect_contains(error_of<GradientError>([&] { y.backward(); }), {"overwritten"});
}

TEST_F(Kept, GradientsThatAreNotHereAreAnErrorThatNamesTheParameter) {
  rule.zero_grads();
  F::sum(net(x)).backward();
  const auto own = net.l1.W.grad().to_vector<double>(), other = net.l2.W.grad().to_vector<double>();
  keep_gradient(arena());
  EXPECT_TRUE(rule.layout().in_place());
  EXPECT_EQ(net.l1.W.grad().to_vector<double>(), own) << "kept";
  const Parameter& W = net.l2.W;
  const auto expect_named = [](const std::string& error) {
    expect_contains(error, {"/l2/W'", "not in this process"});
  };
  expect_named(error_of<GradientError>([&] { W.grad(); }));
  expect_named(error_of<GradientError>([&] { W.variable().grad(); }));
  expect_named(error_of<GradientError>([&] { W.set_grad(zeros({2, 4}, dtype::float32)); }));
  rule.zero_grads();
  expect_contains(error_of<GradientError>([&] { F::sum(net(x)).backward(); }),
                  {"/l2/", "not in this process"});
  // A stage may give the pass memory for it, as reductions of buckets do.
  const Array memory = zeros({2, 4}, dtype::float32), bias = zeros({2}, dtype::float32);
  W.state()->bind_gradient(memory);
  net.l2.b.state()->bind_gradient(bias);
  EXPECT_TRUE(rule.layout().in_place());
  rule.zero_grads();
  F::sum(net(x)).backward();
  EXPECT_EQ(memory.to_vector<double>(), other);
  keep_gradient(arena());
  EXPECT_EQ(net.l1.W.grad().to_vector<double>(), own);
  W.to(cpu(1));  // without the gradient, which is not here
  EXPECT_EQ(W.grad().to_vector<double>(), std::vector<double>(8, 0));
}

// Parameters that have left the arena stay where they are when the others come back.
TEST(ArenaParts, ComeBackWithoutThoseThatHaveMoved) {
  Model model;
  Adam rule(0.1);
  rule.add_stage(std::make_shared<Part>(0, 2));
  rule.setup(model);
  const auto before = all_values(model.parameters());
  ParameterArena& arena = rule.arena(0);
  const Array whole = arena.data().memory.copy(), before_W = model.l2.W.data().copy();
  arena.keep_own_data(true);
  const Array elsewhere = before_W.to(cpu(1));
  model.l2.W.rebind_data(elsewhere);
  EXPECT_FALSE(rule.layout().in_place());
  expect_contains(error_of<ValueError>([&] { ArenaSet(model.named_parameters()); }),
                  {"Parameter::data", "/l2/b'"});
  bring(arena, whole);
  EXPECT_EQ(model.l2.W.device(), cpu(1));
  EXPECT_EQ(all_values(model.parameters()), before);
}

}  // namespace
}  // namespace catena::optimizers
