// Replayed data-parallel steps equal eager ones bit for bit, on two ranks of one process with a GPU
// each: dropout of the rank's own, clipping by the norm over all parameters, another batch in every
// step, another learning rate from step 20 on. Needs two GPUs.
#include "catena/core/graph.h"

#include "catena/array/random.h"
#include "catena/functions/noise.h"
#include "cuda/gpu.h"
#include "error_text.h"
#include "parallel/network.h"
#include "set_up.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // the network

constexpr int kSteps = 50, kWarmUp = 3, kNewRateAt = 20, kRanks = 2;
constexpr int64_t kSamples = 8;

struct How {
  std::string rule;
  bool weighted = false;  // by weights that change from step to step, as uneven shards do
  bool replay = false;
};

// What a rank ends with.
struct Outcome {
  Values parameters;
  std::vector<double> losses;  // of every step
  RandomState::State random;   // of the rank's generator
};

Variable noisy_loss(Net& net, const Batch& batch) {
  const Variable h = F::dropout(F::tanh(net.l1(batch.x)), 0.5);
  const Variable y = net.l3(F::dropout(F::tanh(net.l2(h)), 0.2)) + net.extra(h);
  return F::softmax_cross_entropy(y, batch.t);
}

Outcome train_rank(Communicator& comm, const How& how) {
  const Device gpu = comm.device();
  Net net(dtype::float32, comm.rank());
  net.to(gpu);
  auto optimizer = create_multi_node_optimizer(make_rule(how.rule), comm, {128, 256, 128});
  optimizer.setup(net);
  optimizer->add_hook("clip", optimizers::gradient_clipping(0.05));
  // Of the rank's own GPU: random::seed() would seed those of all ranks of the process.
  random::default_state(gpu).seed(100 + uint64_t(comm.rank()));
  const auto batch_at = [&](int i) {
    return part(batch_of(kRanks * i + comm.rank(), kSamples, dtype::float32), 0, kSamples, gpu);
  };
  const Batch batch = batch_at(0);
  const Array loss = zeros({}, {dtype::float32, gpu});
  const auto step = [&] {
    optimizer.zero_grads();
    const Variable value = noisy_loss(net, batch);
    value.backward();
    optimizer.update();
    loss.assign(value.data());
  };
  Outcome outcome;
  cuda::Graph graph;
  for (int i = 0; i < kSteps; ++i) {
    const Batch next = batch_at(i);
    batch.x.assign(next.x);
    batch.t.assign(next.t);
    if (i == kNewRateAt) optimizer.set_lr(optimizer.lr() / 10);
    if (how.weighted) optimizer.set_batch_weight(comm.rank() == 0 ? 5 + i % 3 : 11 - i % 3, 16);
    if (how.replay && i == kWarmUp) {
      optimizer.prepare_for_capture();
      graph = cuda::Graph::capture(gpu, step);
    }
    graph.defined() ? graph.launch() : step();
    outcome.losses.push_back(loss.item<double>());
  }
  EXPECT_EQ(optimizer->t(), kSteps);
  outcome.parameters = values_of(net);
  outcome.random = random::default_state(gpu).state();
  return outcome;
}

std::vector<Outcome> train(const How& how) {
  comm::ThreadsOptions options;
  options.implementation = "nccl";
  for (int r = 0; r < kRanks; ++r) options.devices.push_back(cuda_device(r));
  std::vector<Outcome> outcomes(kRanks);
  comm::run_threads(
      kRanks, [&](Communicator& comm) { outcomes[size_t(comm.rank())] = train_rank(comm, how); },
      options);
  EXPECT_EQ(outcomes[0].parameters, outcomes[1].parameters) << "ranks must hold the same bits";
  return outcomes;
}

class MultiNodeGraph : public ::testing::TestWithParam<const char*> {};

TEST_P(MultiNodeGraph, FiftyReplayedStepsEqualEagerOnesBitForBit) {
  CATENA_NEEDS_GPUS(kRanks);
  for (const bool weighted : {false, true}) {
    const std::vector<Outcome> eager = train({.rule = GetParam(), .weighted = weighted}),
                               replayed = train(
                                   {.rule = GetParam(), .weighted = weighted, .replay = true});
    for (size_t r = 0; r < kRanks; ++r) {
      EXPECT_EQ(eager[r].parameters, replayed[r].parameters) << "rank " << r;
      EXPECT_EQ(eager[r].losses, replayed[r].losses) << "rank " << r;
      EXPECT_EQ(eager[r].random.seed, replayed[r].random.seed);
      EXPECT_EQ(eager[r].random.offset, replayed[r].random.offset) << "random numbers drawn";
    }
    EXPECT_NE(eager[0].random.seed, eager[1].random.seed) << "ranks must drop different units";
    EXPECT_NE(eager[0].losses, eager[1].losses);
  }
}

// What a graph has not recorded cannot be set between replays.
TEST(MultiNodeGraphs, KnowWhatWeightTheyWereCapturedWith) {
  CATENA_NEEDS_GPUS(kRanks);
  const auto run = [](Communicator& comm) {
    Net net(dtype::float32);
    auto optimizer = set_up(net, optimizers::SGD(0.1), comm);
    const Batch batch = part(batch_of(comm.rank(), 4, dtype::float32), 0, 4, comm.device());
    const auto step = [&] {
      optimizer.zero_grads();
      loss_of(net, batch).backward();
      optimizer.update();
    };
    step();
    const auto capture = [&] {
      optimizer->prepare_for_capture();
      return cuda::Graph::capture(comm.device(), step);
    };
    const auto error_of_launch = [](cuda::Graph& graph) {
      try {
        graph.launch();
      } catch (const ValueError& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    cuda::Graph mean = capture();
    EXPECT_EQ(error_of_launch(mean), "");
    optimizer.set_batch_weight(comm.rank() == 0 ? 4 : 0, 4);
    expect_contains(error_of_launch(mean), {"before set_batch_weight was called"});
    step();
    cuda::Graph weighted = capture();
    EXPECT_EQ(error_of_launch(weighted), "");
    optimizer.set_batch_weight(2, 4);
    if (comm.rank() == 1) {
      expect_contains(error_of_launch(weighted), {"had no samples"});
      optimizer.set_batch_weight(0, 4);
    }
    EXPECT_EQ(error_of_launch(weighted), "");  // on both ranks, which wait for each other
  };
  comm::ThreadsOptions options;
  options.implementation = "nccl";
  for (int r = 0; r < kRanks; ++r) options.devices.push_back(cuda_device(r));
  comm::run_threads(kRanks, run, options);
}

INSTANTIATE_TEST_SUITE_P(Rules, MultiNodeGraph, ::testing::Values("SGD", "MomentumSGD", "Adam"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace catena::parallel
