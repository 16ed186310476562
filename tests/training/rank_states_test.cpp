// What each rank has for itself, over a resume: random numbers, arrays of the model, sums of the
// row.
#include "training/rank_states.h"

#include <gtest/gtest.h>

#include <set>

#include "catena/array/random.h"
#include "temp_folder.h"
#include "training/one_rank.h"

namespace catena::training {
namespace {

// What a rank has for itself.
struct Own {
  uint64_t seed, offset;
  int64_t seen;
  double train_loss;  // of the last row
  bool operator==(const Own&) const = default;
};

// A run of so many ranks with random numbers, which ends before its limit where `stop` is given.
struct RunOfRanks {
  int ranks;
  TrainerOptions options;
  int64_t stop = 0;
  bool resumes = false;
  uint64_t seed_step = 1;  // from rank to rank
  std::vector<Own> restored, end;

  void run() {
    restored = end = std::vector<Own>(size_t(ranks));
    comm::run_threads(ranks, [&](Communicator& comm) { run_rank(comm); });
  }
  void run_rank(Communicator& comm) {
    const auto rank = uint64_t(comm.rank());
    RandomState& random = random::default_state(comm.device());
    OneRank one(comm, 5, options);
    random.seed((resumes ? 3000 : 100) + rank * seed_step);
    one.model.seen.data().fill(resumes ? -1 : comm.rank());
    const auto own = [&](double loss) {
      const RandomState::State state = random.state();
      const auto seen = one.model.seen.data().to_vector<int64_t>();
      return Own{state.seed, state.offset, seen[0], loss};
    };
    one.trainer.extend({.iterations = 1}, [&](Trainer& t) {
      random.uniform({2 + comm.rank()}, 0, 1.0, {comm.device()});
      one.model.seen.data() += 10;
      if (t.iteration() == stop) throw IoError("the run breaks off");
    });
    if (resumes) one.trainer.resume();
    restored[rank] = own(0);
    if (stop > 0) {
      EXPECT_THROW(one.trainer.run(), IoError);
    } else {
      one.trainer.run();
      end[rank] = own(one.trainer.value("train_loss"));
    }
  }
};

TEST(RankStates, RanksResumeWithWhatEachHad) {
  const TempFolder out;
  const TrainerOptions options{.epochs = 1,
                               .out = out.path(),
                               .snapshot = {.iterations = 3},
                               .overwrite = true,
                               .silent = true};
  RunOfRanks whole{.ranks = 3, .options = options};
  whole.run();
  RunOfRanks first{.ranks = 3, .options = options, .stop = 4};
  first.run();
  RunOfRanks second{.ranks = 3, .options = options, .resumes = true};
  second.run();
  EXPECT_EQ(second.end, whole.end);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(second.restored[size_t(rank)].seed, uint64_t(100 + rank));
    EXPECT_EQ(second.restored[size_t(rank)].seen, rank + 30);
  }
}

TEST(RankStates, RanksThatTheCheckpointLacksGetTheirOwnGenerators) {
  const TempFolder out;
  const TrainerOptions options{.epochs = 1,
                               .out = out.path(),
                               .snapshot = {.iterations = 3},
                               .overwrite = true,
                               .silent = true};
  for (const int saved : {1, 2, 3}) {
    RunOfRanks whole{.ranks = saved, .options = options};
    whole.run();
    RunOfRanks first{.ranks = saved, .options = options, .stop = 4};
    first.run();
    for (const int ranks : {1, 2, 4}) {
      RunOfRanks second{.ranks = ranks, .options = options, .stop = 4, .resumes = true};
      second.run();
      std::set<uint64_t> seeds;
      for (const Own& own : second.restored) seeds.insert(own.seed);
      EXPECT_EQ(int(seeds.size()), ranks) << "of " << saved;
      for (int rank = 0; rank < ranks; ++rank)
        EXPECT_EQ(second.restored[size_t(rank)].seen, (rank < saved ? rank : 0) + 30);
      // The row covers what all ranks had seen. The checkpoint is still that of update 3.
      second.stop = 0;
      second.options.snapshot = {};
      second.run();
      EXPECT_NEAR(second.end[0].train_loss, whole.end[0].train_loss, 1e-6);
    }
  }
}

TEST(RankStates, RanksThatDrewAlikeGoOnAlike) {
  const TempFolder out;
  const TrainerOptions options{.epochs = 1, .out = out.path(), .silent = true};
  comm::run_threads(2, [&](Communicator& comm) {
    OneRank one(comm, 5, options);
    random::seed(5, comm.device());
    one.trainer.run();
  });
  comm::run_threads(3, [&](Communicator& comm) {
    OneRank one(comm, 5, options);
    random::seed(uint64_t(comm.rank()), comm.device());
    one.trainer.resume();
    EXPECT_EQ(random::default_state(comm.device()).state().seed, 5u);
  });
}

TEST(RankStates, SumsOfSeveralMeansKeepTheirTerms) {
  const auto mean = [](double value, double counted) {
    const Variable v = Variable::constant(array<double>({value}));
    declare_mean(v, {array<double>({counted}), counted});
    return v;
  };
  const std::vector<std::string> names{"loss"};
  const F::Linear model(1, 1);
  RandomState random(1);
  Means before(names), after(names);
  before.add("loss", mean(1, 3) + mean(2, 1), 2);
  restore_rank_state(gather_rank_states({random, before, names, model}, nullptr),
                     {random, after, names, model}, nullptr);
  for (Means* means : {&before, &after}) {
    means->add("loss", mean(3, 1) + mean(4, 7), 2);
    EXPECT_EQ(means->value("loss"), (1 * 3 + 3 * 1) / 4. + (2 * 1 + 4 * 7) / 8.);
  }
}

}  // namespace
}  // namespace catena::training
