// Arrays of layers that are not trained: names, moves, copies, and who does not see them.
#include "catena/autograd/persistent.h"

#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/autograd/function_set.h"
#include "catena/optimizers/sgd.h"
#include "catena/testing.h"
#include "error_text.h"

namespace catena {
namespace {

using Names = std::vector<std::string>;
using Values = std::vector<double>;

Values values(const Persistent& p) { return p.data().to_vector<double>(); }

// As a layer of batch normalization: counts in integers, means over ranks.
struct Norm : Parameterized {
  OwnedParameter gamma{ones({3}, dtype::float32)};
  OwnedPersistent running_mean{zeros({3}, dtype::float32), OverRanks::kMean};
  OwnedPersistent count_{zeros({}, dtype::int64)};
  CATENA_PARAMETERS(gamma, running_mean, count_)
};
// A sampler: nothing but a table.
struct Sampler : Parameterized {
  OwnedPersistent table{full({4}, 2, dtype::uint8), OverRanks::kPerRank};
  CATENA_PARAMETERS(table)
};
struct Block : FunctionSet {
  Norm second, first;
  CATENA_FUNCTIONS(second, first)
};
struct Net : FunctionSet {
  Norm bn;
  Sampler a_sampler;
  Block block;
  std::vector<Norm> list{Norm(), Norm()};
  std::vector<OwnedPersistent> tables{OwnedPersistent(ones({2}))};
  FunctionBag bag;
  CATENA_FUNCTIONS(bn, a_sampler, block, list, tables, bag)
};
// Lists its functions by hand and says nothing of persistent arrays.
struct ByHand : Parameterized {
  Norm inner;
  void visit_parameters(const Visitor& v, const std::string& prefix) override {
    inner.visit_parameters(v, prefix + "inner/");
  }
  void visit_functions(const FunctionVisitor& v) override { v("inner", inner); }
};

TEST(Persistent, HoldsAnyDtype) {
  for (const Dtype dtype : {dtype::bool_, dtype::int8, dtype::int64, dtype::uint16, dtype::float16,
                            dtype::bfloat16, dtype::float64}) {
    const Persistent p(ones({2, 3}, dtype));
    EXPECT_EQ(p.dtype(), dtype);
    EXPECT_EQ(p.shape(), (Shape{2, 3}));
    EXPECT_EQ(p.size(), 6);
    EXPECT_EQ(p.device(), cpu(0));
    EXPECT_EQ(p.over_ranks(), OverRanks::kEqual);
    p.to(cpu(1));
    EXPECT_EQ(p.device(), cpu(1));
    EXPECT_EQ(values(p), Values(6, 1));
  }
  const Array matrix = arange(6).reshape({2, 3});
  EXPECT_TRUE(Persistent(matrix.T()).data().is_contiguous());
  EXPECT_EQ(Persistent(matrix).data().raw_data(), matrix.raw_data()) << "taken without a copy";
  EXPECT_STREQ(name(OverRanks::kMean), "mean");
  EXPECT_STREQ(name(OverRanks::kEqual), "equal");
  EXPECT_STREQ(name(OverRanks::kPerRank), "per rank");
}

TEST(Persistent, HandlesShareTheArray) {
  const Persistent p(zeros({2}));
  const Persistent same = p;
  EXPECT_TRUE(same == p);
  same.data().fill(3);
  EXPECT_EQ(values(p), (Values{3, 3}));
  same.to(cpu(2));
  EXPECT_EQ(p.device(), cpu(2));
  p.copy_from(array({4.0, 5.0}, cpu(1)));
  EXPECT_EQ(values(same), (Values{4, 5}));
  EXPECT_EQ(same.device(), cpu(2)) << "the array stays";
  const Persistent other = p.clone();
  EXPECT_FALSE(other == p);
  EXPECT_EQ(other.device(), cpu(2));
  other.data().fill(0);
  EXPECT_EQ(values(p), (Values{4, 5}));
}

TEST(Persistent, RefusesMisuse) {
  expect_contains(error_of<ValueError>([] { Persistent{Array()}; }), {"Persistent", "undefined"});
  expect_contains(
      error_of<DtypeError>([] { Persistent(zeros({2}, dtype::int32), OverRanks::kMean); }),
      {"Persistent: a mean over ranks", "floating dtype", "int32"});
  Norm norm;
  expect_contains(error_of<ShapeError>([&] { norm.running_mean.copy_from(zeros({4})); }),
                  {"Persistent::copy_from: the array (no model has listed it yet) is float32 of "
                   "shape (3,), got float64 of shape (4,)"});
  norm.persistents();
  expect_contains(error_of<DtypeError>([&] { norm.running_mean.copy_from(zeros({3})); }),
                  {"Persistent::copy_from: 'running_mean' is float32", "got float64"});
  EXPECT_THROW(norm.running_mean.copy_from(Array()), ValueError);
}

TEST(Persistent, UndefinedOnesNameTheCall) {
  const Persistent p;
  EXPECT_FALSE(p.defined());
  EXPECT_TRUE(p == Persistent());
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"Persistent::data", [&] { p.data(); }},
      {"Persistent::dtype", [&] { p.dtype(); }},
      {"Persistent::shape", [&] { p.shape(); }},
      {"Persistent::size", [&] { p.size(); }},
      {"Persistent::device", [&] { p.device(); }},
      {"Persistent::over_ranks", [&] { p.over_ranks(); }},
      {"Persistent::path", [&] { p.path(); }},
      {"Persistent::copy_from", [&] { p.copy_from(ones({1})); }},
      {"Persistent::to", [&] { p.to(cpu(1)); }},
      {"Persistent::clone", [&] { p.clone(); }},
      {"Persistent::note_path", [&] { p.note_path("x"); }}};
  for (const auto& [name, call] : calls) {
    EXPECT_TRUE(error_of<ValueError>(call).starts_with(
        std::string(name) + ": this persistent array is undefined; was its layer moved from?"));
  }
}

TEST(Persistents, AreNamedInAscendingOrder) {
  Net net;
  net.bag.add("n", Norm());
  EXPECT_EQ(net.persistent_names(),
            (Names{"a_sampler/table", "bag/n/running_mean", "bag/n/count",
                   "block/first/running_mean", "block/first/count", "block/second/running_mean",
                   "block/second/count", "bn/running_mean", "bn/count", "list/0/running_mean",
                   "list/0/count", "list/1/running_mean", "list/1/count", "tables/0"}));
  const Persistents all = net.persistents();
  ASSERT_EQ(all.size(), 14u);
  EXPECT_TRUE(all[0] == net.a_sampler.table);
  EXPECT_TRUE(all[8] == net.bn.count_);
  EXPECT_TRUE(all[13] == net.tables[0]);
  EXPECT_EQ(net.named_persistents()[0].first, "bn/running_mean") << "in order of declaration";
  EXPECT_EQ(net.bn.running_mean.path(), "bn/running_mean");
  EXPECT_EQ(net.bn.persistents().size(), 2u);
  EXPECT_EQ(net.bn.running_mean.path(), "bn/running_mean") << "a part does not replace it";

  EXPECT_EQ(ByHand().persistent_names(), (Names{"inner/running_mean", "inner/count"}));
  Norm norm;
  const Norm moved = std::move(norm);
  EXPECT_TRUE(norm.persistents().empty()) << "undefined ones are left out";
}

TEST(Persistents, AreNotParameters) {
  Net net;
  EXPECT_EQ(net.parameter_names(), (Names{"block/first/gamma", "block/second/gamma", "bn/gamma",
                                          "list/0/gamma", "list/1/gamma"}));
  EXPECT_EQ(net.gradients().size(), 5u);
  EXPECT_EQ(net.parameter_count(), 15);
  net.bn.running_mean.data().fill(7);
  const Array before = net.bn.running_mean.data();
  optimizers::SGD optimizer(0.1);
  optimizer.setup(net);
  for (const Parameter& p : net.parameters()) p.set_grad(ones({3}, dtype::float32));
  optimizer.update();
  net.zero_grads();
  EXPECT_EQ(optimizer.parameters().size(), 5u);
  EXPECT_EQ(optimizer.layout().arenas().size(), 1u);
  EXPECT_EQ(optimizer.persistents().size(), 12u);
  EXPECT_EQ(optimizer.persistents()[0].first, "/bn/running_mean");
  EXPECT_EQ(net.bn.running_mean.data().raw_data(), before.raw_data()) << "not in an arena";
  EXPECT_EQ(values(net.bn.running_mean), Values(3, 7));
  for (const auto& [name, array] : optimizer.state()) EXPECT_EQ(name.find("running"), name.npos);
  optimizer.setup(net.parameters());
  EXPECT_TRUE(optimizer.persistents().empty());
  EXPECT_EQ(net["bn"].persistents().size(), 2u);
  Sampler sampler;
  EXPECT_THROW(optimizer.setup(sampler), ValueError) << "nothing to train";
}

TEST(Persistents, MoveWithTheModel) {
  for (const Device device : testing::devices()) {
    Net net;
    net.bag.add("n", Norm());
    net.to(device);
    EXPECT_EQ(net.device(), device);
    for (const Persistent& p : net.persistents()) EXPECT_EQ(p.device(), device) << p.path();
    net.to_cpu();
    for (const Persistent& p : net.persistents())
      EXPECT_EQ(p.device(), device.is_cpu() ? device : cpu(0));
    net.to_cpu(3);
    for (const Persistent& p : net.persistents()) EXPECT_EQ(p.device(), cpu(3));
  }
  Sampler sampler;
  sampler.to(cpu(1));
  EXPECT_EQ(sampler.device(), cpu(1)) << "without parameters";
  Norm norm;
  norm.running_mean.to(cpu(1));
  expect_contains(error_of<DeviceError>([&] { norm.device(); }),
                  {"'gamma' on cpu:0, 'running_mean' on cpu:1"});
}

TEST(Persistents, AreCopiedMovedAndAssignedAsParametersAre) {
  Net net;
  net.bag.add("n", Norm());
  net.bn.running_mean.data().fill(5);
  Net copy = net;
  EXPECT_FALSE(copy.bn.running_mean == net.bn.running_mean);
  EXPECT_FALSE(copy.bag.get<Norm>("n").count_ == net.bag.get<Norm>("n").count_);
  EXPECT_EQ(values(copy.bn.running_mean), Values(3, 5));
  EXPECT_EQ(copy.bn.running_mean.over_ranks(), OverRanks::kMean);
  copy.bn.running_mean.data().fill(6);
  EXPECT_EQ(values(net.bn.running_mean), Values(3, 5));

  const Persistent kept = copy.bn.running_mean;
  Net moved = std::move(copy);
  EXPECT_TRUE(moved.bn.running_mean == kept);
  EXPECT_FALSE(copy.bn.running_mean.defined());
  EXPECT_THROW(copy.bn.running_mean.data(), ValueError);

  Net target;
  target.bag.add("n", Norm());
  target.to(cpu(1));
  const Persistent seat = target.bn.running_mean, inside = target.bag.get<Norm>("n").count_;
  moved.bag.get<Norm>("n").count_.data().fill(9);
  target = moved;
  EXPECT_TRUE(target.bn.running_mean == seat) << "written into";
  EXPECT_EQ(values(seat), Values(3, 6));
  EXPECT_EQ(values(inside), Values(1, 9));
  EXPECT_EQ(seat.device(), cpu(1));
  copy = moved;  // what was moved from gets new ones
  EXPECT_EQ(values(copy.bn.running_mean), Values(3, 6));
  EXPECT_FALSE(copy.bn.running_mean == moved.bn.running_mean);
}

TEST(Persistents, CopyParametersFromAModelTakesThem) {
  Net net, other;
  other.bn.gamma.data().fill(2);
  other.bn.running_mean.data().fill(5);
  other.bn.count_.data().fill(8);
  net.to(cpu(1));
  net.copy_parameters_from(other.parameters());
  EXPECT_EQ(values(net.bn.running_mean), Values(3, 0)) << "a list has parameters alone";
  net.copy_parameters_from(other);
  EXPECT_EQ(values(net.bn.running_mean), Values(3, 5));
  EXPECT_EQ(values(net.bn.count_), Values(1, 8));
  EXPECT_EQ(net.device(), cpu(1));

  struct One : Parameterized {
    OwnedParameter gamma{ones({3}, dtype::float32)};
    OwnedPersistent running_mean, count;
    One(const Array& mean, const Array& count) : running_mean(mean), count(count) {}
    CATENA_PARAMETERS(gamma, running_mean, count)
  };
  net.bn.gamma.data().fill(1);
  const auto error = [&]<class E>(E*, const Array& mean, const Array& count) {
    return error_of<E>([&] { net.bn.copy_parameters_from(One(mean, count)); });
  };
  const Array mean = zeros({3}, dtype::float32), count = zeros({}, dtype::int64);
  expect_contains(error(static_cast<ShapeError*>(nullptr), zeros({4}, dtype::float32), count),
                  {"copy_parameters_from: 'running_mean' has shape (3,)", "(4,)"});
  expect_contains(error(static_cast<DtypeError*>(nullptr), mean, zeros({}, dtype::int32)),
                  {"copy_parameters_from: 'count' holds int64", "int32"});
  expect_contains(error_of<ValueError>([&] { net.copy_parameters_from(net.bn); }),
                  {"has 12 persistent arrays, the source 2"});
  EXPECT_EQ(net.bn.gamma.data().to_vector<double>(), Values(3, 1)) << "nothing was written";
}

}  // namespace
}  // namespace catena
