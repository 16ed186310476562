// Extensions: when they run, in which order, and what of them a resumed run has.
#include "catena/training/extension.h"

#include <gtest/gtest.h>

#include "catena/autograd/function_hook.h"
#include "catena/functions/connection/linear.h"
#include "error_text.h"
#include "temp_folder.h"
#include "training/small_run.h"

namespace catena::training {
namespace {

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
  for (const auto& [name, array] : load_npz(out / "checkpoint.npz"))
    EXPECT_FALSE(name.starts_with("extensions/countdown")) << name;
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

// A run whose column has these values, one a row; after how many rows it ended.
int64_t rows_until_stopped(const std::vector<double>& values, Best best, int64_t patience,
                           double least_change = 0) {
  SmallRun run({.epochs = int64_t(values.size())});
  size_t next = 0;
  run.trainer.observe("value", [&] { return values.at(next++); });
  run.trainer.stop_early("value", best, patience, least_change);
  run.trainer.run();
  return run.trainer.epoch();
}

TEST(EarlyStopping, EndsTheRunAfterRowsThatAreNotBetter) {
  EXPECT_EQ(rows_until_stopped({5, 4, 4, 3, 3, 6, 2, 1}, Best::kLowest, 2), 6);
  EXPECT_EQ(rows_until_stopped({5, 4, 4, 3, 3, 6, 2, 1}, Best::kLowest, 3), 8);
  EXPECT_EQ(rows_until_stopped({1, 2, 2, 3, 1, 1, 9}, Best::kHighest, 2), 6);
  EXPECT_EQ(rows_until_stopped({1, 2, 2.4, 2.4, 9}, Best::kHighest, 2, 0.5), 4);
  EXPECT_EQ(rows_until_stopped({NAN, NAN, 1, 1}, Best::kLowest, 2), 2);
  EXPECT_EQ(rows_until_stopped({1, NAN, NAN, 0}, Best::kLowest, 2), 3);
}

TEST(EarlyStopping, IsResumed) {
  const TempFolder out;
  std::string said;
  const auto run_until = [&](int64_t epochs, int64_t patience = 3) {
    SmallRun run({.epochs = epochs, .out = out.path()});
    run.trainer.observe("value", [] { return 1.0; });
    auto& stopping =
        run.trainer.extend(std::make_unique<EarlyStopping>("value", Best::kLowest, patience));
    if (run.trainer.has_checkpoint()) run.trainer.resume();
    run.trainer.run();
    EXPECT_EQ(stopping.record(), 1);
    EXPECT_EQ(stopping.waited(), std::min<int64_t>(run.trainer.epoch() - 1, patience));
    said = run.text.str();
    return run.trainer.epoch();
  };
  EXPECT_EQ(run_until(2), 2);
  EXPECT_EQ(run_until(9), 4);
  EXPECT_EQ(said.find("the run had ended"), said.npos) << said;
  EXPECT_EQ(run_until(9), 4);  // it was stopped
  expect_contains(said, {"the run had ended at epoch 4 (update ",
                         "): 'early stopping' stopped it before another update"});
  EXPECT_EQ(run_until(9, 4), 5);  // more patience
  EXPECT_EQ(said.find("the run had ended"), said.npos) << said;
  EXPECT_THROW(EarlyStopping("value", Best::kLowest, 0), ValueError);
  EXPECT_THROW(EarlyStopping("value", Best::kLowest, 1, -1), ValueError);
}

TEST(Trainer, FindsNan) {
  SmallRun run({.epochs = 1, .find_nan = true});
  run.model.parameters()[1].data().fill(NAN);
  const std::string name = "parameter '" + run.model.parameters()[1].name().substr(1) + "'";
  expect_contains(error_of<ValueError>([&] { run.trainer.run(); }),
                  {"output 0", "has NaN", name.c_str(), "is not finite"});
  const Parameter w(full({1, 1}, 1.0f, dtype::float32), "l1/W");
  NanFinder finder;
  const FunctionHookScope scope(finder);
  const Variable y = functions::linear(Variable(full({1, 1}, 1e30f, dtype::float32)), w);
  y.set_grad(full({1, 1}, 1e30f, dtype::float32));
  expect_contains(error_of<ValueError>([&] { y.backward(); }),
                  {"Linear", "the gradient of input 1, parameter 'l1/W', (1, 1) float32"});
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
