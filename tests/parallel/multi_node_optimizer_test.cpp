// Training on the ranks of a communicator against one process.
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/array/reduction.h"

#include "catena/autograd/function.h"
#include "catena/functions/connection/convolution_2d.h"
#include "cuda/gpu.h"
#include "deterministic_scope.h"
#include "error_text.h"
#include "parallel/network.h"
#include "rank_results.h"
#include "set_up.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // the network

constexpr int kSteps = 20;
const BucketOptions kManyBuckets{128, 256, 128};

struct Case {
  int ranks;
  Dtype dtype;
  std::string rule;
  int64_t samples;
  bool gpus = false;
};

std::ostream& operator<<(std::ostream& os, const Case& c) {
  return os << c.ranks << "_ranks_" << name(c.dtype) << "_" << c.rule << "_" << c.samples
            << (c.gpus ? "_nccl" : "_threads");
}

comm::ThreadsOptions threads_of(const Case& c) {
  comm::ThreadsOptions options;
  if (c.gpus) {
    options.implementation = "nccl";
    for (int r = 0; r < c.ranks; ++r) options.devices.push_back(cuda_device(r));
  }
  return options;
}

Values train_alone(const Case& c, Device device = cpu(0)) {
  Net net(c.dtype);
  net.to(device);
  const auto optimizer = make_rule(c.rule);
  optimizer->setup(net);
  for (int step = 0; step < kSteps; ++step) {
    optimizer->zero_grads();
    loss_of(net, part(batch_of(step, c.samples, c.dtype), 0, c.samples, device)).backward();
    optimizer->update();
  }
  return values_of(net);
}

// What each rank ends with. `weights` false: every rank counts the same, as is right for even
// shards.
std::vector<Values> train_on_ranks(const Case& c, bool weights) {
  std::vector<Values> results(static_cast<size_t>(c.ranks));
  comm::run_threads(
      c.ranks,
      [&](Communicator& comm) {
        Net net(c.dtype, comm.rank());  // ranks differ until setup
        auto optimizer = set_up(net, make_rule(c.rule), comm, kManyBuckets);
        for (int step = 0; step < kSteps; ++step) {
          const auto [begin, end] = shard(c.samples, comm.rank(), comm.size());
          optimizer.zero_grads();
          if (weights) optimizer.set_batch_weight(end - begin, c.samples);
          if (end > begin)
            loss_of(net, part(batch_of(step, c.samples, c.dtype), begin, end, comm.device()))
                .backward();
          optimizer.update();
        }
        results[size_t(comm.rank())] = values_of(net);
      },
      threads_of(c));
  return results;
}

class EqualsOneProcess : public ::testing::TestWithParam<Case> {};

TEST_P(EqualsOneProcess, After20Steps) {
  const Case c = GetParam();
  CATENA_NEEDS_GPUS(c.gpus ? c.ranks : 0);
  const Values alone = train_alone(c, c.gpus ? cuda_device(0) : cpu(0));
  for (const bool weights : {true, false}) {
    if (!weights && c.samples % c.ranks != 0) continue;
    const std::vector<Values> ranks = train_on_ranks(c, weights);
    expect_equal_training(ranks[0], alone, c.dtype);
    for (const Values& rank : ranks) EXPECT_EQ(rank, ranks[0]);  // bit by bit
  }
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const bool gpus : {false, true}) {
    for (const int ranks : {2, 4, 8}) {
      for (const Dtype dtype : {dtype::float32, dtype::float64}) {
        for (const char* rule : {"SGD", "Adam"}) {
          for (const int64_t samples : {24, 21, 5})
            result.push_back({ranks, dtype, rule, samples, gpus});
        }
      }
    }
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Cases, EqualsOneProcess, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return ::testing::PrintToString(info.param); });

// The loss says how many labels it counted.
TEST(MultiNodeOptimizer, UnevenShardsNeedNoWeightsWhereTheLossCounts) {
  const Case c{4, dtype::float32, "SGD", 21};
  EXPECT_LE(largest_difference(train_on_ranks(c, false)[0], train_alone(c)), 1e-5);
}

TEST(MultiNodeOptimizer, ANullCommunicatorIsRefused) {
  expect_contains(error_of<ValueError>(
                      [] { create_multi_node_optimizer(optimizers::SGD(0.1), CommunicatorPtr()); }),
                  {"create_multi_node_optimizer: the communicator is null"});
}

TEST(MultiNodeOptimizer, ReportsDifferentModelsByName) {
  struct Two : FunctionSet {
    F::Linear l1, l2;
    explicit Two(int64_t hidden)
        : l1(layer(4, 5, dtype::float32, 1)), l2(layer(5, hidden, dtype::float32, 2)) {}
    CATENA_FUNCTIONS(l1, l2)
  };
  for (const std::string& text : errors_of_ranks(AfterError::kGoOn, 3, [](Communicator& comm) {
         Two net(comm.rank() == 2 ? 7 : 6);
         net.to(comm.device());
         auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm);
         optimizer.setup(net);
       }))
    expect_contains(text, {"/l2/W is (6, 5) float32 on ranks 0, 1, (7, 5) float32 on rank 2"});
}

TEST(MultiNodeOptimizer, RefusesAModelOnAnotherDevice) {
  EXPECT_THROW(comm::run_threads(2,
                                 [](Communicator& comm) {
                                   Net net(dtype::float32);
                                   net.to(cpu(9));
                                   auto optimizer =
                                       create_multi_node_optimizer(optimizers::SGD(0.1), comm);
                                   optimizer.setup(net);
                                 }),
               DeviceError);
}

TEST(MultiNodeOptimizer, UpdatesParametersWithoutElements) {
  for (const char* rule : {"SGD", "MomentumSGD", "Adam"}) {
    comm::run_threads(2, [&](Communicator& comm) {
      const Parameter none(zeros({0, 2}, {dtype::float64, comm.device()}));
      const Parameter some(zeros({3}, {dtype::float32, comm.device()}));
      auto optimizer = create_multi_node_optimizer(make_rule(rule), comm);
      optimizer.setup({none, some});
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grads();
        some.set_grad(full({3}, comm.rank() == 0 ? 3 : -1, dtype::float32));
        optimizer.update();
      }
      EXPECT_EQ(optimizer->t(), 3);
      const std::vector<double> values = some.data().to_vector<double>();
      EXPECT_LT(values[0], 0) << "the mean, 1, is followed";
      EXPECT_EQ(comm.all_gather_object(values[0])[0], values[0]);
      optimizer.broadcast_state();
      EXPECT_EQ(optimizer->t(), 3);
    });
  }
}

// Runs `train` on ranks and, with rank 0 of 1, alone; compares the results.
using Train = std::function<void(Net& net, MultiNodeOptimizer& optimizer, int rank, int size)>;
void expect_as_alone(int ranks, const Train& train, Dtype dtype = dtype::float64) {
  const auto run = [&](int n) {
    const auto results = of_ranks(n, [&](Communicator& comm) {
      Net net(dtype, comm.rank());
      auto optimizer = set_up(net, optimizers::Adam(0.01), comm, kManyBuckets);
      train(net, optimizer, comm.rank(), n);
      return values_of(net);
    });
    for (const Values& r : results) EXPECT_EQ(r, results[0]);
    return results[0];
  };
  expect_equal_training(run(ranks), run(1), dtype);
}

// A rank's share of a batch.
Batch mine(const Batch& all, int rank, int size, Device device) {
  const auto [begin, end] = shard(all.size(), rank, size);
  return part(all, begin, end, device);
}

TEST(MultiNodeOptimizer, ParametersUnusedOnSomeRanks) {
  // `extra` is used for half of the samples only; alone, both halves are run one after the other.
  expect_as_alone(2, [](Net& net, MultiNodeOptimizer& optimizer, int rank, int size) {
    for (int step = 0; step < 5; ++step) {
      const Batch all = batch_of(step, 8, dtype::float64);
      const auto half = [&](int which) {
        return loss_of(net, mine(all, which, 2, net.device()), which == 1);
      };
      optimizer.zero_grads();
      if (size == 2) {
        half(rank).backward();
      } else {
        const auto scope = optimizer.no_sync();
        half(0).backward();
        half(1).backward();
        for (const Parameter& p : net.parameters()) p.grad() *= 0.5;
      }
      optimizer.update();
    }
  });
}

// The identity, written by a user, that notes how many buckets had started when it ran backward.
struct Probe : Function {
  explicit Probe(std::function<void()> call) : call_(std::move(call)) {}
  Arrays forward(const Arrays& x) override { return {x[0].copy()}; }
  Arrays backward(const Arrays&, const Arrays& gy) override {
    call_();
    return {gy[0]};
  }
  std::function<void()> call_;
};

TEST(MultiNodeOptimizer, BucketsStartDuringBackwardThroughUserFunctions) {
  expect_as_alone(2, [](Net& net, MultiNodeOptimizer& optimizer, int rank, int size) {
    for (int step = 0; step < 3; ++step) {
      const Batch batch = mine(batch_of(step, 8, dtype::float64), rank, size, net.device());
      size_t during = 0;
      optimizer.zero_grads();
      const Variable h = call(Probe([&] { during = optimizer.reducer().started(); }),
                              F::tanh(net.l1(Variable(batch.x))));
      const Variable y = net.l3(F::tanh(net.l2(h))) + net.extra(h);
      F::softmax_cross_entropy(y, batch.t).backward();
      const size_t all = optimizer.reducer().buckets().size();
      EXPECT_GT(all, 2u);
      EXPECT_GT(during, 0u);
      EXPECT_LT(during, all);
      optimizer.update();
    }
  });
}

// Columns times numbers, one of which is a parameter; written by a user.
struct Scale : Function {
  Arrays forward(const Arrays& x) override { return {x[0] * x[1]}; }
  Arrays backward(const Arrays& x, const Arrays& gy) override {
    return {gy[0] * x[1], sum(gy[0] * x[0], 0)};
  }
};

TEST(MultiNodeOptimizer, ParametersOfUserFunctions) {
  for (const int ranks : {2, 4}) {
    expect_as_alone(ranks, [](Net& net, MultiNodeOptimizer& optimizer, int rank, int size) {
      for (int step = 0; step < 5; ++step) {
        const Batch batch = mine(batch_of(step, 8, dtype::float64), rank, size, net.device());
        optimizer.zero_grads();
        const Variable h = call(Scale(), F::tanh(net.l1(Variable(batch.x))), net.l1.b);
        const Variable y = net.l3(F::tanh(net.l2(h))) + net.extra(h);
        F::softmax_cross_entropy(y, batch.t).backward();
        optimizer.update();
      }
    });
  }
}

TEST(MultiNodeOptimizer, ASecondSynchronisedBackwardIsAnError) {
  comm::run_threads(2, [](Communicator& comm) {
    Net net(dtype::float32);
    auto optimizer = set_up(net, optimizers::SGD(0.1), comm, kManyBuckets);
    const Batch batch = part(batch_of(0, 4, dtype::float32), 0, 4, comm.device());
    optimizer.zero_grads();
    loss_of(net, batch).backward();
    EXPECT_THROW(loss_of(net, batch).backward(), GradientError);
    EXPECT_THROW(optimizer->accumulate_grads(net.gradients()), GradientError);
    {
      const auto scope = optimizer.no_sync();
      EXPECT_THROW(loss_of(net, batch).backward(), GradientError);
    }
    optimizer.zero_grads();  // the averages are given up
    loss_of(net, batch).backward();
    net.zero_grads();  // the same by the model
    loss_of(net, batch).backward();
    optimizer.update();
    loss_of(net, batch).backward();  // without zero_grads: adds to the average
    EXPECT_EQ(optimizer.reducer().started(), 0u) << "reduced by update";
    optimizer.update();
    net.zero_grads();
    loss_of(net, batch).backward();
    EXPECT_GT(optimizer.reducer().started(), 0u);
    optimizer.update();
  });
}

TEST(MultiNodeOptimizer, UpdateReducesWhatNoBackwardDid) {
  // Rank 1's loss touches no parameter of the group; its gradients are zeros.
  const auto results = of_ranks(2, [&](Communicator& comm) {
    Net net(dtype::float32);
    auto optimizer = set_up(net, optimizers::SGD(0.1), comm, kManyBuckets);
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grads();
      if (comm.rank() == 0)
        loss_of(net, part(batch_of(step, 4, dtype::float32), 0, 4, comm.device())).backward();
      optimizer.update();
    }
    return values_of(net);
  });
  EXPECT_EQ(results[0], results[1]);
  Net alone(dtype::float32);
  optimizers::SGD sgd(0.05);
  sgd.setup(alone);
  for (int step = 0; step < 3; ++step) {
    sgd.zero_grads();
    loss_of(alone, part(batch_of(step, 4, dtype::float32), 0, 4, cpu(0))).backward();
    sgd.update();
  }
  expect_equal_training(results[0], values_of(alone), dtype::float32);
}

TEST(MultiNodeOptimizer, BatchWeightsAreChecked) {
  comm::run_threads(1, [](Communicator& comm) {
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm);
    EXPECT_THROW(optimizer.set_batch_weight(5, 4), ValueError);
    EXPECT_THROW(optimizer.set_batch_weight(0, 0), ValueError);
    EXPECT_THROW(create_multi_node_optimizer(optimizer.actual_optimizer(), comm), ValueError);
  });
}

TEST(MultiNodeOptimizer, ARefusedOneLeavesTheOptimizerAsItWas) {
  comm::run_threads(2, [](Communicator& comm) {
    Net net(dtype::float32);
    net.to(comm.device());
    optimizers::SGD sgd(0.1);
    sgd.setup(net);
    const size_t before = sgd.stages().size();
    EXPECT_THROW(create_multi_node_optimizer(sgd, comm, {.sharding = Sharding::kStates}),
                 ValueError);
    EXPECT_EQ(sgd.stages().size(), before);
    {
      const auto whole = create_multi_node_optimizer(sgd, comm);
      EXPECT_EQ(sgd.stages().size(), before + 1);
    }
    optimizers::SGD spread(0.1);
    create_multi_node_optimizer(spread, comm,
                                {.sharding = Sharding::kStates, .gather_ahead = true});
    EXPECT_EQ(spread.stages().size(), before) << "as it was before";
  });
}

TEST(MultiNodeOptimizer, WhatARankWithoutSamplesHasReachesNobody) {
  comm::run_threads(2, [](Communicator& comm) {
    Net net(dtype::float32);
    auto optimizer = set_up(net, optimizers::SGD(0.1), comm);
    optimizer.zero_grads();
    optimizer.set_batch_weight(comm.rank() == 0 ? 8 : 0, 8);
    const Variable loss = loss_of(net, part(batch_of(0, 8, dtype::float32), 0, 8, comm.device()));
    (loss * (comm.rank() == 0 ? 1 : std::nan(""))).backward();
    optimizer.update();
    for (const auto& values : values_of(net))
      for (const auto value : values) EXPECT_TRUE(std::isfinite(value));
  });
}

// Two networks, one behind the other, that have an optimizer each.
struct Adversaries {
  F::Linear generator{layer(4, 4, dtype::float32, 1)}, critic{layer(4, 4, dtype::float32, 2)};
  MultiNodeOptimizer og, oc;
  explicit Adversaries(Communicator& comm)
      : og(create_multi_node_optimizer(optimizers::SGD(0.1), comm)),
        oc(create_multi_node_optimizer(optimizers::SGD(0.1), comm)) {
    generator.to(comm.device());
    critic.to(comm.device());
    og.setup(generator);
    oc.setup(critic);
  }
  Variable judged(const Array& z) { return F::mean(critic(generator(Variable::constant(z)))); }
};

// A pass for one optimizer goes through the parameters of the other. In some steps a rank has no
// samples and makes no pass.
TEST(MultiNodeOptimizer, PassesForOthersAreNotReduced) {
  for (const int without : {-1, 0, 2}) {
    const auto results = of_ranks(2, [&](Communicator& comm) {
      Adversaries pair(comm);
      for (int step = 0; step < 4; ++step) {
        const bool has_samples = comm.rank() == 0 || step != without;
        const int64_t all = step == without ? 8 : 16, own = has_samples ? 8 : 0;
        const Array z = wave({8, 4}, step + 10 * comm.rank(), dtype::float32).to(comm.device());
        pair.og.zero_grads();
        pair.og.set_batch_weight(own, all);
        pair.oc.set_batch_weight(own, all);
        if (has_samples) {
          pair.judged(z).backward();
          EXPECT_GT(pair.og.reducer().started(), 0u);
          EXPECT_EQ(pair.oc.reducer().started(), 0u);
        }
        pair.og.update();
        pair.oc.zero_grads();
        if (has_samples) {
          pair.judged(z).backward();
          EXPECT_EQ(pair.og.reducer().started(), 0u);
          EXPECT_GT(pair.oc.reducer().started(), 0u);
        }
        pair.oc.update();
      }
      pair.og.check_state();
      pair.oc.check_state();
      return std::pair{values_of(pair.generator), values_of(pair.critic)};
    });
    EXPECT_EQ(results[0], results[1]) << without;
  }
}

// One pass for both optimizers, which a rank without samples does not make.
TEST(MultiNodeOptimizer, TwoOptimizersShareAPassInsideNoSync) {
  const auto results = of_ranks(2, [&](Communicator& comm) {
    Adversaries pair(comm);
    for (int step = 0; step < 3; ++step) {
      const bool has_samples = comm.rank() == 0 || step != 1;
      pair.og.zero_grads();
      pair.oc.zero_grads();
      if (has_samples) {
        const auto scope = pair.og.no_sync();
        pair.judged(wave({8, 4}, step + 10 * comm.rank(), dtype::float32).to(comm.device()))
            .backward();
      }
      pair.og.update();
      pair.oc.update();
    }
    return std::pair{values_of(pair.generator), values_of(pair.critic)};
  });
  EXPECT_EQ(results[0], results[1]);
}

// Buckets of equal size of two optimizers, which the ranks reduce in different orders.
TEST(MultiNodeOptimizer, BucketsOfDifferentOptimizersAreToldApart) {
  const std::string text = error_of<CommError>([] {
    comm::run_threads(2, [](Communicator& comm) {
      Adversaries pair(comm);
      MultiNodeOptimizer *first = &pair.og, *second = &pair.oc;
      if (comm.rank() == 1) std::swap(first, second);
      first->zero_grads();
      second->zero_grads();
      first->update();
      second->update();
    });
  });
  expect_contains(text, {"(bucket 0 of optimizer 1)", "(bucket 0 of optimizer 2)"});
}

// Another optimizer takes the same parameters, or some of them, in another order.
TEST(MultiNodeOptimizer, OtherOptimizersMayHoldItsParameters) {
  const auto run = [](int others) {
    Values gradients;
    comm::run_threads(2, [&](Communicator& comm) {
      Net net(dtype::float32);
      net.to(comm.device());
      auto optimizer =
          create_multi_node_optimizer(optimizers::SGD(0.0), comm, BucketOptions{64, 64, 64});
      if (others == 1)
        optimizer.setup({net.l3.W, net.l3.b});
      else
        optimizer.setup(net);
      optimizers::SGD other(0.1);
      if (others == 1) other.setup(net);
      if (others == 2) {
        Parameters reversed = net.parameters();
        std::reverse(reversed.begin(), reversed.end());
        other.setup(reversed);
      }
      for (int step = 0; step < 2; ++step) {
        net.zero_grads();
        optimizer.zero_grads();
        loss_of(net, part(batch_of(comm.rank(), 4, dtype::float32), 0, 4, comm.device()))
            .backward();
        optimizer.update();
      }
      if (comm.rank() != 0) return;
      for (const Parameter& p : Parameters{net.l3.W, net.l3.b})
        gradients.push_back(p.grad().to_vector<double>());
    });
    return gradients;
  };
  const Values alone = run(0);
  EXPECT_EQ(run(1), alone);
  EXPECT_EQ(run(2), alone);
}

TEST(MultiNodeOptimizer, SetupAgainKeepsSpreadStates) {
  for (const Sharding sharding : {Sharding::kNone, Sharding::kStates, Sharding::kParameters})
    comm::run_threads(2, [&](Communicator& comm) {
      Net net(dtype::float32);
      auto optimizer =
          set_up(net, optimizers::Adam(0.1), comm, BucketOptions{.sharding = sharding});
      const auto step = [&] {
        optimizer.zero_grads();
        loss_of(net, part(batch_of(comm.rank(), 4, dtype::float32), 0, 4, comm.device()))
            .backward();
        optimizer.update();
      };
      const auto states = [&] {
        Values values;
        for (const auto& [name, array] : optimizer->state())
          values.push_back(array.astype(dtype::float64).reshape({-1}).to_vector<double>());
        return values;
      };
      step();
      const Values before = states();
      optimizer.setup(net);
      EXPECT_EQ(states(), before);
      step();
      EXPECT_EQ(optimizer->t(), 2);
    });
}

TEST(MultiNodeOptimizer, BroadcastStateTellsLayersApartThatOtherOptimizersHold) {
  comm::run_threads(2, [](Communicator& comm) {
    Net net(dtype::float32);
    auto optimizer = set_up(net, optimizers::Adam(0.01), comm);
    optimizers::SGD first, second;
    first.setup(net.l3);
    second.setup(net.extra);
    optimizer->state_of(net.l3.W)[0].fill(0.25);
    optimizer->state_of(net.extra.W)[0].fill(0.5);
    optimizer.broadcast_state();
    EXPECT_EQ(optimizer->state_of(net.l3.W)[0].to_vector<double>()[0], 0.25);
    EXPECT_EQ(optimizer->state_of(net.extra.W)[0].to_vector<double>()[0], 0.5);
  });
}

// Buckets are added as blocks of memory, so that ranks whose filters lie in different orders would
// add elements that do not belong together.
TEST(MultiNodeOptimizer, RefusesRanksWithFiltersInDifferentOrders) {
  struct Images : FunctionSet {
    F::Convolution2D c{3, 4, 3};
    CATENA_FUNCTIONS(c)
  };
  for (const bool differ : {false, true})
    comm::run_threads(2, [&](Communicator& comm) {
      Images net;
      if (comm.rank() == 0 || !differ) F::channels_last(net);
      auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm);
      if (!differ) {
        optimizer.setup(net);
        EXPECT_FALSE(net.c.W.data().is_contiguous());
        return;
      }
      const std::string text = error_of<ValueError>([&] { optimizer.setup(net); });
      EXPECT_NE(text.find("in memory (0, 2, 3, 1)"), std::string::npos) << text;
    });
}

// Collectives move elements, whatever the order in memory of each rank's array.
TEST(MultiNodeOptimizer, CollectivesOfArraysInDifferentOrders) {
  comm::run_threads(2, [&](Communicator& comm) {
    const Array numbers = arange(2 * 3 * 4 * 5).reshape({2, 3, 4, 5}).astype(dtype::float32);
    const Array mine = comm.rank() == 0 ? F::channels_last(numbers) : numbers.copy();
    const Array sum = comm.all_reduce(mine);
    EXPECT_EQ(sum.to_vector<float>(), (numbers * 2).to_vector<float>());
    const Array out = zeros_like(mine);
    comm.broadcast(mine * (comm.rank() + 1), 0, out);
    EXPECT_EQ(out.order(), mine.order());
    EXPECT_EQ(out.to_vector<float>(), numbers.to_vector<float>());
  });
}

// Each option that one rank gives differently, before anything is exchanged because of it.
TEST(MultiNodeOptimizer, NamesRanksWithOtherOptions) {
  const DeterministicScope scope;
  struct Given {
    BucketOptions others, last;
    const char* text;
  };
  const std::vector<Given> cases{
      {{}, {.sharding = Sharding::kStates}, ".sharding is auto on ranks 0, 1, 3, states on rank 2"},
      {{.sharding = Sharding::kStates},
       {.sharding = Sharding::kParameters},
       ".sharding is states on ranks 0, 1, 3, parameters on rank 2"},
      {{.slices = 4}, {}, ".slices is 4 on ranks 0, 1, 3, 0 on rank 2"},
      {{.slices = 8}, {.slices = 4}, ".slices is 8 on ranks 0, 1, 3, 4 on rank 2"},
      {{},
       {.reduce_dtype = dtype::bfloat16},
       ".reduce_dtype is none on ranks 0, 1, 3, bfloat16 on rank 2"},
      {{.sharding = Sharding::kParameters},
       {.sharding = Sharding::kParameters, .units = {"/l1", "/l2"}},
       ".units is {} on ranks 0, 1, 3, {/l1, /l2} on rank 2"},
      {{.bucket_bytes = 1000},
       {.bucket_bytes = 2000},
       ".bucket_bytes is 1000 on ranks 0, 1, 3, 2000 on rank 2"}};
  for (const Given& c : cases)
    for (const bool directly : {false, true})
      comm::run_threads(4, [&](Communicator& comm) {
        Net net(dtype::float32);
        net.to(comm.device());
        auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm,
                                                     comm.rank() == 2 ? c.last : c.others);
        expect_contains(
            error_of<ValueError>([&] {
              if (directly)
                optimizer->setup(net);
              else
                optimizer.setup(net);
            }),
            {"setup: the ranks give different BucketOptions", c.text, "the same options"});
      });
}

// The same comparison, of what the optimizer holds already.
TEST(MultiNodeOptimizer, ComparesOptimizersThatAreSetUp) {
  comm::run_threads(2, [&](Communicator& comm) {
    F::Linear layer(3, 2 + comm.rank());
    layer.to(comm.device());
    optimizers::SGD rule(0.1);
    rule.setup(layer);
    expect_contains(error_of<ValueError>([&] { create_multi_node_optimizer(rule, comm); }),
                    {"different models", "/W"});
  });
}

}  // namespace
}  // namespace catena::parallel
