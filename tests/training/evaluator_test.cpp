// Means over batches and ranks are those over all samples.
#include "catena/training/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "catena/array/creation.h"
#include "catena/array/reduction.h"
#include "catena/comm/factory.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math.h"
#include "catena/functions/noise.h"
#include "catena/testing_markers.h"
#include "error_text.h"

namespace catena::training {
namespace {

using datasets::Batch;

TEST(Means, WeighBatchesBySize) {
  Means means({"loss", "accuracy"});
  means.add("loss", 1.0, 10);
  means.add("loss", 4.0, 5);
  means.add("loss", std::nan(""), 0);  // an empty batch
  EXPECT_EQ(means.value("loss"), 2.0);
  EXPECT_EQ(means.count("loss"), 15);
  EXPECT_TRUE(std::isnan(means.value("accuracy")));
  means.add("accuracy", array<float>({0.5f}).reshape({}), 4);
  EXPECT_EQ(means.value("accuracy"), 0.5);
  means.add("loss", scalar_array(6.0, {Dtype::kFloat32, cpu(1)}), 5);
  means.add({scalar_array(0.5), scalar_array(6.0)}, 0);  // as of an empty batch
  EXPECT_EQ(means.values(), (std::map<std::string, double>{{"accuracy", 0.5}, {"loss", 3.0}}));
  means.clear();
  EXPECT_EQ(means.count("loss"), 0);
}

TEST(Means, Errors) {
  Means means({"loss"});
  EXPECT_THROW(means.add("los", 1.0, 1), ValueError);
  EXPECT_THROW(means.add("loss", 1.0, -1), ValueError);
  EXPECT_THROW(means.add("loss", array({1.f, 2.f}), 1), ShapeError);
  EXPECT_THROW(means.add({ones({}), ones({})}, 1), ValueError);
  EXPECT_THROW(Means({"a", "a"}), ValueError);
  means.reduce({});
  EXPECT_THROW(means.add("loss", 1.0, 1), ValueError);
  EXPECT_THROW(means.reduce({}), ValueError);
  means.clear();
  EXPECT_NO_THROW(means.add("loss", 1.0, 1));
}

// Device results are read at the end; where there is a GPU, in one transfer.
TEST(Means, ResultsOnAGpu) {
  CATENA_NEEDS_GPU();
  Means means({"loss"});
  for (int i = 1; i <= 100; ++i)
    means.add("loss", scalar_array(float(i), {Dtype::kFloat32, cuda_device()}), i);
  EXPECT_EQ(means.count("loss"), 5050);
  double expected = 0;
  for (int i = 1; i <= 100; ++i) expected += double(i) * i;
  EXPECT_EQ(means.value("loss"), expected / 5050);
}

// Mean of t over 0 .. 22 with every number of ranks, also more than there are samples in the last
// batch.
TEST(Evaluate, SumsNumeratorsAndCountsOverRanks) {
  std::vector<int32_t> values(23);
  std::iota(values.begin(), values.end(), 0);
  const auto data = std::make_shared<datasets::TupleDataset>(std::vector<Array>{array(values)});
  const auto measure = [](const Batch& batch, Means& means) {
    const auto v = batch.x().to_vector<double>();
    means.add("value", std::accumulate(v.begin(), v.end(), 0.0) / double(v.size()),
              double(v.size()));
  };
  for (const int ranks : {1, 2, 4, 7}) {
    comm::run_threads(ranks, [&](Communicator& comm) {
      datasets::PrefetchIterator batches(data, datasets::SerialIterator(23, 10), cpu(0),
                                         {comm.rank(), ranks});
      batches.next();
      for (int again = 0; again < 2; ++again)  // evaluate() rewinds
        EXPECT_EQ(evaluate(batches, {"value"}, measure, &comm).at("value"), 11.0);
    });
  }
}

TEST(Evaluate, TestsTheModelInTestState) {
  struct Net : FunctionSet {
    functions::Dropout drop, frozen;
    CATENA_FUNCTIONS(drop, frozen)
  } net;
  net.frozen.eval();
  const auto data = std::make_shared<datasets::TupleDataset>(std::vector<Array>{ones({6})});
  datasets::PrefetchIterator batches(data, datasets::SerialIterator(6, 4), cpu(0));
  int calls = 0;
  const auto measure = [&](const Batch& batch, Means& means) {
    EXPECT_FALSE(net.training() || net.drop.training() || net.frozen.training());
    const Variable y = net.drop(batch.x());
    means.add("sum", y.data().to_vector<double>()[0], double(batch.size()));
    if (++calls == 3) throw ValueError("in the test pass");
  };
  EXPECT_EQ(evaluate(net, batches, {"sum"}, measure).at("sum"), 1.0);
  EXPECT_TRUE(net.training() && net.drop.training());
  EXPECT_FALSE(net.frozen.training());
  EXPECT_THROW(evaluate(net, batches, {"sum"}, measure), ValueError);
  EXPECT_TRUE(net.training() && net.drop.training());
  EXPECT_FALSE(net.frozen.training());
}

TEST(Evaluate, TakesAScoreAndMakesNoGraph) {
  struct Net : FunctionSet {
    functions::Linear l{1, 1};
    CATENA_FUNCTIONS(l)
  } net;
  const auto data = std::make_shared<datasets::TupleDataset>(
      Arrays{arange(5, {dtype::float32, cpu(0)}).reshape({5, 1})});
  datasets::PrefetchIterator batches(data, datasets::SerialIterator(5, 2), cpu(0));
  const auto score = [&](const datasets::Batch& batch) -> Variables {
    EXPECT_FALSE(net.training());
    const Variable y = net.l(batch.x());
    EXPECT_EQ(y.creator(), nullptr);
    return {functions::mean(y * 0), Variable::constant(mean(batch.x()))};
  };
  const auto result = evaluate(net, batches, {"loss", "mean"}, score);
  EXPECT_EQ(result.at("loss"), 0);
  EXPECT_EQ(result.at("mean"), 2);
  EXPECT_TRUE(net.training());
  expect_contains(error_of<ValueError>([&] { evaluate(net, batches, {"loss"}, Score()); }),
                  {"evaluate: the score is an empty function"});
  datasets::PrefetchIterator endless(data, datasets::SerialIterator(5, 2, true), cpu(0));
  expect_contains(error_of<ValueError>([&] {
                    evaluate(net, endless, {"loss", "mean"}, score);
                  }),
                  {"evaluate: the batches repeat without end"});
}

}  // namespace
}  // namespace catena::training
