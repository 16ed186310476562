// Loss scales, 16-bit parameters and sharded updates on the ranks of a communicator.
#include "catena/optimizers/update_stage.h"

#include "catena/functions/array.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/loss_scale.h"
#include "parallel/network.h"
#include "rank_results.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // the network
using optimizers::AdamW;

const BucketOptions kManyBuckets{128, 256, 128};
constexpr int64_t kSamples = 12;

// The loss in float32, whatever the network computes in.
Variable wide_loss(Net& net, const Batch& batch) {
  const Variable y = net(Variable::constant(batch.x));
  return F::softmax_cross_entropy(F::cast(y, dtype::float32), batch.t);
}

Batch mine(int step, Dtype dtype, Communicator& comm) {
  const auto [begin, end] = shard(kSamples, comm.rank(), comm.size());
  return part(batch_of(step, kSamples, dtype), begin, end, comm.device());
}

// Everything that an optimizer holds, by name.
std::map<std::string, std::vector<double>> values_of_state(Optimizer& optimizer) {
  std::map<std::string, std::vector<double>> result;
  for (const auto& [name, array] : optimizer.state()) result[name] = array.to_vector<double>();
  return result;
}

// Counts the arenas for whose gradients alone the rule waits.
class Waits : public optimizers::UpdateStage {
 public:
  optimizers::UpdatePhase phase() const override { return optimizers::UpdatePhase::kReduce; }
  const char* name() const override { return "waits"; }
  bool reads_gradients(const Optimizer&) const override { return false; }
  void run(optimizers::UpdateContext&) override {}
  void before_rule_reads(size_t) override { ++count; }
  size_t count = 0;
};

// While the last gradients travel, the others are used.
TEST(Updates, BeginBeforeTheLastGradientsHaveCome) {
  for (const Sharding sharding :
       {Sharding::kNone, Sharding::kStates, Sharding::kGradients, Sharding::kParameters}) {
    for (const bool ahead : {false, true}) {
      comm::run_threads(2, [&](Communicator& comm) {
        Net net(Dtype::kFloat32, 0);
        net.to(comm.device());
        BucketOptions options = kManyBuckets;
        options.sharding = sharding;
        options.gather_ahead = ahead && sharding == Sharding::kStates;
        auto optimizer = create_multi_node_optimizer(AdamW(0.01), comm, options);
        const auto waits = optimizer.actual_optimizer().add_stage(std::make_shared<Waits>());
        optimizer.setup(net);
        optimizer.zero_grads();
        wide_loss(net, mine(0, Dtype::kFloat32, comm)).backward();
        optimizer.update();
        EXPECT_EQ(waits->count, optimizer.actual_optimizer().layout().arenas().size());
      });
    }
  }
}

class Ranks : public ::testing::TestWithParam<Dtype> {};

// One rank's infinity reaches the others by the reduction itself.
TEST_P(Ranks, SkipTheSameSteps) {
  const Dtype dtype = GetParam();
  for (const int ranks : {2, 3}) {
    std::vector<Values> parameters(static_cast<size_t>(ranks));
    const auto states = testing::of_ranks(ranks, [&](Communicator& comm) {
      Net net(dtype, comm.rank());
      net.to(comm.device());
      auto optimizer = create_multi_node_optimizer(AdamW(0.01), comm, kManyBuckets);
      const auto scale =
          optimizers::add_loss_scale(optimizer.actual_optimizer(), {.initial = 256, .interval = 4});
      optimizer.setup(net);
      for (int step = 0; step < 6; ++step) {
        optimizer.zero_grads();
        const Values before = values_of(net);
        const bool bad = step == 1 && comm.rank() == ranks - 1;
        scale->scaled(wide_loss(net, mine(step, dtype, comm)) * (bad ? double(INFINITY) : 1.0))
            .backward();
        optimizer.update();
        if (step == 1)
          EXPECT_EQ(values_of(net), before);
        else
          EXPECT_NE(values_of(net), before);
      }
      EXPECT_EQ(optimizer->t(), 5);
      EXPECT_EQ(scale->skipped(), 1);
      EXPECT_EQ(scale->value(), 256) << "halved, and doubled after four good steps";
      optimizer.check_state();
      parameters[size_t(comm.rank())] = values_of(net);
      return values_of_state(*optimizer.operator->());
    });
    for (size_t r = 1; r < parameters.size(); ++r) {
      EXPECT_EQ(parameters[r], parameters[0]);
      EXPECT_EQ(states[r], states[0]);
    }
  }
}

TEST_P(Ranks, TakeMasterCopiesAndScaleOfRank0) {
  const Dtype dtype = GetParam();
  comm::run_threads(2, [&](Communicator& comm) {
    Net net(dtype);
    net.to(comm.device());
    auto optimizer = create_multi_node_optimizer(AdamW(0.01), comm, kManyBuckets);
    const auto scale =
        optimizers::add_loss_scale(optimizer.actual_optimizer(), {.initial = 256, .interval = 2});
    optimizer.setup(net);
    const auto step = [&](int number) {
      optimizer.zero_grads();
      scale->scaled(wide_loss(net, mine(number, dtype, comm))).backward();
      optimizer.update();
    };
    step(0);
    if (comm.rank() == 0) {  // as after loading a file there
      std::map<std::string, Array> state;
      for (const auto& [name, array] : optimizer->state()) state[name] = array.copy();
      state.at("loss_scale/value").fill(64);
      state.at("m/l1/W").fill(0.25);
      if (state.count("master/l1/W")) state.at("master/l1/W") *= 1.0001;
      optimizer->load_state(state);
    }
    optimizer.broadcast_state();
    EXPECT_EQ(scale->value(), 64);
    const auto all =
        comm.all_gather_object(values_of_state(*optimizer.operator->()).at("m/l1/W")[0]);
    EXPECT_EQ(all[0], 0.25);
    EXPECT_EQ(all[1], 0.25);
    step(1);
    optimizer.check_state();
  });
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Ranks,
                         ::testing::Values(dtype::float32, dtype::float16, dtype::bfloat16),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace catena::parallel
