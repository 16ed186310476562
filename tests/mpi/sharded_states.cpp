// Training spread over processes against that of one, in the job of suite_main.cpp.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "catena/comm/internals.h"
#include "parallel/sharded_training.h"
#include "set_up.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // NOLINT: the network of the tests of parallel training

TEST(ProcessSharding, EqualsOneProcess) {
  const CommunicatorPtr comm = create_communicator();
  for (const char* rule : {"Adam", "SGD", "LAMB", "LARS"}) {
    ShardedJob job{.rule = rule, .clip_norm = 0.2};
    const Values expected = train_alone(job).values;
    for (const BucketOptions& options : all_shardings()) {
      job.options = options;
      expect_equal_training(train_sharded(*comm, job).values, expected, job.dtype,
                            message(rule, ", ", shown(options)));
    }
  }
}

// 201 MB of weights.
struct LargeNet : FunctionSet {
  F::Linear l1{4096, 4096}, l2{4096, 4096}, l3{4096, 4096};
  CATENA_FUNCTIONS(l1, l2, l3)
  Variable operator()(const Variable& x) { return l3(F::tanh(l2(F::tanh(l1(x))))); }
};

void fill_with_waves(LargeNet& net) {
  double frequency = 0.3;
  for (const Parameter& p : net.parameters()) {
    const Array numbers = arange(0, p.size(), 1, {dtype::float32, p.device()});
    p.copy_from((sin(numbers * frequency) * 0.02).reshape(p.shape()));
    frequency += 0.1;
  }
}

struct LargeTraining {
  LargeNet net;
  MultiNodeOptimizer optimizer;
  Variable x;
  LargeTraining(Communicator& comm, Sharding sharding)
      : optimizer(create_multi_node_optimizer(make_rule("SGD"), comm, {.sharding = sharding})),
        x(wave({8, 4096}, comm.rank(), dtype::float32).to(comm.device())) {
    net.to(comm.device());
    fill_with_waves(net);
    optimizer.setup(net);
  }
  void step() {
    optimizer.zero_grads();
    F::mean(F::square(net(x))).backward();
    optimizer.update();
  }
};

// Some rows of the weights after each step, as rank 0 reads them on its own.
Values large_steps(Communicator& comm, Sharding sharding, bool replays) {
  LargeTraining trained(comm, sharding);
  MultiNodeOptimizer& optimizer = trained.optimizer;
  const std::string ways = comm::internals(comm).ways();
  EXPECT_EQ(optimizer->is_sharded(), sharding == Sharding::kAuto &&
                                         ways.find("by copy engines") != std::string::npos &&
                                         ways.find("mapped by all ranks") != std::string::npos)
      << ways;
  trained.step();
  cuda::Graph graph;
  if (replays) {
    optimizer->prepare_for_capture();
    graph = cuda::Graph::capture(comm.device(), [&] { trained.step(); });
  }
  Values values;
  for (int i = 0; i < 3; ++i) {
    replays ? graph.launch() : trained.step();
    if (comm.rank() != 0) continue;
    for (const Parameter& p : trained.net.parameters())
      if (p.shape().size() == 2)
        values.push_back(p.data()(Slice(0, 4096, 500)).to_vector<double>());
  }
  optimizer.check_state();
  return values;
}

TEST(ProcessSharding, LargeModelsAreShardedWhereCopiesMoveThem) {
  const CommunicatorPtr comm = create_communicator();
  if (!comm->device().is_cuda()) GTEST_SKIP() << "SKIPPED: needs GPUs";
  for (const bool replays : {false, true}) {
    const Values chosen = large_steps(*comm, Sharding::kAuto, replays),
                 whole = large_steps(*comm, Sharding::kNone, replays);
    EXPECT_LE(largest_difference(chosen, whole), 1e-5) << (replays ? "replayed" : "");
  }
}

// However far the host is ahead, gradients that are freed take the memory of a few buckets.
TEST(ProcessSharding, FreedGradientsAreUsedAgain) {
  const CommunicatorPtr comm = create_communicator();
  if (!comm->device().is_cuda()) GTEST_SKIP() << "SKIPPED: needs GPUs";
  LargeTraining trained(*comm, Sharding::kGradients);
  trained.step();
  synchronize(comm->device());
  free_all_blocks(comm->device());
  const auto reserved = [&] {
    const PoolStatistics pool = memory_statistics(comm->device());
    return pool.in_use + pool.cached;
  };
  const size_t before = reserved();
  for (int i = 0; i < 20; ++i) trained.step();
  EXPECT_LE(reserved() - before, 8 * trained.net.l1.W.data().nbytes());
}

// Gathers by copy engines against those of NCCL. Other transports have one way. The last rank has
// no samples.
TEST(ProcessSharding, TheWayOfGathersDoesNotShow) {
  const CommunicatorPtr all = create_communicator();
  if (!all->device().is_cuda()) GTEST_SKIP() << "SKIPPED: needs GPUs";
  for (const bool replays : {false, true}) {
    ShardedJob job{.dtype = dtype::float32,
                   .options = sharded(Sharding::kStates, true),
                   .end = 8,
                   .samples = all->size() - 1,
                   .replays = replays};
    std::vector<Values> results;
    for (const char* least : {"1", "1000000000"}) {
      setenv("CATENA_COPIED_GATHER", least, 1);
      const CommunicatorPtr comm = create_communicator();
      const std::string ways = comm::internals(*comm).ways();
      if (ways.find("mapped by all ranks") != std::string::npos) {
        EXPECT_NE(ways.find(message("from ", least, " bytes by copy engines")), std::string::npos);
      }
      results.push_back(train_sharded(*comm, job).values);
    }
    unsetenv("CATENA_COPIED_GATHER");
    EXPECT_EQ(results[0], results[1]) << (replays ? "replayed" : "");
  }
}

// The same of scattered sums, which NCCL adds in an order of its own.
TEST(ProcessSharding, TheWayOfSumsDoesNotShow) {
  const CommunicatorPtr all = create_communicator();
  if (!all->device().is_cuda()) GTEST_SKIP() << "SKIPPED: needs GPUs";
  for (const Sharding sharding : {Sharding::kStates, Sharding::kGradients}) {
    for (const bool replays : {false, true}) {
      const ShardedJob job{.dtype = dtype::float32,
                           .options = sharded(sharding, true),
                           .end = 8,
                           .replays = replays};
      std::vector<Values> results;
      for (const char* least : {"1", "1000000000"}) {
        setenv("CATENA_COPIED_SUM", least, 1);
        const CommunicatorPtr comm = create_communicator();
        results.push_back(train_sharded(*comm, job).values);
      }
      unsetenv("CATENA_COPIED_SUM");
      EXPECT_LE(largest_difference(results[0], results[1]), 1e-5) << (replays ? "replayed" : "");
    }
  }
}

// Parameters after steps in which the communicator's stream is late, and a gradient is cleared
// after the backward pass.
Values trained_late(Communicator& comm, Sharding sharding, bool late) {
  Net net(dtype::float32, 0);
  auto optimizer = set_up(net, optimizers::SGD(0.1), comm, {64, 64, 64, sharding});
  const std::vector<double> cleared = net.l3.W.data().to_vector<double>();
  for (int step = 0; step < 3; ++step) {
    const Batch batch = batch_of(step * comm.size() + comm.rank(), 4, dtype::float32);
    optimizer.zero_grads();
    if (late && comm.device().is_cuda())
      comm.side_stream().launch_host_func(
          [] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); });
    loss_of(net, part(batch, 0, 4, comm.device())).backward();
    net.l3.W.zero_grad();
    optimizer.update();
  }
  EXPECT_EQ(net.l3.W.data().to_vector<double>(), cleared);
  return values_of(net);
}

TEST(ProcessSharding, UpdatesWaitForLateGradients) {
  const CommunicatorPtr comm = create_communicator();
  for (const Sharding sharding : {Sharding::kNone, Sharding::kStates, Sharding::kGradients})
    EXPECT_EQ(trained_late(*comm, sharding, true), trained_late(*comm, sharding, false));
}

}  // namespace
}  // namespace catena::parallel
