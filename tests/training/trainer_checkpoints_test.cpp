// Trainers whose checkpoints all ranks write, to a folder, behind training.
#include <chrono>
#include <cmath>
#include <filesystem>

#include "error_text.h"
#include "rank_results.h"
#include "temp_folder.h"
#include "training/one_rank.h"
#include "training/slow_index.h"
#include "training/small_run.h"

namespace catena::training {
namespace {

using parallel::Sharding;

TrainerOptions options_of(const std::string& out, int64_t iterations, bool in_folder,
                          bool async = true) {
  TrainerOptions options{.iterations = iterations,
                         .out = out,
                         .report = {.iterations = 2},
                         .snapshot = {.iterations = 3},
                         .async = async,
                         .silent = true};
  if (in_folder) options.checkpoints = CheckpointFolderOptions{};
  return options;
}

// The parameters after so many updates, resumed if there is something to go on from.
std::vector<double> run_ranks(int ranks, const TrainerOptions& options, Sharding sharding,
                              int64_t resumes_at = -1) {
  return testing::of_ranks(ranks, [&](Communicator& comm) {
    random::default_state(comm.device()).seed(uint64_t(comm.rank()));
    OneRank one(comm, 6, options, sharding);
    if (one.trainer.has_checkpoint()) one.trainer.resume();
    if (resumes_at >= 0) {
      EXPECT_EQ(one.trainer.iteration(), resumes_at);
    }
    one.trainer.run();
    EXPECT_EQ(one.trainer.iteration(), options.iterations);
    one.optimizer.gather_parameters();
    return numbers_of(one.model);
  })[0];
}

TEST(TrainerCheckpoints, ARunGoesOnWithTheSameBits) {
  for (const int ranks : {1, 3}) {
    for (const Sharding sharding : {Sharding::kNone, Sharding::kStates, Sharding::kParameters}) {
      const TempFolder whole;
      const auto expected = run_ranks(ranks, options_of(whole.path(), 11, true), sharding);
      for (const bool async : {false, true}) {
        const TempFolder parts;
        run_ranks(ranks, options_of(parts.path(), 5, true, async), sharding);
        EXPECT_FALSE(std::filesystem::exists(parts / "checkpoint.npz"));
        EXPECT_EQ(CheckpointFolder(parts / "checkpoints").steps(), (std::vector<int64_t>{3, 5}));
        EXPECT_EQ(run_ranks(ranks, options_of(parts.path(), 11, true), sharding), expected);
      }
    }
  }
}

// To a folder each rank writes what it keeps.
TEST(TrainerCheckpoints, NothingIsGatheredForOne) {
  const TempFolder folder;
  int64_t gathers[2];
  for (const bool saves : {false, true}) {
    TrainerOptions options = options_of(folder.path(), 4, true);
    options.report = {};
    options.snapshot.iterations = saves ? 1 : 0;
    comm::run_threads(2, [&](Communicator& comm) {
      OneRank one(comm, 6, options, Sharding::kParameters);
      one.trainer.run();
      if (comm.rank() == 0) gathers[saves] = one.optimizer.sharded()->gathers();
    });
  }
  EXPECT_EQ(gathers[true], gathers[false]);
}

// Saves that come while one is being written are left out, but not the one that ends the run.
TEST(TrainerCheckpoints, TheLastOneIsNotLeftOut) {
  for (const int ranks : {1, 2}) {
    const TempFolder folder;
    TrainerOptions options = options_of(folder.path(), 40, true);
    options.checkpoints->when_busy = WhenBusy::kSkip;
    options.snapshot = {.iterations = 1};
    run_ranks(ranks, options, Sharding::kNone);
    EXPECT_EQ(CheckpointFolder(folder / "checkpoints").steps().back(), 40);
  }
}

TEST(TrainerCheckpoints, ASaveThatIsLeftOutIsNotTheLastCheckpoint) {
  const TempFolder folder;
  TrainerOptions options = options_of(folder.path(), 9, true);
  options.checkpoints->when_busy = WhenBusy::kSkip;
  options.report = {.iterations = 9};
  options.snapshot = {.iterations = 1};
  std::filesystem::create_directory(folder / "checkpoints");
  SlowIndex slow(folder / "checkpoints", std::chrono::minutes(1));
  SmallRun run(options);
  Array large = zeros({8 << 20}, {dtype::uint8, cpu(0)});
  run.trainer.checkpoint().add("large", large);
  run.trainer.extend({.iterations = 3}, [&](Trainer&) { run.factor = std::nan(""); });
  expect_contains(error_of<ValueError>([&] { run.trainer.run(); }),
                  {"after 4 updates", "the last checkpoint is of update 1;"});
  slow.let_go();  // the trainer's end waits for the save
}

TEST(TrainerCheckpoints, ARunGoesOnOnOtherNumbersOfRanks) {
  const TempFolder whole;
  const auto expected = run_ranks(2, options_of(whole.path(), 8, true), Sharding::kStates);
  for (const int ranks : {1, 3, 4}) {
    const TempFolder parts;
    run_ranks(2, options_of(parts.path(), 5, true), Sharding::kStates);
    const Sharding other = ranks == 3 ? Sharding::kNone : Sharding::kStates;
    expect_near(run_ranks(ranks, options_of(parts.path(), 8, true), other), expected);
  }
}

// The forms may change from run to run; the newest one counts.
TEST(TrainerCheckpoints, EitherFormIsRead) {
  const TempFolder whole, parts;
  const auto expected = run_ranks(2, options_of(whole.path(), 11, false), Sharding::kStates);
  run_ranks(2, options_of(parts.path(), 4, false), Sharding::kStates);
  run_ranks(2, options_of(parts.path(), 6, true), Sharding::kStates, 4);
  EXPECT_EQ(CheckpointFolder(parts / "checkpoints").steps(), (std::vector<int64_t>{6}));
  run_ranks(2, options_of(parts.path(), 8, false), Sharding::kStates, 6);
  EXPECT_EQ(run_ranks(2, options_of(parts.path(), 11, true), Sharding::kStates, 8), expected);
}

TEST(TrainerCheckpoints, AnEarlierRunIsNotMixedIn) {
  const TempFolder folder;
  { SmallRun(options_of(folder.path(), 9, true)).trainer.run(); }
  SmallRun again(options_of(folder.path(), 4, true));
  expect_contains(error_of<ValueError>([&] { again.trainer.run(); }),
                  {"checkpoints", "of an earlier run", "resume()"});
  TrainerOptions replacing = options_of(folder.path(), 4, true);
  replacing.overwrite = true;
  { SmallRun(replacing).trainer.run(); }
  EXPECT_EQ(CheckpointFolder(folder / "checkpoints").steps(), (std::vector<int64_t>{3, 4}));
  SmallRun last(options_of(folder.path(), 4, true));
  EXPECT_EQ(last.trainer.checkpoint_path(), folder / "checkpoints");
  EXPECT_TRUE(last.trainer.has_checkpoint());
  last.trainer.remove_checkpoints();
  EXPECT_FALSE(last.trainer.has_checkpoint());
}

// A run that dies before its first checkpoint must not go on from another run's.
TEST(TrainerCheckpoints, AnOverwrittenRunIsGoneInEitherForm) {
  for (const bool in_folder : {false, true}) {
    const TempFolder folder;
    { SmallRun(options_of(folder.path(), 4, in_folder)).trainer.run(); }
    TrainerOptions other = options_of(folder.path(), 2, !in_folder);
    other.overwrite = true;
    SmallRun run(other);
    EXPECT_TRUE(run.trainer.has_checkpoint());
    bool has_any = true;
    run.trainer.extend({.iterations = 1}, [&](Trainer& t) {
      if (t.iteration() == 1) has_any = t.has_checkpoint();
    });
    run.trainer.run();
    EXPECT_FALSE(has_any);
  }
}

// Whoever goes on from a folder that another run has filled is stopped before it is.
TEST(TrainerCheckpoints, LaterStepsOfAnotherRunAreNamed) {
  const TempFolder folder;
  functions::Linear layer(2, 2);
  serializers::Checkpoint state;
  state.add("model", layer);
  CheckpointFolder(folder.path()).save(state, 5);
  CheckpointFolder other(folder.path());
  expect_contains(error_of<ValueError>([&] { other.save(state, 3); }),
                  {"has a checkpoint of step 5", "step 3", "clear()"});
  CheckpointFolder(folder.path()).save(state, 7);
  other.load(state, 5);  // goes back
  other.save(state, 6);
  EXPECT_EQ(other.steps(), (std::vector<int64_t>{5, 6}));
  other.clear();
  other.save(state, 1);
  EXPECT_EQ(other.steps(), (std::vector<int64_t>{1}));
}

}  // namespace
}  // namespace catena::training
