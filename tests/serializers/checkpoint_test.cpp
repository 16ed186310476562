// One file for a whole run.
#include "catena/serializers/checkpoint.h"

#include <gtest/gtest.h>

#include "catena/optimizers/adam.h"
#include "error_text.h"
#include "optimizers/models.h"
#include "temp_folder.h"

namespace catena::serializers {
namespace {

using catena::testing::all_values;
using catena::testing::Model;

// A run whose steps depend on everything a checkpoint holds.
struct Training {
  struct Position {
    int64_t epoch = 0, index = 0;
  };
  Model model;
  optimizers::Adam adam{0.01};
  RandomState random{7};
  int64_t epoch = 0;
  double best = 0;
  std::vector<int32_t> order{1, 2, 3};
  std::vector<double> history;
  std::string note = "start";
  Position position;
  Checkpoint checkpoint;

  Training() {
    adam.setup(model);
    checkpoint.add("model", model);
    checkpoint.add("optimizer", adam);
    checkpoint.add("random", random);
    checkpoint.add("epoch", epoch);
    checkpoint.add("best", best);
    checkpoint.add("order", order);
    checkpoint.add("history", history);
    checkpoint.add("note", note);
    checkpoint.add(
        "position", [this] { return position; }, [this](const Position& p) { position = p; });
  }
  void train(int epochs) {
    for (int e = 0; e < epochs; ++e) {
      for (int step = 0; step < 3; ++step) {
        for (const Parameter& p : model.parameters())
          p.set_grad(random.normal(p.shape(), 0, 1, {p.dtype(), p.device()}));
        adam.update();
      }
      ++epoch;
      position = {epoch, 10 * epoch};
      best = random.uniform({}).item<double>();
      history.push_back(best);
      std::rotate(order.begin(), order.begin() + 1, order.end());
      note = message("epoch ", epoch);
    }
  }
};

TEST(Checkpoint, TwoEpochsAndThreeAreFiveBitForBit) {
  const TempFolder folder;
  Training whole, first, second;
  whole.train(5);
  first.train(2);
  first.checkpoint.save(folder / "run.npz");
  second.train(1);  // other values in everything
  second.checkpoint.load(folder / "run.npz");
  EXPECT_EQ(second.epoch, 2);
  EXPECT_EQ(second.history.size(), 2u);
  EXPECT_EQ(second.note, "epoch 2");
  second.train(3);
  EXPECT_EQ(all_values(second.model.parameters()), all_values(whole.model.parameters()));
  EXPECT_EQ(second.history, whole.history);
  EXPECT_EQ(second.order, whole.order);
  EXPECT_EQ(second.note, whole.note);
  EXPECT_EQ(second.position.index, 50);
  EXPECT_EQ(second.adam.t(), 15);
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Checkpoint, EmptyValuesSurvive) {
  const TempFolder folder;
  std::vector<float> values;
  std::string text;
  Checkpoint checkpoint;
  checkpoint.add("values", values);
  checkpoint.add("text", text);
  checkpoint.save(folder / "c.npz");
  values = {1};
  text = "x";
  checkpoint.load(folder / "c.npz");
  EXPECT_TRUE(values.empty());
  EXPECT_TRUE(text.empty());
}

TEST(Checkpoint, ArraysAloneAndInGroups) {
  const TempFolder folder;
  Array running = array({1.f, 2.f}).to(cpu(1));
  const Array view = running;
  std::map<std::string, Array> statistics{{"l1/mean", array({3.f})}, {"l1/count", array({4})}};
  std::map<std::string, Array> none;
  Checkpoint checkpoint;
  checkpoint.add("running", running);
  checkpoint.add("statistics", statistics);
  checkpoint.add("none", none);
  checkpoint.save(folder / "c.npz");
  running.fill(0);
  statistics = {{"other", array({5})}};
  none = statistics;
  checkpoint.load(folder / "c.npz");
  EXPECT_EQ(view.to_vector<float>(), (std::vector<float>{1, 2}));  // written in place
  EXPECT_EQ(running.device(), cpu(1));
  ASSERT_EQ(statistics.size(), 2u);
  EXPECT_EQ(statistics.at("l1/mean").to_vector<float>(), (std::vector<float>{3}));
  EXPECT_EQ(statistics.at("l1/count").dtype(), Dtype::kInt32);
  EXPECT_TRUE(none.empty());
  Array wide = zeros({2});
  Checkpoint other;
  other.add("running", wide);
  other.add("statistics", statistics);
  other.add("none", none);
  expect_contains(error_of<IoError>([&] { other.load(folder / "c.npz"); }),
                  {"entry 'running' is float32 of shape (2,), expected float64"});
}

TEST(Checkpoint, PartsOfOneNameAreSavedOnce) {
  const Array a = ones({2});
  Checkpoint checkpoint;
  checkpoint.add("shared", Checkpoint::Spread{.parts = [&] {
                   return TensorParts{part_of("w", a), part_of("w", a)};
                 }});
  EXPECT_EQ(checkpoint.to_arrays().size(), 1u);
}

TEST(Checkpoint, NamesAnOptimizerThatIsNotSetUp) {
  const TempFolder folder;
  const std::string path = folder / "run.npz";
  Model model;
  optimizers::Adam ready{0.01}, bare{0.01};
  ready.setup(model);
  Checkpoint saving, loading;
  saving.add("optimizer", ready);
  saving.save(path);
  loading.add("optimizer", bare);
  expect_contains(error_of<ValueError>([&] { loading.load(path); }),
                  {path.c_str(), "optimizer: Optimizer::load_state", "call setup(model) first"});
}

// What is loaded may name itself, as iterators do.
TEST(Checkpoint, NamesAnEntryOnce) {
  const TempFolder folder;
  const std::string path = folder / "run.npz";
  Checkpoint checkpoint;
  checkpoint.add(
      "iterator", [] { return int64_t{3}; },
      [](int64_t samples) { fail<ValueError>("iterator: the state is of ", samples, " samples"); });
  checkpoint.save(path);
  EXPECT_EQ(error_of<ValueError>([&] { checkpoint.load(path); }),
            path + ", iterator: the state is of 3 samples");
}

TEST(Checkpoint, NamesWhatDoesNotFit) {
  const TempFolder folder;
  int64_t epoch = 1;
  int32_t small = 1;
  Model model;
  Array values = array({1.f, 2.f});
  Checkpoint saved, other, narrow, wrong_kind, wrong_shape;
  saved.add("epoch", epoch);
  saved.save(folder / "c.npz");
  EXPECT_THROW(saved.add("epoch", epoch), ValueError);
  EXPECT_THROW(saved.add("a/b", epoch), ValueError);
  other.add("model", model);
  narrow.add("epoch", small);
  wrong_kind.add("epoch", model);
  wrong_shape.add("epoch", values);
  const auto error = [&](const Checkpoint& c) {
    return error_of<IoError>([&] { c.load(folder / "c.npz"); });
  };
  expect_contains(error(other), {"missing: model\n  unknown: epoch"});
  expect_contains(error(narrow), {"'epoch' is int64 of shape (), expected int32"});
  expect_contains(error(wrong_kind), {"missing: l1/W"});
  expect_contains(error(wrong_shape), {"is int64 of shape (), expected float32 of shape (2,)"});
  EXPECT_THROW(saved.load(folder / "none.npz"), IoError);
  EXPECT_THROW(saved.save(folder / "none/c.npz"), IoError);
}

// NumPy sees what was saved, and a number of another type is not taken for one.
TEST(Checkpoint, NumbersHaveTheirDtype) {
  struct Place {
    int64_t epoch;
    double share;
  };
  const TempFolder folder;
  const std::string path = folder / "c.npz";
  double rate = 3;
  bool done = true;
  uint8_t level = 7;
  std::vector<int32_t> order{3, 1};
  Place place{2, 0.5};
  Checkpoint checkpoint;
  checkpoint.add("rate", rate);
  checkpoint.add("done", done);
  checkpoint.add("level", level);
  checkpoint.add("order", order);
  checkpoint.add("place", place);
  checkpoint.save(path);
  auto saved = load_npz(path);
  EXPECT_EQ(saved.at("rate").dtype(), Dtype::kFloat64);
  EXPECT_EQ(saved.at("rate").shape(), Shape{});
  EXPECT_EQ(saved.at("done").dtype(), Dtype::kBool);
  EXPECT_EQ(saved.at("level").shape(), Shape{});
  EXPECT_EQ(saved.at("order").to_vector<int32_t>(), order);
  EXPECT_EQ(saved.at("place").dtype(), Dtype::kUInt8);
  rate = 0, done = false, level = 0, order = {}, place = {};
  checkpoint.load(path);
  EXPECT_EQ(rate, 3);
  EXPECT_TRUE(done);
  EXPECT_EQ(level, 7);
  EXPECT_EQ(order, (std::vector<int32_t>{3, 1}));
  EXPECT_EQ(place.share, 0.5);

  int64_t count = 5;
  Checkpoint other;
  other.add("rate", count);
  save_npz(path, {{"rate", saved.at("rate")}});
  expect_contains(error_of<IoError>([&] { other.load(path); }),
                  {"c.npz, ", "entry 'rate' is float64 of shape (), expected int64"});
  EXPECT_EQ(count, 5);
}

// Files of before numbers had a dtype hold their bytes.
TEST(Checkpoint, ReadsNumbersSavedAsBytes) {
  const TempFolder folder;
  const int64_t epoch = 12;
  const int32_t order[2] = {4, 5};
  const auto bytes = [](const void* data, int64_t size) {
    return array_from_bytes(data, {size}, Dtype::kUInt8, cpu(0));
  };
  save_npz(folder / "c.npz", {{"epoch", bytes(&epoch, 8)}, {"order", bytes(order, 8)}});
  int64_t loaded = 0;
  std::vector<int32_t> values;
  Checkpoint checkpoint, narrow;
  checkpoint.add("epoch", loaded);
  checkpoint.add("order", values);
  checkpoint.load(folder / "c.npz");
  EXPECT_EQ(loaded, 12);
  EXPECT_EQ(values, (std::vector<int32_t>{4, 5}));
  int32_t half = 0;
  narrow.add("epoch", half);
  narrow.add("order", values);
  expect_contains(error_of<IoError>([&] { narrow.load(folder / "c.npz"); }),
                  {"'epoch' has 8 bytes, expected 4"});
}

TEST(Checkpoint, HoldsPersistentArrays) {
  struct Norm : Parameterized {
    OwnedParameter gamma{ones({3})};
    OwnedPersistent mean{zeros({3}), OverRanks::kMean}, count{zeros({}, dtype::int64)};
    CATENA_PARAMETERS(gamma, mean, count)
  };
  struct Net : FunctionSet {
    Norm bn1;
    CATENA_FUNCTIONS(bn1)
  };
  const TempFolder folder;
  const std::string file = folder / "run.npz";
  Net net, resumed;
  Checkpoint writer, reader;
  writer.add("model", net);
  reader.add("model", resumed);
  net.bn1.mean.data().fill(0.5);
  net.bn1.count.data().fill(12);
  writer.save(file);
  EXPECT_EQ(load_npz(file).count("model/bn1/mean"), 1u);
  resumed.to(cpu(1));
  reader.load(file);
  EXPECT_EQ(resumed.bn1.mean.data().to_vector<double>(), std::vector<double>(3, 0.5));
  EXPECT_EQ(resumed.bn1.count.data().item<int64_t>(), 12);
  EXPECT_EQ(resumed.device(), cpu(1));

  save_npz(file, {{"model/bn1/gamma", zeros({3})}});
  expect_contains(error_of<IoError>([&] { reader.load(file); }),
                  {"run.npz, model: ", "missing: bn1/mean (3,)", "missing: bn1/count ()"});
  EXPECT_EQ(resumed.bn1.gamma.data().to_vector<double>(), std::vector<double>(3, 1));
}

}  // namespace
}  // namespace catena::serializers
