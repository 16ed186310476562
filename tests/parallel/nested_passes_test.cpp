// Backward passes inside backward passes, and in parts, under data parallelism: ranks stay equal,
// and get the numbers of whole passes.
#include <gtest/gtest.h>

#include "catena/array/random.h"
#include "catena/autograd/backward.h"
#include "catena/autograd/function.h"
#include "catena/comm/factory.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/math.h"
#include "catena/functions/noise.h"
#include "catena/functions/normalization.h"
#include "catena/functions/recompute.h"
#include "catena/parallel/no_sync.h"
#include "parallel/network.h"
#include "rank_results.h"

namespace catena::testing {
namespace {

enum class How { kPlain, kUndeclared, kDeclared, kInParts };

// Computes the layer again in backward.
struct Again : Function {
  F::Linear* layer;
  bool declares;
  Again(F::Linear* l, bool d) : layer(l), declares(d) {}
  std::vector<Parameter> uses() const override {
    return declares ? std::vector<Parameter>{layer->W, layer->b} : std::vector<Parameter>{};
  }
  Arrays forward(const Arrays& x) override {
    const NoBackprop off;
    return {(*layer)(Variable::constant(x[0])).data()};
  }
  Arrays backward(const Arrays& x, const Arrays& gy) override {
    const ForceBackprop on;
    const Variable v(x[0]), y = (*layer)(v);
    y.set_grad(gy[0]);
    y.backward();
    return {v.grad()};
  }
};

Variable apply(F::Linear& l, const Variable& h, How how) {
  if (how == How::kPlain || how == How::kInParts) return l(h);
  return call(Again(&l, how == How::kDeclared), h);
}

// The parameters after a few steps, of this rank.
std::vector<double> train(Communicator& comm, How how) {
  const DeviceScope scope(comm.device());
  Net model(dtype::float64);
  model.to(comm.device());
  auto optimizer = parallel::create_multi_node_optimizer(optimizers::SGD(0.1), comm, {64, 64, 64});
  optimizer.setup(model);
  for (int step = 0; step < 4; ++step) {
    model.zero_grads();
    const Variable x(wave({3, kInputs}, comm.rank() + step, dtype::float64).to(comm.device()));
    const Variable h = F::tanh(model.l1(x));
    const Variable y = F::sum(F::square(apply(model.l3, F::tanh(apply(model.l2, h, how)), how)));
    if (how == How::kInParts) {
      DeferredWeights later;
      y.backward({.weights_later = &later});
      backward_weights(later);
    } else {
      y.backward();
    }
    optimizer.update();
  }
  std::vector<double> all;
  for (const Parameter& p : model.parameters())
    for (double v : p.data().to_cpu().reshape({-1}).to_vector<double>()) all.push_back(v);
  return all;
}

std::vector<std::vector<double>> on_ranks(How how) {
  return of_ranks(2, [&](Communicator& comm) { return train(comm, how); });
}

TEST(NestedPassesOverRanks, KeepRanksEqual) {
  const auto plain = on_ranks(How::kPlain);
  EXPECT_EQ(plain[0], plain[1]);
  for (How how : {How::kUndeclared, How::kDeclared, How::kInParts}) {
    const auto results = on_ranks(how);
    EXPECT_EQ(results[0], plain[0]) << int(how);
    EXPECT_EQ(results[1], plain[0]) << int(how);
  }
}

// A residual network with normalization and dropout, whose blocks are computed again.
struct Residual : FunctionSet {
  F::Convolution2D first{1, 4, 3, {.pad = 1}}, c1{4, 4, 3, {.pad = 1}}, c2{4, 4, 3, {.pad = 1}};
  F::BatchNormalization b1{4}, b2{4};
  F::Linear last{4 * 36, kClasses, {.flatten = true}};
  CATENA_FUNCTIONS(first, c1, c2, b1, b2, last)
  Variable operator()(const Variable& x, bool again) const {
    const auto block = [&](const Variable& v) {
      return b2.add_relu(c2(F::dropout(b1.relu(c1(v)), 0.2)), v);
    };
    Variable h = F::relu(first(x));
    for (int i = 0; i < 2; ++i) h = again ? F::recompute(block, h) : block(h);
    return last(h);
  }
};

std::vector<std::vector<double>> train_residual(bool again) {
  return of_ranks(2, [&](Communicator& comm) {
    const DeviceScope scope(comm.device());
    random::default_state(comm.device()).seed(5 + uint64_t(comm.rank()));
    Residual model;
    model.to(comm.device());
    auto optimizer =
        parallel::create_multi_node_optimizer(optimizers::MomentumSGD(0.05), comm, {64, 64, 64});
    optimizer.setup(model);
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grads();
      const Array x = wave({4, 1, 6, 6}, comm.rank() + 2 * step, dtype::float32).to(comm.device());
      F::sum(F::square(model(x, again))).backward();
      optimizer.update();
    }
    std::vector<double> all;
    for (const Parameter& p : model.parameters())
      for (float v : p.data().to_cpu().reshape({-1}).to_vector<float>()) all.push_back(v);
    return all;
  });
}

TEST(RecomputeOverRanks, GivesEqualBits) {
  const auto plain = train_residual(false);
  EXPECT_EQ(plain[0], plain[1]);
  EXPECT_EQ(train_residual(true), plain);
}

}  // namespace
}  // namespace catena::testing
