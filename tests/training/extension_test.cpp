// Extensions: when they run, in which order, and what of them a resumed run has.
#include "catena/training/extension.h"

#include <gtest/gtest.h>

#include <sstream>

#include "catena/training/trainer.h"
#include "error_text.h"
#include "temp_folder.h"
#include "training/problem.h"

namespace catena::training {
namespace {

struct SmallRun {
  testing::Net model{Dtype::kFloat32};
  optimizers::SGD optimizer{0.1};
  datasets::ResidentIterator batches{make_data(), datasets::ShuffledIterator(kSamples, 5, 1),
                                     cpu(0)};
  StandardUpdater updater{batches, make_step(optimizer, score_of(model))};
  std::ostringstream text;
  Trainer trainer;

  explicit SmallRun(TrainerOptions options)
      : trainer((optimizer.setup(model), options.stream = &text, updater), model, optimizer,
                options) {}
};

// Writes down what happens to it.
class Diary final : public Extension {
 public:
  Diary(std::string& text, std::string name, Trigger trigger, int priority = 0)
      : Extension(std::move(name), trigger, priority), text_(text) {}
  void start(Trainer& t) override { write("start", t); }
  void run(Trainer& t) override { write("run", t); }
  void end(Trainer& t) override { write("end", t); }

 private:
  void write(const char* what, const Trainer& t) {
    text_ += message(name(), " ", what, " ", t.iteration(), "; ");
  }
  std::string& text_;
};

TEST(Extension, StartsRunsAndEnds) {
  std::string text;
  SmallRun run({.iterations = 6, .report = {.iterations = 4}});
  run.trainer.extend(std::make_unique<Diary>(text, "a", Trigger{.iterations = 3}));
  run.trainer.extend(std::make_unique<Diary>(text, "row", Trigger{.rows = true}, -1));
  Diary& first = run.trainer.extend(std::make_unique<Diary>(text, "b", Trigger{.epochs = 1}, 7));
  EXPECT_EQ(first.priority(), 7);
  run.trainer.extend(std::make_unique<Diary>(text, "only", Trigger{}));
  run.trainer.run();
  EXPECT_EQ(
      text,
      "b start 0; a start 0; only start 0; row start 0; a run 3; row run 4; b run 5; a run 6; "
      "row run 6; b end 6; a end 6; only end 6; row end 6; ");
}

TEST(Extension, AnExceptionSkipsTheEnd) {
  std::string text;
  SmallRun run({.epochs = 1});
  run.trainer.extend({.iterations = 2}, [](Trainer&) { throw IoError("the run breaks off"); });
  run.trainer.extend(std::make_unique<Diary>(text, "a", Trigger{}));
  EXPECT_THROW(run.trainer.run(), IoError);
  EXPECT_EQ(text, "a start 0; ");
}

// Stops after so many rows; counts over a resume.
class Countdown final : public Extension {
 public:
  explicit Countdown(int64_t rows) : Extension("countdown", {.rows = true}), left_(rows) {}
  void run(Trainer& trainer) override {
    if (--left_ == 0) trainer.stop();
  }
  void add_state(serializers::Checkpoint& state) override { state.add("left", left_); }

 private:
  int64_t left_;
};

TEST(Extension, StateIsResumed) {
  const TempFolder out;
  {
    SmallRun first({.epochs = 2, .out = out.path()});
    first.trainer.extend(std::make_unique<Countdown>(3));
    first.trainer.run();
  }
  EXPECT_EQ(load_npz(out / "checkpoint.npz").at("extensions/countdown/left").item<int64_t>(), 1);
  SmallRun second({.epochs = 9, .out = out.path()});
  second.trainer.extend(std::make_unique<Countdown>(3));
  second.trainer.resume();
  second.trainer.run();
  EXPECT_EQ(second.trainer.epoch(), 3);
}

TEST(Extension, MayBeNewOrGoneInAResumedRun) {
  const TempFolder out;
  {
    SmallRun first({.epochs = 1, .out = out.path()});
    first.trainer.extend(std::make_unique<Countdown>(5));
    first.trainer.run();
  }
  SmallRun second({.epochs = 2, .out = out.path()});
  second.trainer.keep_best("train_loss", Best::kLowest);
  ::testing::internal::CaptureStderr();
  second.trainer.resume();
  expect_contains(::testing::internal::GetCapturedStderr(), {"'countdown'", "dropped"});
  second.trainer.run();
  EXPECT_TRUE(std::filesystem::exists(out / "best.npz"));
}

// Checkpoints of before keep_best was an extension have its record as an entry of bytes.
TEST(KeepBest, ReadsTheRecordOfEarlierVersions) {
  const TempFolder out;
  {
    SmallRun first({.epochs = 1, .out = out.path()});
    first.trainer.keep_best("train_loss", Best::kHighest);
    first.trainer.run();
  }
  NamedArrays old;
  const double record = 1e9;
  for (const auto& [name, array] : load_npz(out / "checkpoint.npz"))
    if (!name.starts_with("extensions")) old.emplace_back(name, array);
  old.emplace_back("best best.npz", array_from_bytes(&record, {8}, Dtype::kUInt8, cpu(0)));
  save_npz(out / "checkpoint.npz", old);
  SmallRun second({.epochs = 2, .out = out.path()});
  auto& best = second.trainer.extend(std::make_unique<KeepBest>("train_loss", Best::kHighest));
  second.trainer.resume();
  EXPECT_EQ(best.record(), 1e9);
}

// The rate of each update, the first included, is that of the updates finished before it.
TEST(LearningRate, EachUpdateHasItsRate) {
  const auto schedule = [](int64_t step) { return 1.0 / double(step + 1); };
  std::vector<double> rates;
  const auto run_until = [&](int64_t iterations, const std::string& out, const Trigger& every) {
    SmallRun run({.iterations = iterations, .out = out, .snapshot = {.iterations = 1}});
    StandardUpdater updater(run.batches, [&, step = make_step(run.optimizer, score_of(run.model))](
                                             const datasets::Batch& batch) {
      rates.push_back(run.optimizer.lr());
      return step(batch);
    });
    TrainerOptions options{.iterations = iterations, .out = out, .silent = true};
    Trainer trainer(updater, run.model, run.optimizer, options);
    trainer.schedule(schedule, every);
    if (trainer.has_checkpoint()) trainer.resume();
    trainer.run();
  };
  const TempFolder out;
  run_until(3, out / "a", {.iterations = 1});
  run_until(5, out / "a", {.iterations = 1});  // resumed
  EXPECT_EQ(rates, (std::vector<double>{1, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5}));
  rates.clear();
  run_until(7, out / "b", {.epochs = 1});
  EXPECT_EQ(rates, (std::vector<double>{1, 1, 1, 1, 1, 0.5, 0.5}));
  rates.clear();
  run_until(5, out / "c", {.iterations = 2});
  EXPECT_EQ(rates, (std::vector<double>{1, 1, 0.5, 0.5, 1.0 / 3}));
}

// Two networks and their optimizers, as adversarial training has them.
struct Pair : FunctionSet {
  testing::Net a{Dtype::kFloat32}, b{Dtype::kFloat32};
  CATENA_FUNCTIONS(a, b)
};

TEST(Trainer, SavesAndResumesSeveralOptimizers) {
  const TempFolder out;
  const auto train = [&](int64_t epochs, const std::string& folder) {
    Pair model;
    optimizers::Adam first(0.01);
    optimizers::MomentumSGD second(0.05);
    first.setup(model.a);
    second.setup(model.b);
    datasets::ResidentIterator batches(make_data(), datasets::ShuffledIterator(kSamples, 5, 1),
                                       cpu(0));
    const Step one = make_step(first, score_of(model.a)),
               two = make_step(second, score_of(model.b));
    StandardUpdater updater(batches, [&](const datasets::Batch& batch) {
      two(batch);
      return one(batch);
    });
    Trainer trainer(updater, model, {first, second},
                    {.epochs = epochs, .out = folder, .silent = true});
    if (trainer.has_checkpoint()) trainer.resume();
    trainer.run();
    EXPECT_EQ(&trainer.optimizer(1), &second);
    EXPECT_EQ(second.t(), 5 * epochs);
    return numbers_of(model);
  };
  const auto whole = train(3, out / "whole");
  train(1, out / "parts");
  EXPECT_EQ(train(3, out / "parts"), whole);
  Pair model;
  optimizers::SGD ready(0.1), bare(0.1);
  ready.setup(model);
  SmallRun run({.epochs = 1});
  const TrainerOptions options{.epochs = 1};
  EXPECT_THROW(Trainer(run.updater, model, {ready, bare}, options), ValueError);
  EXPECT_THROW(Trainer(run.updater, model, Trainer::List<Optimizer>{}, options), ValueError);
}

}  // namespace
}  // namespace catena::training
