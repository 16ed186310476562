// The training loop: rows, files, triggers, ranks and faults.
#include "catena/training/trainer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <thread>

#include "catena/array/logic.h"
#include "environment_scope.h"
#include "error_text.h"
#include "rank_results.h"
#include "temp_folder.h"
#include "training/one_rank.h"
#include "training/small_run.h"

namespace catena::training {
namespace {

std::vector<std::string> columns(const Row& row) {
  std::vector<std::string> names;
  for (const auto& [name, value] : row) names.push_back(name);
  return names;
}

class Trainers : public ::testing::Test {
 protected:
  const TempFolder out;
};

TEST_F(Trainers, MakesARowAnEpoch) {
  OneProcess run({.epochs = 3, .out = out / "new"});
  run.trainer.observe("lr", [&] { return run.optimizer.lr(); });
  std::vector<double> losses;
  run.trainer.extend({.epochs = 1}, [&](Trainer& t) { losses.push_back(t.value("train_loss")); });
  run.trainer.run();
  EXPECT_EQ(run.trainer.epoch(), 3);
  EXPECT_EQ(run.trainer.iteration(), 15);
  EXPECT_EQ(run.optimizer.t(), 15);
  ASSERT_EQ(losses.size(), 3u);
  EXPECT_LT(losses[2], losses[0]);
  EXPECT_EQ(columns(run.trainer.row()),
            (std::vector<std::string>{"epoch", "train_loss", "train_accuracy", "test_loss",
                                      "test_accuracy", "elapsed", "lr"}));
  EXPECT_EQ(run.trainer.value("epoch"), 3);
  EXPECT_EQ(run.trainer.value("lr"), 0.01);
  EXPECT_EQ(run.trainer.value("test_loss"), run.trainer.evaluate().at("loss"));
  expect_contains(error_of<ValueError>([&] { run.trainer.value("loss"); }),
                  {"no column 'loss'", "train_loss, train_accuracy, test_loss"});
  EXPECT_EQ(run.text.str().find("epoch       train loss  train accuracy"), 0u) << run.text.str();
  expect_contains(read_file(out / "new/log.json"), {"\"epoch\": 3", "\"lr\": 0.01"});
  EXPECT_TRUE(run.model.training());
}

TEST_F(Trainers, WithoutAFolderWritesNothing) {
  OneProcess run({.epochs = 1});
  EXPECT_FALSE(run.trainer.has_checkpoint());
  run.trainer.run();
  EXPECT_FALSE(std::filesystem::exists("/checkpoint.npz"));
  expect_contains(error_of<ValueError>([&] { run.trainer.keep_best("x", Best::kLowest); }),
                  {"best.npz", "set .out"});
  EXPECT_EQ(run.trainer.checkpoint_path(), "");
  expect_contains(error_of<ValueError>([&] { run.trainer.resume(); }),
                  {"Trainer::resume: there is no folder", "set .out"});
}

TEST_F(Trainers, MakesNeitherRowsNorCheckpointsUnasked) {
  OneProcess run({.epochs = 1, .out = out.path(), .report = {}, .snapshot = {}});
  run.trainer.run();
  EXPECT_EQ(run.trainer.iteration(), 5);
  EXPECT_TRUE(run.trainer.row().empty());
  EXPECT_EQ(run.text.str(), "");
  EXPECT_EQ(out.entries(), 0);
}

TEST_F(Trainers, TheBarCountsWhatIsLeftOfEpochsAndOfUpdates) {
  EnvironmentScope terminal("CATENA_LAUNCHED", "1");
  terminal.set("CATENA_TERMINAL", "1");
  terminal.set("CATENA_RANK", {});
  terminal.set("OMPI_COMM_WORLD_RANK", {});
  terminal.set("COLUMNS", "80");
  for (const TrainerOptions& of_five_updates :
       {TrainerOptions{.epochs = 1}, TrainerOptions{.iterations = 5}}) {
    SmallRun run(of_five_updates);
    run.trainer.extend({.iterations = 1}, [](Trainer& t) {  // the bar is drawn ten times a second
      if (t.iteration() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(110));
    });
    run.trainer.run();
    expect_contains(run.text.str(), {" 43 %  ", " samples/s  0:00 left"});  // 10 of 23
  }
}

TEST_F(Trainers, CallsExtensionsWhenTheyAreDue) {
  OneProcess run({.epochs = 4});
  std::string calls;
  run.trainer.extend({.epochs = 2}, [&](Trainer& t) { calls += message("e", t.epoch(), " "); });
  run.trainer.extend({.iterations = 6}, [&](Trainer& t) {
    calls += message("i", t.iteration(), t.is_due({.epochs = 1}) ? "! " : " ");
  });
  run.trainer.extend({.iterations = 13}, [&](Trainer& t) { t.stop(); });
  run.trainer.run();
  EXPECT_EQ(calls, "i6 e2 i12 ");
  EXPECT_EQ(run.trainer.iteration(), 13);
  run.trainer.run();  // goes on
  EXPECT_EQ(calls, "i6 e2 i12 i18 e4 ");
}

TEST_F(Trainers, KeepsTheBestModel) {
  std::vector<double> next{0.2, 0.5, std::nan(""), 0.4};
  std::vector<double> at_best;
  const auto prepare = [&](OneProcess& run) {
    run.trainer.observe("quality", [&] {
      const double now = next.front();
      next.erase(next.begin());
      if (now == 0.5 || now == 0.6) at_best = numbers_of(run.model);
      return now;
    });
    run.trainer.keep_best("quality", Best::kHighest);
  };
  const auto best = [&] {
    testing::Net model(Dtype::kFloat32);
    serializers::load(out / "best.npz", model);
    return numbers_of(model);
  };
  OneProcess run({.epochs = 4, .out = out.path()});
  prepare(run);
  run.trainer.run();
  EXPECT_EQ(best(), at_best);
  EXPECT_NE(best(), numbers_of(run.model));
  next = {0.45, 0.6};
  OneProcess resumed({.epochs = 5, .out = out.path()});
  prepare(resumed);
  resumed.trainer.resume();
  resumed.trainer.run();
  EXPECT_EQ(best(), at_best);  // 0.45 is no record: that of before counts
  OneProcess further({.epochs = 6, .out = out.path()});
  prepare(further);
  further.trainer.resume();
  further.trainer.run();
  EXPECT_EQ(best(), numbers_of(further.model));
}

// The snapshot of the last update is due before the last row is, which has a record.
TEST_F(Trainers, CheckpointsHoldTheRecordOfTheLastRow) {
  const std::map<int64_t, double> qualities{{5, 0.5}, {8, 0.9}, {10, 0.7}, {12, 0.1}};
  const auto run_until = [&](int64_t iterations, bool resume) {
    OneProcess run({.iterations = iterations, .out = out.path(), .snapshot = {.iterations = 4}});
    run.trainer.observe("quality", [&] { return qualities.at(run.trainer.iteration()); });
    run.trainer.keep_best("quality", Best::kHighest);
    if (resume) run.trainer.resume();
    run.trainer.run();
  };
  run_until(8, false);
  const std::string best = read_file(out / "best.npz");
  run_until(12, true);
  EXPECT_EQ(read_file(out / "best.npz"), best);
}

// A run that begins anew where another one has left its files would replace them.
TEST_F(Trainers, DoesNotOverwriteAnEarlierRunUnasked) {
  const TrainerOptions options{.epochs = 1, .out = out.path()};
  {
    OneProcess first(options);
    first.trainer.keep_best("test_loss", Best::kLowest);
    first.trainer.run();
    EXPECT_NO_THROW(first.trainer.run()) << "its own files";
  }
  const std::string log = read_file(out / "log.json"), best = read_file(out / "best.npz");
  OneProcess again(options);
  again.trainer.keep_best("test_loss", Best::kLowest);
  expect_contains(
      error_of<ValueError>([&] { again.trainer.run(); }),
      {out.path().c_str(), "checkpoint.npz, log.json, best.npz", "resume()", ".overwrite"});
  EXPECT_EQ(again.trainer.iteration(), 0);
  EXPECT_EQ(read_file(out / "log.json"), log);
  EXPECT_EQ(read_file(out / "best.npz"), best);
  OneProcess writes_nothing({.epochs = 1, .out = out.path(), .report = {}, .snapshot = {}});
  EXPECT_NO_THROW(writes_nothing.trainer.run());
  OneProcess resumed({.epochs = 2, .out = out.path()});
  resumed.trainer.keep_best("test_loss", Best::kLowest);
  resumed.trainer.resume();
  EXPECT_NO_THROW(resumed.trainer.run());
  OneProcess anew({.epochs = 1, .out = out.path(), .overwrite = true});
  EXPECT_NO_THROW(anew.trainer.run());
  EXPECT_EQ(read_file(out / "log.json").find("\"epoch\": 2"), std::string::npos);
}

// Rows of an attempt that came to no checkpoint are nothing that a restart could go on from.
TEST_F(Trainers, ARestartOverwritesWhatAnAttemptWithoutCheckpointsHasLeft) {
  const TrainerOptions options{.epochs = 1, .out = out.path()};
  OneProcess(options).trainer.run();
  {
    const EnvironmentScope restarted("CATENA_RESTART", "1");
    EXPECT_THROW(OneProcess(options).trainer.run(), ValueError) << "there is a checkpoint";
    std::filesystem::remove(out / "checkpoint.npz");
    EXPECT_NO_THROW(OneProcess(options).trainer.run());
  }
  std::filesystem::remove(out / "checkpoint.npz");
  EXPECT_THROW(OneProcess(options).trainer.run(), ValueError) << "of another run";
}

TEST_F(Trainers, OverRanksAllRefuseToOverwrite) {
  const TrainerOptions options{.epochs = 1, .out = out.path(), .silent = true};
  comm::run_threads(2, [&](Communicator& comm) { OneRank(comm, 6, options).trainer.run(); });
  comm::run_threads(2, [&](Communicator& comm) {
    OneRank rank(comm, 6, options);
    expect_contains(error_of<ValueError>([&] { rank.trainer.run(); }), {"checkpoint.npz"});
    EXPECT_EQ(rank.trainer.iteration(), 0);
  });
}

// It rewound the iterator of training after each row, so that epoch 1 came again and again.
TEST_F(Trainers, RefusesTestBatchesThatDoNotEnd) {
  OneProcess run({.epochs = 3});
  expect_contains(
      error_of<ValueError>([&] { run.trainer.evaluate_on(run.batches, score_of(run.model)); }),
      {"these are the batches of training"});
  datasets::ResidentIterator other(make_data(), datasets::ShuffledIterator(kSamples, 5, 1), cpu(0));
  expect_contains(
      error_of<ValueError>([&] { run.trainer.evaluate_on(other, score_of(run.model)); }),
      {"evaluate_on: the batches repeat without end", "SerialIterator"});
  expect_contains(error_of<ValueError>([&] { run.trainer.evaluate_on(run.test, Score()); }),
                  {"the score is an empty function"});
}

TEST_F(Trainers, StopsBeforeItBegins) {
  OneProcess run({.epochs = 2});
  run.trainer.stop();
  run.trainer.run();
  EXPECT_EQ(run.trainer.iteration(), 0);
  run.trainer.run();
  EXPECT_EQ(run.trainer.epoch(), 2);
}

TEST_F(Trainers, RefusesExtensionsThatCannotWork) {
  OneProcess run({.epochs = 1});
  expect_contains(error_of<ValueError>([&] { run.trainer.extend({}, [](Trainer&) {}); }),
                  {"the trigger is not set", ".rows"});
  expect_contains(error_of<ValueError>([&] { run.trainer.extend({.epochs = 1}, {}); }),
                  {"the function is empty"});
  expect_contains(error_of<ValueError>([&] { run.trainer.observe("x", {}); }), {"'x' is empty"});
  for (const char* taken : {"epoch", "elapsed", "train_loss", "test_accuracy", "mine"}) {
    if (std::string(taken) == "mine") run.trainer.observe("mine", [] { return 0.0; });
    expect_contains(error_of<ValueError>([&] { run.trainer.observe(taken, [] { return 1.0; }); }),
                    {"has a column '", taken});
  }
  const auto named = [](const char* name) {
    return std::make_unique<FunctionExtension>(name, Trigger{.epochs = 1}, [](Trainer&) {});
  };
  run.trainer.extend(named("one"));
  expect_contains(error_of<ValueError>([&] { run.trainer.extend(named("one")); }),
                  {"'one' already"});
  for (const char* bad : {"", "a/b"})
    EXPECT_THROW(run.trainer.extend(named(bad)), ValueError) << bad;
  expect_contains(error_of<ValueError>([&] { run.trainer.schedule({}); }),
                  {"schedule is an empty"});
  expect_contains(
      error_of<ValueError>([&] { run.trainer.schedule([](int64_t) { return 1.0; }, {}); }),
      {"set one of .epochs and .iterations"});
}

TEST_F(Trainers, ALossThatIsNotFiniteEndsTheRun) {
  OneProcess run({.epochs = 5, .out = out.path()});
  run.trainer.extend({.epochs = 2},
                     [&](Trainer&) { run.factor = std::numeric_limits<double>::quiet_NaN(); });
  const std::string text = error_of<ValueError>([&] { run.trainer.run(); });
  expect_contains(
      text, {"train_loss is nan after 15 updates (epoch 3)", "the last checkpoint is of update 10",
             "lower learning rate", "set .find_nan to learn in which function it begins",
             ".allow_nonfinite_loss"});
  OneProcess again({.epochs = 3, .out = out.path()});
  again.trainer.resume();
  EXPECT_EQ(again.trainer.epoch(), 2);
  for (const double value : numbers_of(again.model)) ASSERT_TRUE(std::isfinite(value));

  OneProcess all_the_same({.epochs = 2, .allow_nonfinite_loss = true});
  all_the_same.factor = std::nan("");
  EXPECT_NO_THROW(all_the_same.trainer.run());
}

TEST_F(Trainers, ALossThatIsNotFiniteBetweenRowsDoesNotReplaceACheckpoint) {
  OneProcess run({.epochs = 5, .out = out.path(), .snapshot = {.iterations = 1}});
  run.trainer.extend({.iterations = 3}, [&](Trainer&) { run.factor = std::nan(""); });
  expect_contains(
      error_of<ValueError>([&] { run.trainer.run(); }),
      {"train_loss of an update since the last row is not finite", "after 4 updates (epoch 0.86",
       "the last checkpoint is of update 3", ".allow_nonfinite_loss"});
  OneProcess again({.epochs = 1, .out = out.path()});
  again.trainer.resume();
  EXPECT_EQ(again.trainer.iteration(), 3);
  EXPECT_NO_THROW(again.trainer.run());
}

// Once the gradients are averaged all ranks have it.
TEST_F(Trainers, TheRankOnWhichANanBeginsIsNamed) {
  const auto errors = [](bool finds) {
    return testing::errors_of_ranks(testing::AfterError::kLeave, 3, [&](Communicator& comm) {
      OneRank rank(comm, 6, {.epochs = 5, .find_nan = finds, .silent = true});
      if (comm.rank() == 1)
        rank.trainer.extend({.iterations = 2}, [&](Trainer&) { rank.factor = std::nan(""); });
      rank.trainer.run();
    });
  };
  for (const std::string& text : errors(false))
    expect_contains(text, {"train_loss is nan", ".find_nan", "and on which rank it begins"});
  const auto found = errors(true);
  for (const int other : {0, 2}) EXPECT_EQ(found[size_t(other)], "rank 1 failed: " + found[1]);
  expect_contains(found[1], {"multiply: output 0", "has NaN or infinite elements"});
}

TEST_F(Trainers, ALossThatIsNotFiniteOnOneRankDoesNotReplaceACheckpoint) {
  comm::run_threads(2, [&](Communicator& comm) {
    OneRank rank(comm, 5,
                 {.epochs = 5, .out = out.path(), .snapshot = {.iterations = 1}, .silent = true});
    if (comm.rank() == 1)
      rank.trainer.extend({.iterations = 3}, [&](Trainer&) { rank.factor = std::nan(""); });
    expect_contains(
        error_of<ValueError>([&] { rank.trainer.run(); }),
        {"train_loss of an update since the last row is not finite", "after 4 updates"});
  });
}

TEST_F(Trainers, RefusesWhatCannotWork) {
  expect_contains(error_of<ValueError>([] { OneProcess({}); }),
                  {".epochs is 0", "set one above 0"});
  expect_contains(error_of<ValueError>([] { OneProcess({.epochs = 1, .metrics = {}}); }),
                  {".metrics is empty"});
  OneProcess other({.epochs = 1, .metrics = {"loss"}});
  expect_contains(error_of<ValueError>([&] { other.trainer.run(); }),
                  {"got 2 numbers for 1 names", "'loss'"});
  OneProcess fresh({.epochs = 1, .out = out.path()});
  expect_contains(error_of<IoError>([&] { fresh.trainer.resume(); }),
                  {"there is no '", (out / "checkpoint.npz").c_str()});
  optimizers::SGD without(0.1);
  expect_contains(
      error_of<ValueError>([&] { Trainer(fresh.updater, fresh.model, without, {.epochs = 1}); }),
      {"call setup(model) first"});
  Trainer untested(fresh.updater, fresh.model, fresh.optimizer, {.epochs = 1, .silent = true});
  expect_contains(error_of<ValueError>([&] { untested.evaluate(); }), {"call evaluate_on first"});
  EXPECT_NO_THROW(untested.run());
  EXPECT_EQ(columns(untested.row()),
            (std::vector<std::string>{"epoch", "train_loss", "train_accuracy", "elapsed"}));
}

// Ranks -------------------------------------------------------------------------------------------

// With 4 ranks and batches of 5 the last batch of an epoch, of 3, leaves one without samples.
TEST_F(Trainers, RanksTrainAsOneProcess) {
  OneProcess one({.epochs = 2});
  one.trainer.run();
  const std::vector<double> expected = numbers_of(one.model);
  for (const int ranks : {2, 4}) {
    const std::string folder = out / std::to_string(ranks);
    comm::run_threads(ranks, [&](Communicator& comm) {
      // Each rank has a folder of its own; only rank 0's is used.
      const std::string own =
          comm.rank() == 0 ? folder : folder + "/" + std::to_string(comm.rank());
      OneRank rank(comm, 5, {.epochs = 2, .out = own, .silent = true});
      EXPECT_FALSE(rank.trainer.has_checkpoint());
      rank.trainer.run();
      expect_near(numbers_of(rank.model), expected);
      for (const char* column : {"train_loss", "train_accuracy", "test_loss", "test_accuracy"})
        EXPECT_NEAR(rank.trainer.value(column), one.trainer.value(column), 1e-5) << column;
      EXPECT_EQ(std::filesystem::exists(own + "/checkpoint.npz"), comm.rank() == 0);
      EXPECT_TRUE(rank.trainer.has_checkpoint());
    });
  }
}

// Checkpoints do not depend on which rank holds which state.
TEST_F(Trainers, ResumesWithStatesSpreadOverOtherRanks) {
  using parallel::Sharding;
  OneProcess whole({.epochs = 4});
  whole.trainer.run();
  const auto go_on = [&](int ranks, int64_t epochs, Sharding sharding) {
    comm::run_threads(ranks, [&](Communicator& comm) {
      OneRank rank(comm, 5, {.epochs = epochs, .out = out.path(), .silent = true}, sharding);
      if (epochs > 1) rank.trainer.resume();
      rank.trainer.run();
      if (epochs == 4) expect_near(numbers_of(rank.model), numbers_of(whole.model));
    });
  };
  go_on(3, 1, Sharding::kStates);
  go_on(2, 2, Sharding::kStates);
  go_on(2, 3, Sharding::kNone);
  go_on(4, 4, Sharding::kStates);
}

// Of which ranks have parts between two updates.
TEST_F(Trainers, TestsAndSavesParametersThatAreSpreadOverRanks) {
  using parallel::Sharding;
  const auto trained = [](Sharding sharding) {
    const TempFolder out;
    comm::run_threads(3, [&](Communicator& comm) {
      OneRank rank(comm, 6, {.epochs = 2, .out = out.path(), .snapshot = {}, .silent = true},
                   sharding);
      rank.trainer.run();
      rank.trainer.save_model("model.npz");
    });
    return load_npz(out / "model.npz");
  };
  const auto whole = trained(Sharding::kNone), spread = trained(Sharding::kParameters);
  ASSERT_EQ(whole.size(), spread.size());
  for (const auto& [name, array] : whole)
    EXPECT_TRUE(allclose(array, spread.at(name), 1e-5, 1e-6)) << name;
}

TEST_F(Trainers, ADamagedLogIsAnErrorOfAllRanks) {
  const TrainerOptions options{.epochs = 1, .out = out.path(), .silent = true};
  comm::run_threads(2, [&](Communicator& comm) { OneRank(comm, 6, options).trainer.run(); });
  write_file(out / "log.json", "[{\"epoch\": 1, ");
  comm::run_threads(2, [&](Communicator& comm) {
    OneRank rank(comm, 6, options);
    expect_contains(error_of<IoError>([&] { rank.trainer.resume(); }), {"log.json", "delete it"});
    EXPECT_EQ(rank.trainer.iteration(), 0);
  });
}

TEST_F(Trainers, FaultsComeToAllRanks) {
  comm::run_threads(3, [&](Communicator& comm) {
    OneRank rank(comm, 6, {.epochs = 2, .out = out.path(), .silent = true});
    expect_contains(error_of<IoError>([&] { rank.trainer.resume(); }), {"there is no '"});
  });
  comm::run_threads(3, [&](Communicator& comm) {
    OneRank rank(comm, 6, {.epochs = 2, .out = out.path(), .silent = true});
    if (comm.rank() == 1) rank.factor = std::nan("");
    expect_contains(error_of<ValueError>([&] { rank.trainer.run(); }),
                    {"train_loss is nan after 4 updates"});
  });
  EXPECT_FALSE(std::filesystem::exists(out / "checkpoint.npz"));
}

TEST_F(Trainers, RanksThatComeApartSaveNothing) {
  comm::run_threads(2, [&](Communicator& comm) {
    OneRank rank(comm, 6, {.epochs = 1, .out = out.path(), .silent = true});
    rank.trainer.extend({.epochs = 1}, [&](Trainer& t) {
      if (comm.rank() == 1) rank.model.l1.W.data().fill(1);
    });
    expect_contains(error_of<ValueError>([&] { rank.trainer.run(); }), {"'/l1/W'", "rank 1"});
  });
  EXPECT_FALSE(std::filesystem::exists(out / "checkpoint.npz"));
}

}  // namespace
}  // namespace catena::training
