// Trainers that go on from a checkpoint, and what they have forgotten of an earlier run.
#include <gtest/gtest.h>

#include <filesystem>

#include "error_text.h"
#include "temp_folder.h"
#include "training/one_rank.h"
#include "training/small_run.h"

namespace catena::training {
namespace {

class TrainerResumes : public ::testing::Test {
 protected:
  const TempFolder out;
};

TEST_F(TrainerResumes, ResumesBitForBit) {
  OneProcess whole({.epochs = 3, .out = out / "whole"});
  whole.trainer.run();
  {
    OneProcess first({.epochs = 1, .out = out / "parts"});
    first.trainer.run();
    EXPECT_NE(numbers_of(first.model), numbers_of(whole.model));
  }
  OneProcess second({.epochs = 3, .out = out / "parts"});
  ASSERT_TRUE(second.trainer.has_checkpoint());
  second.trainer.resume();
  EXPECT_EQ(second.trainer.iteration(), 5);
  second.trainer.run();
  EXPECT_EQ(numbers_of(second.model), numbers_of(whole.model));
  EXPECT_EQ(second.trainer.value("train_loss"), whole.trainer.value("train_loss"));
  EXPECT_GE(second.trainer.value("elapsed"), 0);
  second.trainer.run();
  expect_contains(second.text.str(), {"the run had ended at epoch 3 (update 15)"});
  expect_contains(read_file(out / "parts/log.json"),
                  {"\"epoch\": 1", "\"epoch\": 2", "\"epoch\": 3"});
  OneProcess third({.epochs = 3, .out = out / "parts"});
  third.trainer.resume();
  third.trainer.remove_checkpoints();
  third.trainer.run();  // nothing is left to do, nor to save
  EXPECT_FALSE(third.trainer.has_checkpoint());
  EXPECT_EQ(third.trainer.row(), second.trainer.row());
  EXPECT_EQ(third.trainer.value("test_accuracy"), whole.trainer.value("test_accuracy"));
  expect_contains(third.text.str(), {"the run had ended at epoch 3 (update 15)"});
  EXPECT_EQ(numbers_of(third.model), numbers_of(whole.model));
}

TEST_F(TrainerResumes, EndsAndResumesInTheMiddleOfAnEpoch) {
  OneProcess whole({.iterations = 12, .out = out / "whole", .report = {.iterations = 4}});
  whole.trainer.run();
  EXPECT_EQ(whole.trainer.iteration(), 12);
  EXPECT_EQ(whole.trainer.row()[1].first, "iteration");
  EXPECT_EQ(whole.trainer.value("iteration"), 12);
  EXPECT_DOUBLE_EQ(whole.trainer.value("epoch"), 2 + 10.0 / kSamples);
  OneProcess first({.iterations = 7, .out = out / "parts"});
  first.trainer.run();
  EXPECT_DOUBLE_EQ(first.trainer.value("epoch"), 1 + 10.0 / kSamples);  // the end makes a row
  OneProcess second({.iterations = 12, .out = out / "parts"});
  second.trainer.resume();
  EXPECT_EQ(second.trainer.iteration(), 7);
  second.trainer.run();
  EXPECT_EQ(numbers_of(second.model), numbers_of(whole.model));
}

TEST_F(TrainerResumes, RowsCoverWhatWasBeforeTheResume) {
  OneProcess whole({.epochs = 1, .out = out / "whole", .snapshot = {.iterations = 3}});
  whole.trainer.run();
  OneProcess first({.epochs = 1, .out = out / "parts", .snapshot = {.iterations = 3}});
  first.trainer.extend({.iterations = 4}, [](Trainer&) { throw IoError("the run breaks off"); });
  EXPECT_THROW(first.trainer.run(), IoError);
  OneProcess second({.epochs = 1, .out = out / "parts"});
  second.trainer.resume();
  EXPECT_EQ(second.trainer.iteration(), 3);
  second.trainer.run();
  EXPECT_EQ(second.trainer.value("train_loss"), whole.trainer.value("train_loss"));
  EXPECT_EQ(second.trainer.value("train_accuracy"), whole.trainer.value("train_accuracy"));
}

// Keeps the numbers of its updates until they are asked for, as captured steps do.
class HoldingUpdater : public StandardUpdater {
 public:
  using StandardUpdater::StandardUpdater;
  void update(Means& /*means*/) override { StandardUpdater::update(held_); }
  void settle(Means& means) override {
    for (const std::string name : {"loss", "accuracy"}) means.add(name, held_.sum(name));
    held_.clear();
  }

 private:
  Means held_{{"loss", "accuracy"}};
};

// The rows of a run of one epoch of five updates; that of update 5, where `breaks_off`, twice: it
// breaks off after a checkpoint of update 3, and the same trainer goes on from there.
std::vector<Row> rows_of_a_run(const std::string& folder, bool breaks_off) {
  OneProcess run({.epochs = 1});
  HoldingUpdater updater(run.batches, make_step(run.optimizer, score_of(run.model)));
  Trainer trainer(updater, run.model, run.optimizer,
                  {.epochs = 1,
                   .out = folder,
                   .report = {.iterations = 2},
                   .snapshot = {.iterations = 3},
                   .silent = true});
  std::vector<Row> rows;
  trainer.extend({.rows = true}, [&](Trainer& t) {
    rows.push_back(t.row());
    std::erase_if(rows.back(), [](const auto& number) { return number.first == "elapsed"; });
  });
  trainer.extend({.iterations = 5}, [&](Trainer&) {
    if (breaks_off) throw IoError("the run breaks off");
  });
  if (breaks_off) {
    EXPECT_THROW(trainer.run(), IoError);
    EXPECT_EQ(trainer.value("iteration"), 4);
    breaks_off = false;
    trainer.resume();
    EXPECT_EQ(trainer.iteration(), 3);
    EXPECT_EQ(trainer.value("iteration"), 2);
    rows.resize(1);
  }
  trainer.run();
  return rows;
}

TEST_F(TrainerResumes, ATrainerThatHasRunResumesAsANewOne) {
  EXPECT_EQ(rows_of_a_run(out / "parts", true), rows_of_a_run(out / "whole", false));
}

TEST_F(TrainerResumes, StatisticsAreAveragedAgainAfterAResume) {
  comm::run_threads(2, [&](Communicator& comm) {
    OneRank one(comm, 5,
                {.epochs = 1, .out = out.path(), .snapshot = {.iterations = 3}, .silent = true});
    bool breaks_off = true;
    one.trainer.extend({.iterations = 1}, [&](Trainer& t) {
      if (t.iteration() < 5) one.model.average.data().fill(comm.rank());
    });
    one.trainer.extend({.iterations = 5}, [&](Trainer&) {  // after the test pass
      EXPECT_EQ(one.model.average.data()[0].item<double>(), 0.5);
      if (breaks_off) throw IoError("the run breaks off");
    });
    EXPECT_THROW(one.trainer.run(), IoError);
    breaks_off = false;
    one.trainer.resume();
    EXPECT_EQ(one.trainer.iteration(), 3);
    one.trainer.run();
  });
}

TEST_F(TrainerResumes, ResumesFromCheckpointsOfEarlierVersions) {
  OneProcess first({.epochs = 1, .out = out.path()});
  first.trainer.run();
  NamedArrays kept;
  for (const auto& [name, array] : load_npz(first.trainer.checkpoint_path()))
    if (!name.starts_with("rank_states/") && !name.starts_with("extensions/") &&
        !name.starts_with("row"))
      kept.emplace_back(name, array);
  save_npz(first.trainer.checkpoint_path(), kept);
  OneProcess second({.epochs = 2, .out = out.path()});
  second.trainer.resume();
  second.trainer.run();
  EXPECT_EQ(second.trainer.iteration(), 10);
}

}  // namespace
}  // namespace catena::training
