#include "catena/parallel/pipeline/partition.h"

#include "catena/comm/factory.h"
#include "error_text.h"
#include "parallel/pipeline/model.h"
#include "rank_results.h"

namespace catena::parallel::pipeline {
namespace {

using namespace test;  // NOLINT: the model

TEST(Partition, BalancesGivenCosts) {
  Sequence model;
  for (int i = 0; i < 5; ++i) model.add([](const Variable& h) { return h; });
  const Cut cut = partition(model, 3, {1, 1, 4, 1, 1});
  EXPECT_EQ(cut.first, (std::vector<int>{0, 2, 3}));
  expect_contains(cut.text,
                  {"5 units in 3 stages, by given costs", "stage 1: unit 2, cost 4 (50.0 %)",
                   "largest stage: 1.500 of an equal share"});
}

TEST(Partition, ByParametersAndByTime) {
  Sequence model = filled();
  const Cut cut = partition(model, 4);
  cut.check(model.size());
  EXPECT_EQ(cut.stages(), 4);
  expect_contains(cut.text, {"by elements of parameters", "(head)"});
  const Batch batch = batch_of(0, 12, dtype::float32);
  const auto before = model.named_persistents()[0].second.data().to_vector<float>();
  const Cut timed = partition(model, 4, batch.x);
  timed.check(model.size());
  expect_contains(timed.text, {"by measured seconds"});
  EXPECT_EQ(model.named_persistents()[0].second.data().to_vector<float>(), before);
  for (const Parameter& p : model.parameters()) EXPECT_FALSE(p.state()->has_gradient());
  for (const double cost : measure_costs(model, {batch.x}, 2)) EXPECT_GT(cost, 0);
}

TEST(Partition, IsOneForAllRanks) {
  const auto cuts = testing::of_ranks(3, [&](Communicator& comm) {
    Sequence model = filled();
    const Batch batch = batch_of(0, 12, dtype::float32);
    return partition(model, 3, batch.x, &comm);
  });
  EXPECT_EQ(cuts[1].first, cuts[0].first);
  EXPECT_EQ(cuts[2].text, cuts[0].text);
}

TEST(Partition, RefusesWhatDoesNotFit) {
  Sequence model = filled();
  expect_contains(error_of<ValueError>([&] { partition(model, 19); }),
                  {"19 stages of a model of 18 units", "1 to 18"});
  expect_contains(error_of<ValueError>([&] { partition(model, 0); }), {"0 stages"});
  expect_contains(error_of<ValueError>([&] { partition(model, 2, std::vector<double>{1}); }),
                  {"1 costs for a model of 18 units"});
  EXPECT_THROW(partition(model, 2, std::vector<double>(18, -1)), ValueError);
  expect_contains(error_of<ValueError>([&] { measure_costs(model, {}); }), {"sample is undefined"});
}

TEST(Sequence, RunsItsUnitsAndNamesThem) {
  Sequence model;
  F::Linear mine = layer(kInputs, 4, dtype::float32, 1);
  model.add("mine", std::ref(mine)).add([](const Variable& h) { return F::tanh(h); });
  const Batch batch = batch_of(0, 3, dtype::float32);
  EXPECT_EQ(model(Variable::constant(batch.x)).data().to_vector<float>(),
            F::tanh(mine(batch.x)).data().to_vector<float>());
  EXPECT_EQ(model.parameter_names(), (std::vector<std::string>{"mine/W", "mine/b"}));
  EXPECT_EQ(model.parameters()[0], mine.W);
  EXPECT_EQ(model.layer(1), nullptr);
  expect_contains(error_of<ValueError>([&] { model.add("mine", F::Linear(2, 2)); }),
                  {"there is a unit 'mine' already"});
  expect_contains(error_of<ValueError>([&] { model.add("a/b", F::Linear(2, 2)); }), {"a '/'"});
  expect_contains(error_of<ValueError>([] { Sequence()(Variables{}); }), {"no units"});
  model.add("two", [](const Variable& h) { return Variables{h, h}; });
  expect_contains(error_of<ValueError>([&] { model(Variable::constant(batch.x)); }),
                  {"gave 2 results"});
  model.add("one", [](const Variable& h) { return h; });
  expect_contains(error_of<ValueError>([&] { model(Variable::constant(batch.x)); }),
                  {"unit 'one', which takes one variable, got 2"});
  const char* const missing = "no unit 9; the model has 4";
  expect_contains(error_of<ValueError>([&] { model.layer(9); }), {missing});
  expect_contains(error_of<ValueError>([&] { model.run(9, {}); }), {missing});
}

}  // namespace
}  // namespace catena::parallel::pipeline
