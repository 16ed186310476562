// Means over labels that count: evaluation and accumulated training with ignored labels are those
// of one pass over all samples, however they are divided.
#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/comm/factory.h"
#include "catena/datasets/prefetch.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/optimizers/sgd.h"
#include "catena/training/accumulating_updater.h"
#include "catena/training/evaluator.h"
#include "error_text.h"

namespace catena::training {
namespace {

namespace F = catena::functions;

struct CountedNet : FunctionSet {
  CountedNet() {
    RandomState random(2);
    l.W.data().assign(random.normal({3, 4}, 0, 1, dtype::float64));
  }
  F::Linear l{4, 3, {.dtype = dtype::float64}};
  CATENA_FUNCTIONS(l)
};

// Of 14 samples, half of the first ones with labels that are ignored.
std::shared_ptr<datasets::TupleDataset> data() {
  RandomState random(1);
  const Array x = random.normal({14, 4}, 0, 1, dtype::float64),
              t = random.integers({14}, 0, 3, dtype::int32);
  for (const int i : {0, 1, 2, 5, 6}) t(i).fill(-1);
  return std::make_shared<datasets::TupleDataset>(Arrays{x, t});
}

// `linear`: whether the loss itself multiplies by the weights.
Score counted_score(CountedNet& net, bool linear = false) {
  return [&net, linear](const datasets::Batch& batch) -> Variables {
    const Variable y = net.l(batch.x());
    const Variable loss =
        linear ? F::linear_cross_entropy(batch.x(), net.l.W, net.l.b, batch.t(), {.chunk = 2})
               : F::softmax_cross_entropy(y, batch.t());
    return {loss, F::accuracy(y, batch.t(), -1), F::top_k_accuracy(y, batch.t(), 2, -1)};
  };
}

const std::vector<std::string> kNames{"loss", "accuracy", "top"};

TEST(CountedMeans, EvaluationIsThatOfOnePass) {
  CountedNet net;
  datasets::PrefetchIterator whole(data(), datasets::SerialIterator(14, 14), cpu(0));
  const auto expected = evaluate(net, whole, kNames, counted_score(net));
  for (const int ranks : {1, 2, 3})
    comm::run_threads(ranks, [&](Communicator& comm) {
      CountedNet own;
      own.to(comm.device());
      datasets::PrefetchIterator batches(data(), datasets::SerialIterator(14, 4), comm.device(),
                                         {comm.rank(), comm.size()});
      const auto means = evaluate(own, batches, kNames, counted_score(own), &comm);
      for (const std::string& name : kNames)
        EXPECT_NEAR(means.at(name), expected.at(name), 1e-14) << name << ", " << ranks << " ranks";
    });
}

// W and the mean of the losses after two updates of whole batches.
std::pair<Array, double> trained(int64_t batch, int64_t batches_an_update, Communicator* comm,
                                 bool linear) {
  const Device device = comm ? comm->device() : cpu(0);
  CountedNet net;
  net.to(device);
  datasets::PrefetchIterator batches(data(), datasets::SerialIterator(14, batch, true), device,
                                     {comm ? comm->rank() : 0, comm ? comm->size() : 1});
  optimizers::SGD rule(0.5);
  Means means(kNames);
  if (comm) {
    parallel::MultiNodeOptimizer optimizer(rule, *comm);
    optimizer.setup(net);
    AccumulatingUpdater updater(batches, batches_an_update, optimizer, counted_score(net, linear));
    for (int k = 0; k < 2; ++k) updater.update(means);
    optimizer.check_state();
  } else {
    rule.setup(net);
    AccumulatingUpdater updater(batches, batches_an_update, rule, counted_score(net, linear));
    for (int k = 0; k < 2; ++k) updater.update(means);
  }
  means.reduce(comm);
  return {net.l.W.data().to(cpu(0)).copy(), means.value("loss")};
}

void expect_one_pass(bool linear) {
  const auto [weights, loss] = trained(14, 1, nullptr, false);
  const auto check = [&, w = weights, l = loss](const std::pair<Array, double>& other,
                                                const std::string& what) {
    EXPECT_LE(amax(abs(other.first - w)).item<double>(), 1e-14) << what;
    EXPECT_NEAR(other.second, l, 1e-14) << what;
  };
  check(trained(14, 1, nullptr, linear), "one pass");
  check(trained(4, 4, nullptr, linear), "one process");
  for (const int ranks : {1, 2, 3})
    comm::run_threads(ranks, [&](Communicator& comm) {
      check(trained(14, 1, &comm, linear), message(ranks, " ranks"));
      check(trained(4, 4, &comm, linear), message(ranks, " ranks, four passes"));
    });
}

TEST(CountedMeans, AccumulatedTrainingIsThatOfOnePass) { expect_one_pass(false); }

TEST(CountedMeans, SoIsThatOfALinearCrossEntropy) { expect_one_pass(true); }

TEST(CountedMeans, ASumOfMeansIsNotAccumulated) {
  CountedNet net;
  optimizers::SGD rule(0.5);
  rule.setup(net);
  datasets::PrefetchIterator batches(data(), datasets::SerialIterator(14, 4, true), cpu(0));
  AccumulatingUpdater updater(batches, 2, rule, [&](const datasets::Batch& batch) -> Variables {
    const Variable y = net.l(batch.x());
    return {F::softmax_cross_entropy(y, batch.t()) + F::mean(y)};
  });
  Means means({"loss"});
  expect_contains(error_of<GradientError>([&] { updater.update(means); }), {"mean_over"});
}

}  // namespace
}  // namespace catena::training
