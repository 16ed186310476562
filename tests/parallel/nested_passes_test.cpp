// Backward passes inside backward passes, and in parts, under data parallelism: ranks stay equal,
// and get the numbers of whole passes.
#include <gtest/gtest.h>

#include "catena/autograd/backward.h"
#include "catena/autograd/function.h"
#include "catena/comm/factory.h"
#include "catena/functions/math.h"
#include "catena/parallel/no_sync.h"
#include "parallel/network.h"

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
  std::vector<std::vector<double>> results(2);
  comm::run_threads(2,
                    [&](Communicator& comm) { results[size_t(comm.rank())] = train(comm, how); });
  return results;
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

}  // namespace
}  // namespace catena::testing
