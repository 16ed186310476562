// Train and test state of models, and the scope that switches it.
#include "catena/autograd/test_scope.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/functions/noise.h"

namespace catena {
namespace {

namespace F = catena::functions;

struct Inner : FunctionSet {
  F::Dropout drop{0.9};
  F::Linear l{2, 2};
  CATENA_FUNCTIONS(drop, l)
};
struct Net : FunctionSet {
  Inner inner;
  std::vector<Inner> list{Inner(), Inner()};
  FunctionBag bag;
  F::Dropout drop;
  CATENA_FUNCTIONS(inner, list, bag, drop)
  // As user code reads it.
  Variable operator()(const Variable& x) { return F::dropout(x, 0.9, training()); }
};

std::vector<bool> states(const Net& n) {
  return {n.training(),         n.inner.training(), n.inner.drop.training(), n.inner.l.training(),
          n.list[1].training(), n.bag.training(),   n.drop.training()};
}
const std::vector<bool> kTrain(7, true), kTest(7, false);

TEST(TrainState, ReachesEveryFunction) {
  Net net;
  EXPECT_EQ(states(net), kTrain) << "at first";
  EXPECT_EQ(&net.eval(), &net);
  EXPECT_EQ(states(net), kTest);
  EXPECT_EQ(&net.train(), &net);
  EXPECT_EQ(states(net), kTrain);
  net.train(false);
  EXPECT_EQ(states(net), kTest);
  net.inner.train();
  EXPECT_TRUE(net.inner.drop.training());
  EXPECT_FALSE(net.training());
  EXPECT_FALSE(net.drop.training());
}

TEST(TrainState, IsReadByUserCodeAndLayersAndOverriddenByCalls) {
  Net net;
  const Variable x(ones({1000}));
  const auto drops = [&](const Variable& y) { return !same_variable(y, x); };
  EXPECT_TRUE(drops(net(x)));
  EXPECT_TRUE(drops(net.drop(x)));
  EXPECT_FALSE(drops(net.drop(x, false)));
  net.eval();
  EXPECT_FALSE(drops(net(x)));
  EXPECT_FALSE(drops(net.drop(x)));
  EXPECT_TRUE(drops(net.drop(x, true)));
  EXPECT_TRUE(drops(F::dropout(x))) << "a function by itself trains";
  EXPECT_EQ(net.drop.ratio(), 0.5);
  EXPECT_THROW(F::Dropout(1.0), ValueError);
  EXPECT_TRUE(net.drop.parameters().empty());
}

TEST(TrainState, IsCopiedMovedAndAssigned) {
  Net net;
  net.bag.add("drop", F::Dropout());
  net.eval();
  net.inner.drop.train();
  const std::vector<bool> mixed = states(net);
  const Net copy = net;
  EXPECT_EQ(states(copy), mixed);
  EXPECT_FALSE(copy.bag["drop"].training());
  Net filled;
  filled.bag.add("drop", F::Dropout());
  filled = net;
  EXPECT_EQ(states(filled), mixed);
  EXPECT_FALSE(filled.bag["drop"].training());
  Net empty;
  empty = net;
  EXPECT_FALSE(empty.bag["drop"].training());
  const Net moved = std::move(net);
  EXPECT_EQ(states(moved), mixed);
}

TEST(TrainState, IsInheritedInABag) {
  FunctionBag bag;
  bag.eval();
  EXPECT_FALSE(bag.add("set", Inner()).drop.training());
  Inner tested;
  tested.eval();
  bag.train();
  EXPECT_TRUE(bag["set"].training());
  EXPECT_TRUE(bag.add("tested", tested).drop.training());
  Inner frozen;
  frozen.drop.eval();
  EXPECT_FALSE(bag.add("frozen", frozen).drop.training()) << "a part may differ";
  FunctionBag outer;
  outer.add("bag", bag);
  outer.eval();
  EXPECT_FALSE(outer.get<FunctionBag>("bag").get<Inner>("set").drop.training());
}

TEST(TestScope, GivesEachFunctionItsStateBack) {
  Net net;
  net.inner.drop.eval();  // frozen
  const std::vector<bool> before = states(net);
  {
    const TestScope scope(net);
    EXPECT_EQ(states(net), kTest);
    {
      const TestScope again(net);
      EXPECT_EQ(states(net), kTest);
    }
    EXPECT_EQ(states(net), kTest);
    net.bag.add("new", Inner());
    EXPECT_FALSE(net.bag["new"].training());
    net.list.resize(9);  // moves the others
  }
  EXPECT_EQ(states(net), before);
  EXPECT_TRUE(net.bag.get<Inner>("new").drop.training());
  try {
    const TestScope scope(net);
    throw ValueError("in the test pass");
  } catch (const ValueError&) {
  }
  EXPECT_EQ(states(net), before);
  net.eval();
  { const TestScope scope(net); }
  EXPECT_EQ(states(net), kTest) << "it was so before";
}

}  // namespace
}  // namespace catena
