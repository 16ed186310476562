// Models and optimizers through files.
#include "catena/serializers/npz.h"

#include <gtest/gtest.h>

#include <limits>

#include <filesystem>

#include "catena/array/io.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/momentum_sgd.h"
#include "error_text.h"
#include "optimizers/models.h"
#include "temp_folder.h"

namespace catena::serializers {
namespace {

using catena::testing::all_values;
using catena::testing::Model;
using catena::testing::set_gradients;

TEST(Npz, ModelsByName) {
  const TempFolder folder;
  Model model;
  model.l1.W.data().fill(3);
  save(folder / "model.npz", model);
  const auto arrays = load_npz(folder / "model.npz");
  EXPECT_EQ(arrays.size(), 4u);
  EXPECT_EQ(arrays.at("l1/W").shape(), (Shape{5, 3}));

  Model other(dtype::float64);
  other.to(cpu(1));
  load(folder / "model.npz", other);
  EXPECT_EQ(all_values(other.parameters()), all_values(model.parameters()));
  EXPECT_EQ(other.l1.W.dtype(), dtype::float64);
  EXPECT_EQ(other.device(), cpu(1));
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Npz, NamesEverythingThatDoesNotFit) {
  const TempFolder folder;
  Model model;
  const auto before = all_values(model.parameters());
  save_npz(folder / "bad.npz", {{"l1/W", zeros({5, 3})},
                                {"l1/b", zeros({4})},
                                {"l2/W", zeros({2, 5}, dtype::int32)},
                                {"l9/W", zeros({1})}});
  const std::string text = error_of<IoError>([&] { load(folder / "bad.npz", model); });
  expect_contains(text,
                  {"bad.npz", "missing: l2/b (2,)", "l1/b: expected (5,) float32, got (4,) float64",
                   "l2/W: expected (2, 5) float32, got (2, 5) int32", "unknown: l9/W (1,)"});
  EXPECT_EQ(all_values(model.parameters()), before);
  load(folder / "bad.npz", model, false);  // l1/W fits
  EXPECT_EQ(model.l1.W.data().to_vector<double>(), std::vector<double>(15, 0.0));
  EXPECT_EQ(model.l1.b.data().to_vector<double>(), before[1]);
  expect_contains(error_of<IoError>([&] { load(folder / "absent.npz", model); }), {"absent.npz"});
  expect_contains(error_of<IoError>([&] { save(folder / "no/such/folder.npz", model); }),
                  {"folder.npz"});
}

// 1e6 is infinite in float16: a model that loads it silently would compute nothing but NaN.
TEST(Npz, ValuesTooLargeForTheModelAreErrors) {
  const TempFolder folder;
  Model model, half(dtype::float16), brain(dtype::bfloat16);
  model.l1.W.data().fill(1);
  model.l1.W.data()(0, 0).fill(1e6);
  model.l1.W.data()(0, 1).fill(std::numeric_limits<float>::infinity());  // was infinite before
  save(folder / "model.npz", model);
  const auto before = all_values(half.parameters());
  expect_contains(error_of<IoError>([&] { load(folder / "model.npz", half); }),
                  {"l1/W: 1 finite values of float32 are infinite in float16", "bfloat16"});
  EXPECT_EQ(all_values(half.parameters()), before);
  load(folder / "model.npz", brain);
  EXPECT_NEAR(brain.l1.W.data()(0, 0).item<double>(), 1e6, 4e3);
}

TEST(Npz, FilesOfWhichNothingFitsAreNoModels) {
  const TempFolder folder;
  Model model;
  save_npz(folder / "other.npz", {{"conv/W", zeros({5, 3})}});
  expect_contains(error_of<IoError>([&] { load(folder / "other.npz", model, false); }),
                  {"has nothing that fits the model", "missing: l1/W", "unknown: conv/W"});
  save_npz(folder / "run.npz", {{"model/l1/W", model.l1.W.data()}, {"t", zeros({})}});
  for (const bool strict : {false, true})
    expect_contains(error_of<IoError>([&] { load(folder / "run.npz", model, strict); }),
                    {"has 'model/l1/W'", "serializers::Checkpoint"});
}

// Statistics and counts beside parameters, as of batch normalization.
struct Norm : Parameterized {
  OwnedParameter gamma{ones({3}, dtype::float32)};
  OwnedPersistent running_mean{zeros({3}, dtype::float32), OverRanks::kMean};
  OwnedPersistent count{zeros({}, dtype::int64)};
  CATENA_PARAMETERS(gamma, running_mean, count)
};
struct WithState : FunctionSet {
  Norm bn1;
  OwnedPersistent table{zeros({2}, dtype::bool_)};
  CATENA_FUNCTIONS(bn1, table)
};

TEST(Npz, PersistentArraysByName) {
  const TempFolder folder;
  const std::string file = folder / "model.npz";
  WithState model;
  model.bn1.running_mean.copy_from(array({1.5f, -2.0f, 0.25f}));
  model.bn1.count.data().fill(int64_t(1) << 60);
  model.table.data()(1).fill(true);
  model.eval();
  save(file, model);
  const auto arrays = load_npz(file);
  EXPECT_EQ(arrays.size(), 4u);
  EXPECT_EQ(arrays.at("bn1/running_mean").to_vector<float>(),
            (std::vector<float>{1.5f, -2, 0.25f}));
  EXPECT_EQ(arrays.at("bn1/count").dtype(), dtype::int64);

  WithState other;
  other.to(cpu(1));
  const Persistent seat = other.bn1.running_mean;
  load(file, other);
  EXPECT_TRUE(other.bn1.running_mean == seat);
  EXPECT_EQ(seat.device(), cpu(1));
  EXPECT_EQ(seat.data().to_vector<float>(), (std::vector<float>{1.5f, -2, 0.25f}));
  EXPECT_EQ(other.bn1.count.data().item<int64_t>(), int64_t(1) << 60);
  EXPECT_EQ(other.table.data().to_vector<double>(), (std::vector<double>{0, 1}));
  EXPECT_TRUE(other.training()) << "the state is not in the file";

  struct Sampler : Parameterized {
    OwnedPersistent table{ones({2}, dtype::uint8)};
    CATENA_PARAMETERS(table)
  } sampler, loaded;
  loaded.table.data().fill(7);
  save(folder / "sampler.npz", sampler);  // without parameters
  load(folder / "sampler.npz", loaded);
  EXPECT_EQ(loaded.table.data().to_vector<double>(), (std::vector<double>{1, 1}));

  struct Twice : Parameterized {
    OwnedParameter W{ones({2})};
    OwnedPersistent state{ones({2})};
    void visit_parameters(const Visitor& v, const std::string& prefix) override {
      v(prefix + "W", W);
    }
    void visit_persistents(const PersistentVisitor& v, const std::string& prefix) override {
      v(prefix + "W", state);
    }
  };
  expect_contains(error_of<ValueError>([&] { save(file, Twice()); }), {"the model has 'W' twice"});
}

TEST(Npz, TiedParametersAreSavedOnce) {
  struct Tied : Parameterized {
    OwnedParameter a{ones({2})}, b{ones({2})};
    CATENA_PARAMETERS(a, b)
    Tied() { b.tie_to(a); }
  } model;
  const Array two = full({2}, 2.0), three = full({2}, 3.0);
  ASSERT_EQ(to_arrays(model).size(), 1u);
  EXPECT_EQ(to_arrays(model)[0].first, "a");
  from_arrays({{"b", two}}, model, "f");
  EXPECT_EQ(model.a.data().to_vector<double>(), std::vector<double>(2, 2));
  from_arrays({{"a", three}, {"b", three}}, model, "f");
  EXPECT_EQ(model.a.data().to_vector<double>(), std::vector<double>(2, 3));
  expect_contains(error_of<IoError>([&] {
                    from_arrays({{"a", two}, {"b", three}}, model, "f");
                  }),
                  {"b: other values than 'a'", "ties"});
  expect_contains(error_of<IoError>([&] { from_arrays({}, model, "f"); }), {"missing: a "});
}

TEST(Npz, PersistentArraysThatDoNotFit) {
  const TempFolder folder;
  const std::string file = folder / "bad.npz";
  WithState model;
  model.bn1.running_mean.data().fill(4);
  const auto told = [&](const NamedArrays& arrays) {
    save_npz(file, arrays);
    return error_of<IoError>([&] { load(file, model); });
  };
  const std::string wrong = told({{"bn1/gamma", zeros({3})},
                                  {"bn1/running_mean", zeros({4})},
                                  {"bn1/count", zeros({}, dtype::int32)},
                                  {"bn1/running_var", zeros({3})}});
  expect_contains(wrong, {"bad.npz", "bn1/running_mean: expected (3,) float32, got (4,) float64",
                          "bn1/count: expected () int64, got () int32", "missing: table (2,)",
                          "unknown: bn1/running_var (3,)"});
  EXPECT_EQ(wrong.find("keeps the model's own"), wrong.npos);
  EXPECT_EQ(model.bn1.gamma.data().to_vector<double>(), std::vector<double>(3, 1)) << "unchanged";

  // A file of before the layer had them.
  const std::string older = told({{"bn1/gamma", zeros({3})}});
  expect_contains(older, {"missing: bn1/running_mean (3,)", "missing: bn1/count ()",
                          "missing: table (2,)", "strict = false keeps the model's own"});
  load(file, model, false);
  EXPECT_EQ(model.bn1.gamma.data().to_vector<double>(), std::vector<double>(3, 0));
  EXPECT_EQ(model.bn1.running_mean.data().to_vector<double>(), std::vector<double>(3, 4));

  // Floating dtypes are converted.
  save_npz(file, {{"bn1/gamma", zeros({3})},
                  {"bn1/running_mean", full({3}, 2.0, dtype::float64)},
                  {"bn1/count", ones({}, dtype::int64)},
                  {"table", ones({2}, dtype::bool_)}});
  load(file, model);
  EXPECT_EQ(model.bn1.running_mean.data().to_vector<double>(), std::vector<double>(3, 2));
  EXPECT_EQ(model.bn1.running_mean.dtype(), dtype::float32);
}

TEST(Npz, OptimizersContinueBitForBit) {
  const TempFolder folder;
  const auto train = [](Optimizer& optimizer, Model& model, int64_t from, int64_t to) {
    for (int64_t t = from; t <= to; ++t) {
      set_gradients(model.parameters(), t);
      optimizer.update();
    }
  };
  Model whole, first, second;
  optimizers::Adam once(0.01), a(0.01), b(0.5);
  once.setup(whole);
  a.setup(first);
  train(once, whole, 1, 8);
  train(a, first, 1, 3);
  save(folder / "model.npz", first);
  save(folder / "optimizer.npz", a);
  load(folder / "model.npz", second);
  b.setup(second);
  load(folder / "optimizer.npz", b);
  EXPECT_EQ(b.t(), 3);
  train(b, second, 4, 8);
  EXPECT_EQ(all_values(second.parameters()), all_values(whole.parameters()));

  optimizers::Adam without;
  const std::string file = folder / "optimizer.npz";
  expect_contains(error_of<ValueError>([&] { load(file, without); }),
                  {"load '", file.c_str(), "no parameters yet", "call its setup(model) first"});
  expect_contains(error_of<ValueError>([&] { save(folder / "new.npz", without); }),
                  {"save '", "new.npz'", "call its setup(model) first"});
  EXPECT_FALSE(std::filesystem::exists(folder / "new.npz"));
  expect_contains(error_of<ValueError>([&] { without.load_state({}); }),
                  {"Optimizer::load_state: ", "call setup(model) first"});
  optimizers::MomentumSGD other;
  other.setup(first);
  const std::string text = error_of<IoError>([&] { load(folder / "optimizer.npz", other); });
  expect_contains(text, {"missing: momentum", "unknown: m/l1/W"});
}

}  // namespace
}  // namespace catena::serializers
