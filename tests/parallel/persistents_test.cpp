// Persistent arrays over ranks: rank 0's at setup, compared, averaged, or each rank's own.
#include "catena/parallel/persistents.h"

#include <cmath>
#include <functional>

#include "catena/functions/normalization.h"
#include "catena/parallel/data_parallel.h"
#include "error_text.h"
#include "parallel/network.h"
#include "rank_results.h"
#include "set_up.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // the network

// Each array holds the number that it was made with.
struct Norm : Parameterized {
  explicit Norm(double number)
      : gamma(full({2}, number)),
        mean(full({3}, number, dtype::float32), OverRanks::kMean),
        var(full({3}, number, dtype::float64), OverRanks::kMean),
        half(full({2}, number, dtype::float16), OverRanks::kMean),
        none(zeros({0}), OverRanks::kMean),
        count(full({}, number, dtype::int64)),
        mask(full({2}, number != 0, dtype::bool_)),
        seen(full({2}, number, dtype::int32), OverRanks::kPerRank) {}
  OwnedParameter gamma;
  OwnedPersistent mean, var, half, none, count, mask, seen;
  CATENA_PARAMETERS(gamma, mean, var, half, none, count, mask, seen)
};
struct Model : FunctionSet {
  Norm bn1;
  explicit Model(double number) : bn1(number) {}
  CATENA_FUNCTIONS(bn1)
};

Values persistents_of(const Parameterized& model) {
  Values result;
  for (const Persistent& p : model.persistents()) result.push_back(p.data().to_vector<double>());
  return result;
}

void set_all(const Model& model, double number) {
  for (const Persistent& p : model.persistents()) p.data().fill(number);
}

void update(MultiNodeOptimizer& optimizer, const Model& model) {
  optimizer.zero_grads();
  model.bn1.gamma.set_grad(zeros({2}));
  optimizer.update();
}

TEST(Persistents, SetupGivesAllRanksThoseOfRank0) {
  for (const int ranks : {2, 3}) {
    for (const bool set_up_first : {false, true}) {
      comm::run_threads(ranks, [&](Communicator& comm) {
        Model model(comm.rank() + 5);
        model.to(comm.device());
        optimizers::SGD sgd(0.1);
        if (set_up_first) sgd.setup(model);
        auto optimizer = create_multi_node_optimizer(sgd, comm);
        if (!set_up_first) optimizer.setup(model);
        EXPECT_EQ(persistents_of(model), persistents_of(Model(5)));
        EXPECT_EQ(model.device(), comm.device());
      });
    }
  }
}

TEST(Persistents, AveragesWhatIsDeclaredSo) {
  for (const int ranks : {1, 2, 3}) {
    comm::run_threads(ranks, [&](Communicator& comm) {
      Model model(0);
      auto optimizer = set_up(model, optimizers::SGD(0.1), comm);
      const int r = comm.rank();
      const double mean = (ranks - 1) / 2.0;
      set_all(model, r);
      const auto expect_means = [&] {
        EXPECT_EQ(model.bn1.mean.data().to_vector<double>(), std::vector<double>(3, mean));
        EXPECT_EQ(model.bn1.var.data().to_vector<double>(), std::vector<double>(3, mean));
        EXPECT_EQ(model.bn1.half.data().to_vector<double>(), std::vector<double>(2, mean));
        EXPECT_EQ(model.bn1.count.data().item<int64_t>(), r) << "left alone";
        EXPECT_EQ(model.bn1.seen.data().to_vector<double>(), std::vector<double>(2, r));
      };
      optimizer.average_persistents();
      expect_means();
      set_all(model, r);
      average_persistents(model, comm);
      expect_means();
      set_all(model, r);
      average_persistents(model, &comm);
      expect_means();
      average_persistents(model, nullptr);  // one process
      expect_means();
      broadcast_persistents(model, comm, ranks - 1);
      EXPECT_EQ(model.bn1.seen.data().to_vector<double>(), std::vector<double>(2, ranks - 1));
    });
  }
}

TEST(Persistents, RanksCountByTheirSamples) {
  for (const int ranks : {2, 3, 4}) {
    comm::run_threads(ranks, [&](Communicator& comm) {
      Model model(0);
      model.to(comm.device());
      set_all(model, comm.rank() + 1);
      // Rank 0 has none, and what its array holds is no number.
      if (comm.rank() == 0) model.bn1.var.data().fill(std::nan(""));
      const std::vector<Persistent> counted{Persistent(model.bn1.mean), Persistent(model.bn1.var)};
      for (const Persistent& p : counted) p.count_samples(comm.rank() * 2);
      double sum = 0, all = 0;
      for (int r = 1; r < ranks; ++r) {
        sum += 2 * r * (r + 1);
        all += 2 * r;
      }
      average_persistents(model, comm);
      for (const Persistent& p : counted) {
        for (const double x : p.data().to_vector<double>()) EXPECT_NEAR(x, sum / all, 1e-6);
        EXPECT_EQ(p.samples(), 0);
      }
      EXPECT_EQ(model.bn1.half.data().to_vector<double>()[0], (ranks + 1) / 2.0) << "not counted";
    });
  }
}

// A rank that had no samples since the start keeps the zeros of its running averages.
TEST(Persistents, ARankWithoutSamplesDilutesNoBatchNormalization) {
  std::vector<Values> seen(2);
  const Array x = wave({8, 3}, 1, dtype::float32, 5);
  F::BatchNormalization alone(3);
  alone(x, true);
  comm::run_threads(2, [&](Communicator& comm) {
    F::BatchNormalization bn(3);
    bn.to(comm.device());
    if (comm.rank() == 1) bn(x.to(comm.device()), true);
    average_persistents(bn, comm);
    seen[size_t(comm.rank())] = persistents_of(bn);
  });
  for (const Values& values : seen) {
    EXPECT_EQ(values[0], alone.avg_mean.data().to_vector<double>());
    EXPECT_EQ(values[1], alone.avg_var.data().to_vector<double>());
  }
}

// What each of three ranks is told by the update after `spoil`.
std::vector<std::string> told(const std::function<void(Model&, int rank)>& spoil) {
  return errors_of_ranks(AfterError::kGoOn, 3, [&](Communicator& comm) {
    Model model(0);
    auto optimizer = set_up(model, optimizers::SGD(0.1), comm);
    spoil(model, comm.rank());
    update(optimizer, model);
  });
}

TEST(Persistents, EqualOnesAreComparedWithTheParameters) {
  const auto count = told([](Model& model, int rank) {
    if (rank == 1) model.bn1.count.data().fill(1);
  });
  for (const std::string& text : count) {
    expect_contains(text, {"update: the ranks do not hold the same state: persistent array "
                           "'/bn1/count' on rank 1 differs from that on rank 0. All",
                           "declared OverRanks::kMean or kPerRank"});
  }
  const auto mask = told([](Model& model, int rank) {
    if (rank > 0) model.bn1.mask.data()(1).fill(true);
  });
  expect_contains(mask[2],
                  {"persistent array '/bn1/mask' on ranks 1, 2 differ from that on rank 0"});
  const auto others = told([](Model& model, int rank) {
    for (const Persistent& p : model.persistents())
      if (p.over_ranks() != OverRanks::kEqual) p.data().fill(rank);
  });
  EXPECT_EQ(others, std::vector<std::string>(3, "no error"));
}

TEST(Persistents, DifferentOnesAreNamedBySetup) {
  struct Other : Parameterized {
    OwnedParameter W{ones({2})};
    OwnedPersistent state;
    Other(const Array& a, OverRanks over_ranks) : state(a, over_ranks) {}
    CATENA_PARAMETERS(W, state)
  };
  const auto expect_named = [](const Array& a, OverRanks over_ranks, const char* what) {
    comm::run_threads(3, [&](Communicator& comm) {
      const bool odd = comm.rank() == 2;
      Other model(odd ? a : zeros({3}), odd ? over_ranks : OverRanks::kEqual);
      model.to(comm.device());
      auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm);
      expect_contains(error_of<ValueError>([&] { optimizer.setup(model); }),
                      {"/state is (3,) float64 (equal over ranks) on ranks 0, 1, ", what});
    });
  };
  expect_named(zeros({4}), OverRanks::kEqual, "(4,) float64 (equal over ranks) on rank 2");
  expect_named(zeros({3}, dtype::float32), OverRanks::kEqual,
               "(3,) float32 (equal over ranks) on rank 2");
  expect_named(zeros({3}), OverRanks::kMean, "(3,) float64 (mean over ranks) on rank 2");
}

TEST(Persistents, MustBeOnTheRanksDevice) {
  comm::run_threads(2, [](Communicator& comm) {
    Model model(0);
    model.to(comm.device());
    model.bn1.mean.to(cpu(9));
    const char* const what = "/mean' is on cpu:9, this rank's communicator on cpu:";
    expect_contains(error_of<DeviceError>([&] { average_persistents(model, comm); }), {what});
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm);
    expect_contains(error_of<DeviceError>([&] { optimizer.setup(model); }), {what});
  });
}

TEST(Persistents, BroadcastStateSendsThem) {
  comm::run_threads(3, [](Communicator& comm) {
    Model model(1);
    auto optimizer = set_up(model, optimizers::Adam(0.1), comm);
    if (comm.rank() == 0) set_all(model, 7);
    optimizer.broadcast_state();
    EXPECT_EQ(model.bn1.count.data().item<int64_t>(), 7);
    EXPECT_EQ(model.bn1.mean.data().to_vector<double>(), std::vector<double>(3, 7));
    EXPECT_EQ(model.bn1.seen.data().to_vector<double>(), std::vector<double>(2, 7));
  });
}

TEST(Persistents, OfReplicasInOneProcess) {
  Model model(1);
  Replicas<Model> replicas(model, {cpu(0), cpu(1), cpu(2)});
  optimizers::SGD optimizer(0.1);
  optimizer.setup(model);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(persistents_of(replicas[i]), persistents_of(Model(1)));
    EXPECT_EQ(replicas[i].device(), cpu(int(i)));
    set_all(replicas[i], double(i));
  }
  replicas.copy_from(optimizer);
  EXPECT_EQ(replicas[2].bn1.mean.data().to_vector<double>(), std::vector<double>(3, 2));
  replicas.average_persistents();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(replicas[i].bn1.mean.data().to_vector<double>(), std::vector<double>(3, 1));
    EXPECT_EQ(replicas[i].bn1.var.data().to_vector<double>(), std::vector<double>(3, 1));
    EXPECT_EQ(replicas[i].bn1.count.data().item<int64_t>(), int64_t(i));
    EXPECT_EQ(replicas[i].device(), cpu(int(i)));
  }
  // Those that have seen samples count, once, and sums are not rounded to float16.
  for (size_t i = 0; i < 3; ++i) {
    replicas[i].bn1.mean.data().fill(i == 0 ? std::nan("") : 5);
    replicas[i].bn1.mean.count_samples(i == 0 ? 0 : 1);
    replicas[i].bn1.half.data().fill(i == 0 ? 4096 : 4);
    replicas[i].bn1.half.count_samples(i == 0 ? 2 : 1);
  }
  replicas.average_persistents();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(replicas[i].bn1.mean.data().to_vector<double>(), std::vector<double>(3, 5));
    EXPECT_EQ(replicas[i].bn1.half.data().to_vector<double>(), std::vector<double>(2, 2050));
    EXPECT_EQ(replicas[i].bn1.half.samples(), 0);
  }
}

}  // namespace
}  // namespace catena::parallel
