// States spread over processes against states that each holds, in the job of suite_main.cpp.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "catena/comm/internals.h"
#include "parallel/sharded_training.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // NOLINT: the network of the tests of parallel training

struct Result {
  Values values;
  std::vector<std::vector<double>> states;
  int64_t bytes = 0;
};

Result train(Communicator& comm, Sharding sharding) {
  Net net(dtype::float32, comm.rank());
  net.to(comm.device());
  auto optimizer =
      create_multi_node_optimizer(optimizers::Adam(0.01), comm, {.sharding = sharding});
  optimizer.setup(net);
  for (int step = 0; step < 5; ++step) {
    const auto [begin, end] = testing::shard(12, comm.rank(), comm.size());
    optimizer.set_batch_weight(end - begin, 12);
    optimizer.zero_grads();
    loss_of(net, part(batch_of(step, 12, dtype::float32), begin, end, comm.device())).backward();
    optimizer.update();
  }
  optimizer.check_state();
  Result result{values_of(net), {}, 0};
  for (const auto& [name, array] : optimizer->state())
    result.states.push_back(array.to_vector<double>());
  for (const auto& arena : optimizer->layout().arenas()) result.bytes += arena.state_bytes();
  return result;
}

TEST(ProcessShardedStates, GiveTheBitsOfWholeOnesInAShareOfTheMemory) {
  const CommunicatorPtr comm = create_communicator();
  const Result whole = train(*comm, Sharding::kNone), parts = train(*comm, Sharding::kStates);
  EXPECT_EQ(parts.values, whole.values);
  EXPECT_EQ(parts.states, whole.states);
  EXPECT_LE(parts.bytes, whole.bytes / comm->size() + 2 * 256);
}

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

TEST(ProcessSharding, SumsOf16BitsAreEqualOnAllRanks) {
  const CommunicatorPtr comm = create_communicator();
  for (const BucketOptions& sharding : all_shardings()) {
    ShardedJob job{.dtype = dtype::float32, .options = sharding, .end = 8};
    const Values expected = train_alone(job).values;
    job.options.reduce_dtype = dtype::bfloat16;
    const ShardedResult result = train_sharded(*comm, job);  // checks that ranks are equal
    EXPECT_LE(largest_difference(result.values, expected), 0.05) << shown(sharding);
  }
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

}  // namespace
}  // namespace catena::parallel
