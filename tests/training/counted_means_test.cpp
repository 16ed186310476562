// Means over labels that count: evaluation and accumulated training with ignored labels are those
// of one pass over all samples, however they are divided.
#include <gtest/gtest.h>

#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/comm/factory.h"
#include "catena/datasets/prefetch.h"
#include "catena/functions/array.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/optimizers/sgd.h"
#include "catena/training/accumulating_updater.h"
#include "catena/training/evaluator.h"
#include "catena/training/updater.h"
#include "error_text.h"
#include "training/number_sums.h"

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

// Sums of several means --------------------------------------------------------------------------

// Four that are sums in different ways, and one that is a product.
const std::vector<std::string> kSums{"sum", "difference", "scaled", "three", "penalty", "product"};

Score sums_score(CountedNet& net) {
  return [&net](const datasets::Batch& batch) -> Variables {
    const Variable y = net.l(batch.x());
    const Variable loss = F::softmax_cross_entropy(y, batch.t()), square = F::mean(y * y),
                   accuracy = F::accuracy(y, batch.t(), -1);
    return {loss + square,
            1.5 - (square - loss),
            F::cast(2 * (0.5 * loss + square / 4 + 3), dtype::float64).reshape({1}),
            -(loss - 2 * (accuracy + square)),
            loss + 0.01 * F::sum(net.l.W * net.l.W),
            loss * accuracy};
  };
}

// In batches of so many.
std::map<std::string, double> sums_of(int64_t batch, Communicator* comm = nullptr) {
  CountedNet net;
  const Device device = comm ? comm->device() : cpu(0);
  net.to(device);
  datasets::PrefetchIterator batches(data(), datasets::SerialIterator(14, batch), device,
                                     {comm ? comm->rank() : 0, comm ? comm->size() : 1});
  return evaluate(net, batches, kSums, sums_score(net), comm);
}

TEST(CountedMeans, SumsOfMeansAreThoseOfOnePass) {
  const auto expected = sums_of(14);
  const auto check = [&](const std::map<std::string, double>& means, const std::string& what) {
    for (const std::string& name : kSums)
      if (name != "product") {
        EXPECT_NEAR(means.at(name), expected.at(name), 1e-13) << name << ", " << what;
      }
  };
  for (const int64_t batch : {1, 3, 5}) check(sums_of(batch), message("batches of ", batch));
  for (const int ranks : {2, 3})
    comm::run_threads(ranks, [&](Communicator& comm) {
      for (const int64_t batch : {1, 5}) check(sums_of(batch, &comm), message(ranks, " ranks"));
    });
  EXPECT_GT(std::abs(sums_of(5).at("product") - expected.at("product")), 1e-3)
      << "as Means says of other functions";
}

// Under a graph, too, where the loss is that of a step.
TEST(CountedMeans, TheLossOfAStepOverRanksMayBeASum) {
  const auto losses = [](Communicator* comm) {
    CountedNet net;
    net.to(comm ? comm->device() : cpu(0));
    datasets::PrefetchIterator batches(data(), datasets::SerialIterator(14, 14, true),
                                       comm ? comm->device() : cpu(0),
                                       {comm ? comm->rank() : 0, comm ? comm->size() : 1});
    optimizers::SGD rule(0.1);
    const Score score = [&net](const datasets::Batch& batch) -> Variables {
      return {sums_score(net)(batch)[0]};
    };
    Means means({"loss"});
    if (comm == nullptr) {
      rule.setup(net);
      StandardUpdater(batches, make_step(rule, score)).update(means);
    } else {
      parallel::MultiNodeOptimizer optimizer(rule, *comm);
      optimizer.setup(net);
      StandardUpdater(batches, make_step(optimizer, score)).update(means);
    }
    const double over_ranks = mean_over_ranks([&] { return means.sum("loss"); },
                                              comm ? comm->shared_from_this() : nullptr)();
    means.reduce(comm);
    EXPECT_EQ(over_ranks, means.value("loss"));
    return means.value("loss");
  };
  const double expected = losses(nullptr);
  for (const int ranks : {1, 2, 3})
    comm::run_threads(ranks,
                      [&](Communicator& comm) { EXPECT_NEAR(losses(&comm), expected, 1e-14); });
}

Variable mean(double value, double counted) {
  const Variable v = Variable::constant(array<double>({value}));
  declare_mean(v, {array<double>({counted}), counted});
  return v;
}

// What slices and captured steps give; `stays`: in memory that graphs may write to.
TEST(CountedMeans, SumsOfSeveralPassesAreThoseOfOne) {
  const Variable plain = Variable::constant(array<double>({6}));
  const Numbers first(Variables{mean(1, 3) + plain, plain}),
      second(Variables{mean(5, 1) + 2 * plain, plain});
  for (const bool stays : {false, true}) {
    NumberSums sums;
    for (int pass = 0; pass < (stays ? 2 : 1); ++pass) {
      if (stays && pass == 0) sums.begin(first);
      sums.add(first, 1);
      sums.add(second, 3);
      Means means({"sum", "plain"});
      means.add_counted(sums.means(4), 4);
      EXPECT_EQ(means.value("sum"), (1 * 3 + 5) / 4. + (6 + 3 * 12) / 4.) << stays;
      EXPECT_EQ(means.value("plain"), 6) << stays;
      if (stays) sums.clear();
    }
  }
  NumberSums mixed;
  mixed.add(first, 1);
  mixed.add(Numbers(Variables{plain, plain}), 1);
  mixed.add(second, 2);
  EXPECT_TRUE(mixed.means(4).terms[0].empty());
  EXPECT_EQ(mixed.means(4)[0].item<double>(), (7 + 6 + 2 * 17) / 4.);
}

TEST(CountedMeans, SumsWhoseTermsChangeCountBySamples) {
  const Variable sum = mean(1, 3) + mean(2, 1), other = mean(3, 1) + mean(4, 7);
  Means means({"loss"});
  means.add("loss", sum, 2);
  means.add("loss", other, 2);
  EXPECT_EQ(means.value("loss"), (1 * 3 + 3 * 1) / 4. + (2 * 1 + 4 * 7) / 8.);
  EXPECT_EQ(means.count("loss"), 4);
  Means copy({"loss"});
  copy.add("loss", means.sum("loss"));
  EXPECT_EQ(copy.value("loss"), means.value("loss")) << "as of a checkpoint";
  means.add("loss", sum + mean(0, 5), 4);
  EXPECT_EQ(means.value("loss"), (3. * 2 + 7 * 2 + 3 * 4) / 8);
  copy.add("loss", 7, 4);
  EXPECT_EQ(copy.value("loss"), (3. * 2 + 7 * 2 + 7 * 4) / 8);
  means.clear();
  means.add("loss", sum - mean(5, 0), 1);
  EXPECT_EQ(means.value("loss"), 3) << "what never counts is left out";
  Variable many = mean(0, 1);
  for (int i = 0; i < 1000; ++i) many = many + mean(1, 1);
  EXPECT_EQ(many.data().to_vector<double>()[0], 1000);
  EXPECT_LE(mean_terms_of(many).size(), 16u);
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
