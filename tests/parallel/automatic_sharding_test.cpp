// Sharding::kAuto: which optimizers spread their states without being told, over ranks of threads
// whose communicator says that it moves large blocks by copies.
#include <gtest/gtest.h>

#include <map>

#include "catena/optimizers/lamb.h"
#include "catena/optimizers/loss_scale.h"
#include "catena/optimizers/moving_average.h"
#include "comm/loose.h"
#include "deterministic_scope.h"
#include "error_text.h"
#include "parallel/network.h"
#include "set_up.h"

namespace catena::parallel {
namespace {

// Arrays of the host go over the ranks' threads.
class CopyingTransport final : public comm_suite::LooseTransport {
 public:
  CopyingTransport(CommunicatorPtr control, size_t least)
      : LooseTransport(std::move(control)), least_(least) {}
  bool moves(DeviceType) const override { return false; }
  bool moves_by_copies(size_t bytes) const override { return bytes >= least_; }

 private:
  size_t least_;
};

constexpr int64_t kKiB = 1 << 10;
constexpr size_t kLeastCopy = 16 * kKiB;

void over_copies(const std::function<void(Communicator&)>& body, int ranks = 2) {
  comm::run_threads(ranks, [&](Communicator& control) {
    const CommunicatorPtr comm = comm::make_communicator(
        std::make_unique<CopyingTransport>(control.shared_from_this(), kLeastCopy),
        control.device(), {});
    body(*comm);
    comm->close();
  });
}

// So many KiB of float32 weights, and a few more.
struct Wide : FunctionSet {
  catena::functions::Linear l1, l2;
  Wide(Communicator& comm, int64_t kib)
      : l1(64, 16, {.nobias = true}), l2(kColumns, rows(kib), {.nobias = true}) {
    to(comm.device());
  }
  CATENA_FUNCTIONS(l1, l2)

  static constexpr int64_t kColumns = 8;
  static int64_t rows(int64_t kib) { return kib * kKiB / 4 / kColumns; }
};

constexpr int64_t kLarge = 128;  // KiB, eight blocks that copies move

// The same with several arenas.
BucketOptions in_buckets(Sharding sharding = Sharding::kAuto) {
  return {kKiB, 20 * kKiB, kKiB, sharding};
}

// Gradients that differ between the ranks, without a pass.
void step(Wide& net, MultiNodeOptimizer& optimizer) {
  optimizer.zero_grads();
  for (const Parameter& p : net.parameters())
    p.set_grad(full(p.shape(), optimizer.comm().rank() + 1.0, {p.dtype(), p.device()}));
  optimizer.update();
}

struct WideTraining {
  Wide net;
  MultiNodeOptimizer optimizer;
  WideTraining(Communicator& comm, std::unique_ptr<Optimizer> rule,
               const BucketOptions& options = {}, int64_t kib = kLarge)
      : net(comm, kib), optimizer(create_multi_node_optimizer(std::move(rule), comm, options)) {
    net.l1.W.data().fill(0.25);
    net.l2.W.data().fill(0.5);
    optimizer.setup(net);
  }
  void step() { parallel::step(net, optimizer); }
};

class PoolMemory final : public optimizers::ArenaMemory {
 public:
  Array allocate(optimizers::ArenaBlock, int64_t elements, Dtype dtype, Device device) override {
    return Array::uninitialized({elements}, dtype, device);
  }
};

// Whether the optimizer of a model so large is sharded by itself.
bool is_sharded(Communicator& comm, int64_t kib, std::unique_ptr<Optimizer> rule,
                const BucketOptions& options = {}) {
  Wide net(comm, kib);
  auto optimizer = create_multi_node_optimizer(std::move(rule), comm, options);
  EXPECT_EQ(optimizer.sharded(), nullptr) << "not chosen yet";
  optimizer.setup(net);
  EXPECT_EQ(optimizer.sharded() != nullptr, optimizer->is_sharded());
  return optimizer->is_sharded();
}

std::unique_ptr<Optimizer> sgd() { return std::make_unique<optimizers::SGD>(0.5); }

TEST(AutomaticSharding, IsForLargeModelsWhereCopiesMoveThem) {
  over_copies([](Communicator& comm) {
    EXPECT_TRUE(is_sharded(comm, kLarge, sgd()));
    EXPECT_FALSE(is_sharded(comm, kLarge / 4, sgd()));
    EXPECT_FALSE(is_sharded(comm, kLarge, sgd(), {.bucket_bytes = kLeastCopy / 2}));
    EXPECT_FALSE(is_sharded(comm, kLarge, sgd(), {.sharding = Sharding::kNone}));
  });
  over_copies([](Communicator& comm) { EXPECT_FALSE(is_sharded(comm, kLarge, sgd())); }, 1);
  comm::run_threads(2, [](Communicator& comm) { EXPECT_FALSE(is_sharded(comm, kLarge, sgd())); });
}

TEST(AutomaticSharding, IsNotForWhatNeedsWholeArrays) {
  const DeterministicScope for_slices;
  over_copies([](Communicator& comm) {
    EXPECT_FALSE(is_sharded(comm, kLarge, sgd(), {.slices = 2}));
    auto with_memory = sgd();
    with_memory->set_memory(std::make_shared<PoolMemory>());
    EXPECT_FALSE(is_sharded(comm, kLarge, std::move(with_memory)));
    Wide net(comm, kLarge);
    auto set_up = sgd();
    set_up->setup(net);
    const auto optimizer = create_multi_node_optimizer(std::move(set_up), comm);
    EXPECT_EQ(optimizer.sharded(), nullptr);
  });
}

TEST(AutomaticSharding, CountsWhatCopiesCanSum) {
  over_copies([](Communicator& comm) {
    catena::functions::LinearOptions options;
    options.initialW = zeros({Wide::rows(kLarge), Wide::kColumns}, dtype::float64);
    catena::functions::Linear layer(Wide::kColumns, Wide::rows(kLarge), options);
    auto optimizer = testing::set_up(layer, sgd(), comm);
    EXPECT_EQ(optimizer.sharded(), nullptr);
  });
}

TEST(AutomaticSharding, FollowsTheModelOfTheLastSetup) {
  over_copies([](Communicator& comm) {
    Wide small(comm, 1), large(comm, kLarge), again(comm, 1);
    auto optimizer = create_multi_node_optimizer(sgd(), comm);
    for (Wide* net : {&small, &large, &again}) {
      optimizer.setup(*net);
      EXPECT_EQ(optimizer->is_sharded(), net == &large);
      step(*net, optimizer);
      optimizer.check_state();
    }
  });
}

// A setup that is refused changes nothing of the steps that follow.
TEST(AutomaticSharding, OutlivesARefusedSetup) {
  over_copies([](Communicator& comm) {
    catena::functions::Linear without_the_group(4, 3);
    without_the_group.to(comm.device());
    Wide large(comm, kLarge);
    large.l2.W.data().fill(0.5);
    auto optimizer = create_multi_node_optimizer(sgd(), comm);
    optimizer->add_group("second", {"/l2/W"}, {});
    optimizer.setup(large);
    step(large, optimizer);
    EXPECT_THROW(optimizer.setup(without_the_group), ValueError);
    EXPECT_TRUE(optimizer->is_sharded());
    step(large, optimizer);
    optimizer.check_state();
    for (const int64_t row : {int64_t(0), Wide::rows(kLarge) - 1})  // 0.5 - 2 * 0.5 * the mean, 1.5
      EXPECT_EQ(large.l2.W.data()(row, 0).item<float>(), -1.0f) << row;
  });
}

// Gradients of other ranks' parts are no obstacle to the next setup.
TEST(AutomaticSharding, AModelMayBeSetUpAgainBetweenUpdateAndZeroGrads) {
  over_copies([](Communicator& comm) {
    Wide net(comm, kLarge);
    auto first = create_multi_node_optimizer(sgd(), comm);
    first.setup(net);
    step(net, first);
    first.setup(net);
    step(net, first);
    auto second = create_multi_node_optimizer(sgd(), comm);
    second.setup(net);
    step(net, second);
    second.check_state();
  });
}

using Results = std::map<std::string, std::vector<double>>;

Results trained(Communicator& comm, Sharding sharding, std::unique_ptr<Optimizer> rule) {
  WideTraining training(comm, std::move(rule), in_buckets(sharding));
  Optimizer& optimizer = training.optimizer.actual_optimizer();
  EXPECT_EQ(optimizer.is_sharded(), sharding == Sharding::kAuto);
  for (int i = 0; i < 2; ++i) training.step();
  EXPECT_EQ(training.optimizer.sharded() != nullptr, sharding == Sharding::kAuto);
  Results result;
  result["norm"] = {optimizer.compute_grads_norm()};
  result["l1"] = training.net.l1.W.data().to_vector<double>();
  result["l2"] = training.net.l2.W.data().to_vector<double>();
  for (const auto& [name, array] : optimizer.state()) result[name] = array.to_vector<double>();
  return result;
}

void expect_near(const Results& results, const Results& expected, const std::string& what) {
  for (const auto& [key, values] : expected) {
    ASSERT_EQ(results.count(key), 1u) << what << key;
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(results.at(key)[i], values[i], 1e-6 * (1 + std::abs(values[i]))) << what << key;
  }
}

std::unique_ptr<Optimizer> adam() { return catena::testing::make_rule("Adam"); }
std::unique_ptr<Optimizer> clipped() {
  auto rule = adam();
  rule->add_hook("clip", optimizers::gradient_clipping(0.1));
  return rule;
}
std::unique_ptr<Optimizer> scaled() {
  auto rule = adam();
  rule->add_stage(std::make_shared<optimizers::DynamicLossScale>());
  return rule;
}
std::unique_ptr<Optimizer> lamb() { return std::make_unique<optimizers::LAMB>(0.01); }

// What asks for sums over all gradients, and what reads values after each update.
TEST(AutomaticSharding, ServesNormsScalesAndAverages) {
  over_copies([&](Communicator& comm) {
    int number = 0;
    for (const auto make : {&clipped, &scaled, &lamb})
      expect_near(trained(comm, Sharding::kAuto, make()), trained(comm, Sharding::kNone, make()),
                  message("rule ", number++, ", "));
    WideTraining training(comm, sgd());
    const auto average = optimizers::add_moving_average(training.optimizer.actual_optimizer(), 0.5);
    training.step();
    EXPECT_EQ(average->of(training.net.l2.W)(-1, -1).item<float>(), 0.125f);  // of 0.5 and -0.25
  });
}

// Models that differ in size are named, whatever their ranks would choose.
TEST(AutomaticSharding, RanksWithDifferentModelsAreNamed) {
  std::vector<std::string> errors(2);
  try {
    over_copies([&](Communicator& comm) {
      Wide net(comm, comm.rank() == 0 ? kLarge : 1);
      auto optimizer = create_multi_node_optimizer(sgd(), comm);
      errors[size_t(comm.rank())] = error_of<ValueError>([&] { optimizer.setup(net); });
    });
  } catch (const Error&) {
  }
  for (const std::string& error : errors)
    expect_contains(error, {"setup", "different models", "/l2/W"});
}

// As programs do that save on rank 0.
TEST(AutomaticSharding, AStateThatOneRankAsksForIsNamed) {
  std::string error;
  try {
    over_copies([&](Communicator& comm) {
      WideTraining training(comm, adam());
      if (comm.rank() == 0) training.optimizer->state();
      training.step();
    });
  } catch (const Error& e) {
    error = e.what();
  }
  expect_contains(error, {"the states of optimizer 1", "all ranks gather in Optimizer::state"});
}

TEST(AutomaticSharding, SpreadStatesGoWithTheirMultiNodeOptimizer) {
  over_copies([](Communicator& comm) {
    Wide net(comm, kLarge);
    const auto rule = sgd();
    {
      auto optimizer = create_multi_node_optimizer(*rule, comm);
      optimizer.setup(net);
    }
    expect_contains(error_of<ValueError>([&] { create_multi_node_optimizer(*rule, comm); }),
                    {"create_multi_node_optimizer", "is gone", "make a new optimizer"});
  });
}

TEST(AutomaticSharding, ErrorsSayHowToKeepGradientsWhole) {
  over_copies([](Communicator& comm) {
    WideTraining training(comm, sgd());
    training.step();
    expect_contains(error_of<GradientError>([&] { training.net.l2.W.grad(); }),
                    {"/l2/W", "Sharding::kNone", "zero_grads()"});
  });
}

}  // namespace
}  // namespace catena::parallel
