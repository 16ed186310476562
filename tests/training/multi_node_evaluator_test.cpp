// Evaluators and observed numbers over ranks: exact over samples.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "catena/comm/factory.h"
#include "catena/datasets/views.h"
#include "catena/functions/normalization.h"
#include "catena/training/evaluator.h"
#include "error_text.h"
#include "training/one_rank.h"

namespace catena::training {
namespace {

// Ranks have 9, 14 and 0 of 23 samples: the mean of means is another number.
TEST(MultiNodeEvaluator, IsExactOverSamples) {
  const datasets::DatasetPtr data = make_data();
  testing::Net alone(Dtype::kFloat64);
  const auto wide = datasets::map(data, [](const Arrays& a) {
    return Arrays{a[0].astype(Dtype::kFloat64), a[1]};
  });
  datasets::PrefetchIterator all(wide, datasets::SerialIterator(kSamples, 5), cpu(0));
  Evaluator one(alone, all, {"loss", "accuracy"}, score_of(alone));
  const auto expected = one.evaluate();
  EXPECT_EQ(expected, evaluate(alone, all, {"loss", "accuracy"}, score_of(alone)));
  EXPECT_EQ(create_multi_node_evaluator(one, nullptr).evaluate(), expected);
  const std::vector<int64_t> cuts{0, 9, 23};
  comm::run_threads(3, [&](Communicator& comm) {
    testing::Net model(Dtype::kFloat64);
    model.to(comm.device());
    struct Own final : Evaluator {  // a rank without samples has no batches
      explicit Own(Parameterized* m) : Evaluator(m) {}
      Means measure() override { return Means({"loss", "accuracy"}); }
    };
    std::unique_ptr<datasets::PrefetchIterator> batches;
    std::unique_ptr<Evaluator> evaluator;
    if (comm.rank() == 2) {
      evaluator = std::make_unique<Own>(&model);
    } else {
      std::vector<int64_t> positions(
          size_t(cuts[size_t(comm.rank()) + 1] - cuts[size_t(comm.rank())]));
      std::iota(positions.begin(), positions.end(), cuts[size_t(comm.rank())]);
      const auto size = int64_t(positions.size());
      batches = std::make_unique<datasets::PrefetchIterator>(
          datasets::subset(wide, positions), datasets::SerialIterator(size, 4), comm.device());
      evaluator = std::make_unique<Evaluator>(
          model, *batches, std::vector<std::string>{"loss", "accuracy"}, score_of(model));
    }
    MultiNodeEvaluator over_all = create_multi_node_evaluator(*evaluator, comm.shared_from_this());
    for (int again = 0; again < 2; ++again) {
      const auto got = over_all.evaluate();
      EXPECT_NEAR(got.at("loss"), expected.at("loss"), 1e-12);
      EXPECT_NEAR(got.at("accuracy"), expected.at("accuracy"), 1e-6);
    }
  });
}

// What ranks collect apart is made one before the pass.
TEST(MultiNodeEvaluator, TestsOneModel) {
  comm::run_threads(2, [](Communicator& comm) {
    functions::BatchNormalization bn(2);
    bn.to(comm.device());
    bn.avg_mean.data().fill(comm.rank());
    struct Pass final : Evaluator {
      explicit Pass(functions::BatchNormalization& layer) : Evaluator(&layer), bn(layer) {}
      Means measure() override {
        Means means({"mean"});
        means.add("mean", bn.avg_mean.data()(0).item<double>(), 1);
        return means;
      }
      functions::BatchNormalization& bn;
    } pass(bn);
    EXPECT_EQ(MultiNodeEvaluator(pass, comm.shared_from_this()).evaluate().at("mean"), 0.5);
    EXPECT_EQ(bn.avg_mean.data()(1).item<double>(), 0.5);
  });
}

// The results would be mixed.
TEST(MultiNodeEvaluator, NamesThatDifferBetweenRanksAreAnError) {
  using Names = std::vector<std::string>;
  const auto text_of = [](const Names& first, const Names& last) {
    std::vector<std::string> texts(3);
    comm::run_threads(3, [&](Communicator& comm) {
      const Names& names = comm.rank() == 2 ? last : first;
      struct Pass final : Evaluator {
        explicit Pass(const Names& given) : Evaluator(nullptr), names(given) {}
        Means measure() override { return Means(names); }
        Names names;
      } pass(names);
      texts[size_t(comm.rank())] = error_of<ValueError>(
          [&] { MultiNodeEvaluator(pass, comm.shared_from_this()).evaluate(); });
      EXPECT_EQ(comm.all_reduce_value(1), 3) << "the ranks go on together";
    });
    EXPECT_EQ(texts[0], texts[1]);
    EXPECT_EQ(texts[0], texts[2]);
    return texts[0];
  };
  EXPECT_EQ(text_of({"loss", "accuracy"}, {"loss", "accuracy"}), "no error");
  expect_contains(text_of({"loss", "accuracy"}, {"accuracy", "loss"}),
                  {"name 1 is 'loss' on ranks 0, 1, 'accuracy' on rank 2;", "same order"});
  expect_contains(text_of({"loss", "accuracy"}, {"loss", "top5"}),
                  {"name 2 is 'accuracy' on ranks 0, 1, 'top5' on rank 2;"});
  expect_contains(text_of({"loss"}, {"loss", "top5"}),
                  {"name 2 is none on ranks 0, 1, 'top5' on rank 2;"});
  expect_contains(text_of({"loss", "top5"}, {"loss"}),
                  {"name 2 is 'top5' on ranks 0, 1, none on rank 2;"});
}

TEST(MultiNodeEvaluator, Errors) {
  testing::Net net(Dtype::kFloat32);
  datasets::PrefetchIterator endless(make_data(), datasets::ShuffledIterator(kSamples, 5, 1),
                                     cpu(0)),
      once(make_data(), datasets::SerialIterator(kSamples, 5), cpu(0));
  expect_contains(error_of<ValueError>([&] { Evaluator(net, endless, {"loss"}, score_of(net)); }),
                  {"Evaluator: the batches repeat"});
  expect_contains(error_of<ValueError>([&] { Evaluator(net, once, {"loss"}, Score()); }),
                  {"Evaluator: the score is an empty function"});
  struct Nothing final : Evaluator {
    explicit Nothing(Parameterized* m) : Evaluator(m) {}
  } nothing(&net);
  expect_contains(error_of<ValueError>([&] { nothing.evaluate(); }), {"override measure()"});
}

TEST(OverRanks, CombinesANumberOfEveryRank) {
  comm::run_threads(2, [](Communicator& comm) {
    EXPECT_EQ(over_ranks([&] { return double(comm.rank()); }, comm.shared_from_this())(), 0.5);
  });
  comm::run_threads(3, [](Communicator& comm) {
    const CommunicatorPtr shared = comm.shared_from_this();
    const auto value = [&comm] { return double(comm.rank() + 1); };
    using comm::Reduction;
    EXPECT_EQ(over_ranks(value, shared)(), 2);
    EXPECT_EQ(over_ranks(value, shared, Reduction::kSum)(), 6);
    EXPECT_EQ(over_ranks(value, shared, Reduction::kMin)(), 1);
    EXPECT_EQ(over_ranks(value, shared, Reduction::kMax)(), 3);
    EXPECT_EQ(over_ranks(value, nullptr)(), comm.rank() + 1);
    const double r = comm.rank();
    EXPECT_EQ(mean_over_ranks([&] { return Means::Sum{r * 10, r}; }, shared)(), 10);
    EXPECT_TRUE(std::isnan(mean_over_ranks([] { return Means::Sum{}; }, shared)()));
    expect_contains(error_of<ValueError>([&] { over_ranks(value, shared, Reduction::kProduct); }),
                    {"over_ranks", "product"});
    expect_contains(error_of<ValueError>([&] { over_ranks({}, shared); }), {"empty function"});
  });
}

// A column of the table of a run on ranks.
TEST(OverRanks, IsAColumnOfTheTrainer) {
  comm::run_threads(2, [](Communicator& comm) {
    OneRank rank(comm, 10, {.epochs = 1, .silent = true});
    rank.trainer.observe("largest", over_ranks([&] { return double(comm.rank()); },
                                               comm.shared_from_this(), comm::Reduction::kMax));
    rank.trainer.run();
    EXPECT_EQ(rank.trainer.value("largest"), 1);
  });
}

TEST(OverRanks, KeepsANaNOfAnyRank) {
  comm::run_threads(3, [](Communicator& comm) {
    using comm::Reduction;
    for (const Reduction how :
         {Reduction::kMean, Reduction::kSum, Reduction::kMin, Reduction::kMax})
      for (int bad = 0; bad < 3; ++bad)
        EXPECT_TRUE(
            std::isnan(over_ranks([&] { return comm.rank() == bad ? std::nan("") : comm.rank(); },
                                  comm.shared_from_this(), how)()))
            << to_string(how) << " of rank " << bad;
  });
}

}  // namespace
}  // namespace catena::training
