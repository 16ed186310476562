// Graphs and layers refer to parameters: their arrays may move, writes count for each, and layers
// that are assigned stay with their optimizer.
#include <gtest/gtest.h>

#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/autograd/function_set.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/functions/normalization.h"
#include "catena/optimizers/sgd.h"
#include "catena/testing.h"

namespace catena {
namespace {

namespace F = catena::functions;

struct Net : FunctionSet {
  F::Linear l1{4, 8}, l2{8, 3};
  CATENA_FUNCTIONS(l1, l2)
  Variable operator()(const Variable& x) const { return l2(F::relu(l1(x))); }
};

Array batch() { return random::normal({2, 4}, 0, 1, dtype::float32); }

TEST(ParametersInGraphs, WritesCountForTheParameterAlone) {
  Net net;
  optimizers::SGD optimizer;
  optimizer.setup(net);
  Variable y = F::sum(net(batch()));
  net.l1.b.data().fill(0);  // no backward reads it
  EXPECT_NO_THROW(y.backward());
  y = F::sum(net(batch()));
  net.l2.W.data().fill(0);
  EXPECT_THROW(y.backward(), GradientError);
  y = F::sum(net(batch()));
  net.l2.W.data()(0).fill(0);  // a view of it
  EXPECT_THROW(y.backward(), GradientError);
  y = F::sum(net(batch()));
  optimizer.update();  // writes all of them
  EXPECT_THROW(y.backward(), GradientError);
}

TEST(ParametersInGraphs, MovesAreNoWrites) {
  Net net;
  const Array x = batch();
  const Variable y = F::sum(net(x));
  optimizers::SGD first, second;
  first.setup(net);
  second.setup({net.l2.W, net.l2.b});
  y.backward();
  const Array gradient = net.l2.W.grad().copy();
  net.zero_grads();
  F::sum(net(x)).backward();
  assert_allclose(net.l2.W.grad(), gradient, 0, 0);
}

TEST(ParametersInGraphs, TheArrayOfBeforeIsFreed) {
  const size_t before = memory_statistics(cpu(0)).in_use;
  Net net;
  const Variable y = F::sum(net(batch()));
  const void* memory = net.l2.W.data().raw_data();
  optimizers::SGD optimizer;
  optimizer.setup(net);
  EXPECT_NE(net.l2.W.data().raw_data(), memory);
  // Parameters and gradients in the arena, what the graph keeps, but no second copy of parameters.
  const size_t bytes = net.parameter_count() * sizeof(float);
  EXPECT_LT(memory_statistics(cpu(0)).in_use - before, 2 * bytes + 8192);
}

TEST(AssignedLayers, StayWithTheirOptimizer) {
  Net net;
  optimizers::SGD optimizer(0.1);
  optimizer.setup(net);
  const Parameter before = net.l2.W;
  net.l2 = F::Linear(8, 3, {.initialW = full({3, 8}, 2.0, dtype::float32)});
  EXPECT_TRUE(net.l2.W == before);
  EXPECT_EQ(net.l2.W.data()(0, 0).item<float>(), 2);
  Net other;
  other.l1.W.data().fill(5);
  net = std::move(other);
  EXPECT_TRUE(net.l2.W == before);
  EXPECT_EQ(net.l1.W.data()(0, 0).item<float>(), 5);
  const Array start = net.l2.W.data().copy();
  optimizer.zero_grads();
  F::sum(F::square(net(square(batch())))).backward();  // positive: no unit is off
  optimizer.update();
  EXPECT_NE(net.l2.W.data()(0, 0).item<float>(), start(0, 0).item<float>());
}

TEST(AssignedLayers, OfAnotherShapeTakeThePlace) {
  Net net;
  optimizers::SGD optimizer;
  optimizer.setup(net);
  const Parameter before = net.l2.W;
  net.l2 = F::Linear(8, 5);
  EXPECT_FALSE(net.l2.W == before);
  EXPECT_EQ(net.l2.W.shape(), (Shape{5, 8}));
}

TEST(AssignedLayers, SwapAndLeaveListsWithTheirParameters) {
  std::vector<F::Linear> layers(3, F::Linear(2, 2));
  struct List : FunctionSet {
    std::vector<F::Linear> all;
    CATENA_FUNCTIONS(all)
  } model;
  model.all = std::move(layers);
  optimizers::SGD optimizer;
  optimizer.setup(model);
  const Parameter first = model.all[0].W, second = model.all[1].W, third = model.all[2].W;
  std::swap(model.all[0], model.all[1]);
  EXPECT_TRUE(model.all[0].W == second && model.all[1].W == first);
  model.all.erase(model.all.begin());
  EXPECT_TRUE(model.all[0].W == first && model.all[1].W == third);
}

TEST(AssignedLayers, KeepTheArraysThatAModelHasListed) {
  struct Normalized : FunctionSet {
    F::BatchNormalization bn{3};
    CATENA_FUNCTIONS(bn)
  } model;
  optimizers::SGD optimizer;
  optimizer.setup(model);
  const Persistent before = model.bn.avg_mean;
  F::BatchNormalization fresh(3);
  fresh.avg_mean.data().fill(4);
  model.bn = std::move(fresh);
  EXPECT_TRUE(model.bn.avg_mean == before);
  EXPECT_EQ(before.data()(0).item<float>(), 4);
}

}  // namespace
}  // namespace catena
