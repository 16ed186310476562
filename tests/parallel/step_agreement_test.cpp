// What ranks must agree on in a step: numbers of updates, rates, weights of batches, the order of
// data.
#include <gtest/gtest.h>

#include "error_text.h"
#include "parallel/network.h"
#include "parallel/step_agreement.h"
#include "set_up.h"

namespace catena {
namespace {

using parallel::BatchOrder;
using testing::Net;

// What each of some ranks does to one step of a training that is the same otherwise.
using Disturb =
    std::function<void(MultiNodeOptimizer& optimizer, int rank, int step, bool& update)>;

struct Texts {
  std::vector<std::string> of_rank;
  std::vector<int> steps;  // that the ranks had begun
};

Texts train_with(int ranks, const Disturb& disturb) {
  Texts texts{std::vector<std::string>(size_t(ranks)), std::vector<int>(size_t(ranks))};
  try {
    comm::run_threads(
        ranks,
        [&](Communicator& comm) {
          const int rank = comm.rank();
          Net net(Dtype::kFloat32);
          auto optimizer = testing::set_up(net, optimizers::SGD(0.1), comm);
          const Array x =
              testing::wave({4, testing::kInputs}, 1, Dtype::kFloat32).to(comm.device());
          try {
            for (int step = 1; step <= 6; ++step) {
              texts.steps[size_t(rank)] = step;
              bool update = true;
              optimizer.zero_grads();
              disturb(optimizer, rank, step, update);
              testing::F::sum(net(x)).backward();
              if (update) optimizer.update();
            }
          } catch (const ValueError& error) {
            texts.of_rank[size_t(rank)] = error.what();
            throw;
          }
        },
        {.timeout = 30});
  } catch (const std::exception&) {
  }
  return texts;
}

void expect_on_all(const Texts& texts, int step, const std::vector<std::string>& words) {
  for (size_t r = 0; r < texts.of_rank.size(); ++r) {
    for (const std::string& word : words)
      EXPECT_NE(texts.of_rank[r].find(word), std::string::npos)
          << "rank " << r << " was not told '" << word << "': " << texts.of_rank[r];
    EXPECT_EQ(texts.steps[r], step) << "of rank " << r;
  }
}

class StepAgreement : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, StepAgreement, ::testing::Values(2, 3, 4));

TEST_P(StepAgreement, HoldsInATrainingWithUnevenShards) {
  const int ranks = GetParam();
  const Texts texts = train_with(ranks, [&](auto& optimizer, int rank, int step, bool&) {
    const int64_t own = rank == 0 ? 0 : rank + step;
    int64_t all = 0;
    for (int r = 1; r < ranks; ++r) all += r + step;
    optimizer.set_batch_weight(own, all);
    optimizer.set_batch_order({100, all, 7, 0, step * all});
  });
  for (const std::string& text : texts.of_rank) EXPECT_EQ(text, "");
  EXPECT_EQ(texts.steps, std::vector<int>(size_t(ranks), 6));
}

// As with an iterator that was not given its rank.
TEST_P(StepAgreement, NamesWeightsThatAddUpToMore) {
  const int ranks = GetParam();
  const Texts texts = train_with(
      ranks, [](auto& optimizer, int, int, bool&) { optimizer.set_batch_weight(100, 100); });
  expect_on_all(texts, 1,
                {message("add up to ", 100 * ranks, " (100 on rank 0, 100 on rank 1"),
                 "but the batch has 100", "RankOf"});
}

TEST_P(StepAgreement, NamesWeightsThatAddUpToLess) {
  const Texts texts = train_with(GetParam(), [](auto& optimizer, int, int step, bool&) {
    optimizer.set_batch_weight(step < 3 ? 1 : 0, step < 3 ? 1 : 100);
  });
  expect_on_all(texts, 1, {"in step 1 since setup, the samples of the ranks add up to"});
}

TEST_P(StepAgreement, NamesTheRankThatSkipsAnUpdate) {
  const int odd = GetParam() - 1;
  const Texts texts = train_with(GetParam(), [&](auto&, int rank, int step, bool& update) {
    update = rank != odd || step != 3;
  });
  expect_on_all(texts, 4,
                {"in step 4 since setup, the number of updates made before it is 3 on rank",
                 message("2 on rank ", odd, "; every rank must call update()")});
}

TEST_P(StepAgreement, NamesTheRankThatSetsAnotherRate) {
  const int odd = GetParam() - 1;
  const Texts texts = train_with(GetParam(), [&](auto& optimizer, int rank, int step, bool&) {
    optimizer.set_lr(step == 3 && rank == odd ? 0.1000000001 : 0.1);
  });
  expect_on_all(texts, 3,
                {"in step 3 since setup, the learning rate is 0.1 on rank",
                 message("0.1000000001 on rank ", odd, "; set the same rate on every rank")});
}

TEST_P(StepAgreement, NamesAnotherBatchOverAllRanks) {
  const int ranks = GetParam();
  const Texts texts = train_with(ranks, [&](auto& optimizer, int rank, int step, bool&) {
    // The weights of the ranks add up, their counts do not.
    optimizer.set_batch_weight(rank == 1 && step == 2 ? 2 : 1,
                               rank == 1 && step == 2 ? 2 * ranks : ranks);
  });
  expect_on_all(texts, 2,
                {"in step 2 since setup, the number of samples over all ranks is ",
                 message(2 * ranks, " on rank 1")});
}

TEST_P(StepAgreement, NamesWhatDiffersInTheOrderOfTheData) {
  const std::vector<std::pair<std::string, BatchOrder>> cases{
      {"the size of the data set is 64 on rank", {60, 16, 1, 2, 32}},
      {"the batch size is 16 on rank", {64, 8, 1, 2, 32}},
      {"the seed of the order is 1 on rank", {64, 16, 5, 2, 32}},
      {"the epoch is 2 on rank", {64, 16, 1, 3, 32}},
      {"the position in the epoch is 32 on rank", {64, 16, 1, 2, 48}}};
  const int odd = GetParam() - 1;
  for (const auto& [words, order] : cases) {
    const Texts texts = train_with(GetParam(), [&, &odd_order = order](auto& optimizer, int rank,
                                                                       int step, bool&) {
      optimizer.set_batch_order(rank == odd && step > 1 ? odd_order : BatchOrder{64, 16, 1, 2, 32});
    });
    expect_on_all(texts, 2,
                  {"in step 2 since setup, " + words, message(" on rank ", odd, ";"), "RankOf"});
  }
}

// What once differed shows in all later sums, so that an exchange now and then is enough.
TEST(StepAgreementOfReplays, SeesWhatDifferedBeforeTheExchange) {
  comm::run_threads(2, [](Communicator& comm) {
    parallel::StepAgreement agreement(comm, 1);
    const auto exchange = [&] {
      agreement.exchange([&](const Array& sums) { comm.all_reduce(sums, {}, sums); });
    };
    for (int step = 0; step < 10; ++step) {
      agreement.set_shares(comm.rank() == 0 ? 3 : 2, 5);
      EXPECT_EQ(agreement.begin_step(step), step < 8) << "in every 4th later";
    }
    exchange();
    agreement.replay_step(10);
    // One too many here, one too few there.
    for (const int extra : {1, -1, 0}) {
      agreement.set_shares(comm.rank() == 0 ? 3 : 2 + extra, 5);
      agreement.begin_step(11);
    }
    try {
      exchange();
      ADD_FAILURE() << "nothing was noticed";
    } catch (const ValueError& error) {
      expect_contains(error.what(), {"in step 12 since setup", "add up to 6 ("});
    }
  });
}

TEST(StepAgreementOfReplays, ExchangesInEveryFourthStepAfterTheFirstOnes) {
  comm::run_threads(2, [](Communicator& comm) {
    parallel::StepAgreement agreement(comm, 1);
    for (int step = 0; step < 20; ++step)
      EXPECT_EQ(agreement.begin_step(step), step < 8 || step % 4 == 3) << step;
  });
}

TEST(StepAgreementOfReplays, NamesNoStepThatIsTooLongAgo) {
  comm::run_threads(2, [](Communicator& comm) {
    parallel::StepAgreement agreement(comm, 1);
    for (int step = 0; step < 200; ++step) agreement.begin_step(step == 3 ? comm.rank() : step);
    try {
      agreement.exchange([&](const Array& sums) { comm.all_reduce(sums, {}, sums); });
      ADD_FAILURE() << "nothing was noticed";
    } catch (const ValueError& error) {
      expect_contains(error.what(), {"too long ago to be named"});
    }
  });
}

}  // namespace
}  // namespace catena
