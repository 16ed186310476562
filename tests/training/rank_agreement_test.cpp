// Iterators and data sets that differ between ranks, as make_step notices them.
#include <gtest/gtest.h>

#include "catena/comm/factory.h"
#include "error_text.h"
#include "rank_results.h"
#include "set_up.h"
#include "training/problem.h"

namespace catena::training {
namespace {

// The iterator of one rank, which may be made wrongly.
using MakeOrder = std::function<datasets::ShuffledIterator(int rank)>;

// What each rank is told when they train for two epochs; "no error" if nothing.
std::vector<std::string> train(int ranks, const MakeOrder& order, bool with_rank) {
  return testing::errors_of_ranks(testing::AfterError::kGoOn, ranks, [&](Communicator& comm) {
    testing::Net model(Dtype::kFloat32);
    auto optimizer = testing::set_up(model, optimizers::SGD(0.1), comm);
    const Step step = make_step(optimizer, score_of(model));
    const datasets::RankOf who{comm.rank(), comm.size()};
    datasets::PrefetchIterator batches(make_data(), order(comm.rank()), comm.device(),
                                       with_rank ? who : datasets::RankOf{});
    while (batches.epoch() < 2) step(*batches.next());
  });
}

void expect_all(const std::vector<std::string>& texts, std::initializer_list<const char*> words) {
  for (const std::string& text : texts) expect_contains(text, words);
}

TEST(RankAgreement, AnIteratorWithoutItsRankIsNamed) {
  expect_all(train(
                 2, [](int) { return datasets::ShuffledIterator(kSamples, 5, 1); }, false),
             {"in step 1 since setup, the samples of the ranks add up to 10 (5 on rank 0, 5 on "
              "rank 1), but the batch has 5; give the iterator datasets::RankOf"});
}

TEST(RankAgreement, AnotherSeedIsNamed) {
  expect_all(
      train(
          3, [](int rank) { return datasets::ShuffledIterator(kSamples, 5, rank == 1 ? 2 : 1); },
          true),
      {"the seed of the order is 1 on ranks 0, 2, 2 on rank 1; make the data set"});
}

}  // namespace
}  // namespace catena::training
