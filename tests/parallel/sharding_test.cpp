// Gradients and parameters spread over ranks against one process, over threads and GPUs.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/autograd/autocast.h"
#include "catena/functions/activation/lstm.h"
#include "catena/functions/array.h"
#include "catena/functions/connection.h"
#include "catena/functions/math.h"
#include "catena/functions/normalization.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/loss_scale.h"
#include "comm/nccl.h"
#include "error_text.h"
#include "parallel/sharded_training.h"
#include "rank_results.h"
#include "set_up.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // NOLINT: the network and its training
using optimizers::ParameterArena;

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-9) << i;
}

void expect_one_process(const ShardedJob& base, const std::vector<int>& numbers_of_ranks) {
  const ShardedResult expected = train_alone(base);
  for (const int ranks : numbers_of_ranks) {
    for (const BucketOptions& options : all_shardings()) {
      ShardedJob job = base;
      job.options = options;
      SCOPED_TRACE(message(job.rule, " on ", ranks, " ranks, ", shown(options)));
      for (const ShardedResult& result : over_threads(ranks, job)) {
        expect_equal_training(result.values, expected.values, job.dtype);
        expect_equal_training(result.averages, expected.averages, job.dtype, "averages");
        expect_near(result.norms, expected.norms);
      }
    }
  }
}

// Equality ----------------------------------------------------------------------------------------

TEST(Sharding, AdamEqualsOneProcess) { expect_one_process({}, {2, 3, 4}); }
TEST(Sharding, SgdEqualsOneProcess) { expect_one_process({.rule = "SGD"}, {2, 3, 4}); }
TEST(Sharding, LambEqualsOneProcess) { expect_one_process({.rule = "LAMB"}, {2, 3, 4}); }
TEST(Sharding, LarsEqualsOneProcess) { expect_one_process({.rule = "LARS"}, {2, 3, 4}); }
TEST(Sharding, ClippingEqualsOneProcess) {
  const ShardedJob job{.clip_norm = 0.2};
  const auto norms = train_alone(job).norms;
  EXPECT_GT(*std::min_element(norms.begin(), norms.end()), 0.2) << "clips in every step";
  expect_one_process(job, {2, 3, 4});
}
TEST(Sharding, SumsOfPassesEqualOneProcess) { expect_one_process({.passes = 3}, {2, 3}); }
TEST(Sharding, AccumulatedPassesEqualOneProcess) {
  expect_one_process({.clip_norm = 0.2, .passes = 3, .accumulates = true}, {2, 3, 4});
}

// Of the gradients of each pass a rank keeps its part, to which it adds that of the next.
TEST(Sharding, AccumulatedPassesKeepParts) {
  comm::run_threads(3, [](Communicator& comm) {
    for (const Sharding sharding : {Sharding::kGradients, Sharding::kParameters}) {
      ShardedModel trained(comm, sharded(sharding));
      const size_t arenas = trained.count([](const auto&) { return true; });
      const auto kept = [&] {
        return trained.count([](const auto& arena) { return arena.keeps_own_gradient(); });
      };
      trained.optimizer.zero_grads();
      for (int pass = 0; pass < 3; ++pass) {
        std::optional<NoSync> more;
        if (pass < 2) more.emplace(trained.optimizer.accumulate());
        trained.pass();
        EXPECT_EQ(kept(), arenas);
      }
      trained.optimizer.update();
    }
  });
}

TEST(Sharding, FrozenPartsEqualOneProcess) {
  expect_one_process({.clip_norm = 0.2, .freezes = true}, {3});
}
TEST(Sharding, ManyRanksEqualOneProcess) {
  expect_one_process({.samples = 13, .clip_norm = 0.2}, {6, 8});
}

// Within hosts ------------------------------------------------------------------------------------

// Parts within a host, copies across: 2 x 2 ranks keep as much as 2, and all of them the same bits.
TEST(ShardingWithinHosts, EqualsOneProcess) {
  for (const ShardedJob& base : {ShardedJob{},
                                 {.samples = 12},
                                 {.rule = "LAMB"},
                                 {.clip_norm = 0.2},
                                 {.passes = 3},
                                 {.passes = 3, .accumulates = true}}) {
    const ShardedResult expected = train_alone(base);
    for (const auto& [ranks, hosts] : {std::pair{4, 2}, {6, 3}}) {
      for (const BucketOptions& options : all_shardings()) {
        ShardedJob job = base;
        job.options = options, job.hosts = hosts;
        SCOPED_TRACE(
            message(job.rule, " on ", hosts, " hosts of ", ranks, " ranks, ", shown(options)));
        const std::vector<ShardedResult> results = over_threads(ranks, job);
        job.hosts = job.end = 1;
        const int64_t bytes = over_threads(ranks / hosts, job)[0].bytes;
        for (const ShardedResult& result : results) {
          expect_equal_training(result.values, expected.values, job.dtype);
          expect_near(result.norms, expected.norms);
          EXPECT_EQ(result.values, results[0].values);
          EXPECT_EQ(result.bytes, bytes);
        }
      }
    }
  }
}

TEST(ShardingWithinHosts, TravelsInSixteenBits) {
  ShardedJob job{.dtype = dtype::float32, .options = sharded(Sharding::kStates), .hosts = 2};
  const Values exact = over_threads(4, job)[0].values;
  job.options.reduce_dtype = dtype::bfloat16;
  const std::vector<ShardedResult> rounded = over_threads(4, job);
  double most = 0;
  for (size_t k = 0; k < exact.size(); ++k)
    for (size_t i = 0; i < exact[k].size(); ++i)
      most = std::max(most, std::abs(rounded[0].values[k][i] - exact[k][i]));
  EXPECT_GT(most, 0);
  EXPECT_LT(most, 0.02);
  for (const ShardedResult& result : rounded) EXPECT_EQ(result.values, rounded[0].values);
}

TEST(ShardingWithinHosts, StatesGoOnAnywhere) {
  ShardedJob job{.options = sharded(Sharding::kStates), .hosts = 2, .end = 3};
  const ShardedResult first = over_threads(4, job)[0];
  const ShardedResult expected = train_alone(ShardedJob{});
  job.begin = 3, job.end = ShardedJob{}.end, job.state = first.state, job.values = first.values;
  for (const auto& [ranks, hosts] : {std::pair{4, 2}, {4, 1}, {6, 3}, {1, 1}}) {
    job.hosts = hosts;
    for (const ShardedResult& result : over_threads(ranks, job))
      expect_equal_training(result.values, expected.values, job.dtype);
  }
}

TEST(ShardingWithinHosts, ArraysAreSpreadOverRanksOfTheBatch) {
  comm::run_threads(4, [](Communicator& comm) {
    Mesh mesh(comm, {{"data", 2}, {"tensor", 2}});
    expect_contains(error_of<ValueError>([&] {
                      BatchRanks(DataAxes{mesh, {"data"}, {"tensor"}});
                    }),
                    {"'tensor' of .shard is not in .batch"});
  });
}

// Element by element, each rank does what all do without.
TEST(Sharding, GivesTheBitsOfWholeArrays) {
  for (const Dtype dtype : {dtype::float32, dtype::bfloat16}) {
    const auto run = [&](const BucketOptions& options) {
      return over_threads(3, {.dtype = dtype, .options = options, .end = 6});
    };
    const Values whole = run({})[0].values;
    for (const BucketOptions& options : all_shardings())
      for (const ShardedResult& result : run(options))
        EXPECT_EQ(result.values, whole) << dtype << ' ' << shown(options);
  }
}

// The backward pass of a normalization does not read gamma for an empty batch. Its unit is gone by
// then, as others came after it.
struct Normalized : FunctionSet {
  F::Linear in{6, 8}, l1{8, 8}, l2{8, 8}, l3{8, 8}, out{8, 3};
  F::LayerNormalization layer{8};
  F::GroupNormalization group{2, 8};
  CATENA_FUNCTIONS(in, layer, group, l1, l2, l3, out)
  Variable operator()(const Variable& x) {
    const Variable h = group(layer(in(x)));
    return out(F::tanh(l3(F::tanh(l2(F::tanh(l1(h)))))));
  }
};

TEST(Sharding, RanksWithoutSamplesRunEveryUnit) {
  const auto run = [](const BucketOptions& options) {
    return of_ranks(2, [&](Communicator& comm) {
      random::default_state(comm.device()).seed(4);
      Normalized net;
      auto optimizer = set_up(net, optimizers::Adam(0.01), comm, options);
      const int64_t own = comm.rank() == 0 ? 5 : 0;
      const Array x = arange(30.0).astype(dtype::float32).reshape({5, 6})(Slice(0, own));
      const Array t = (arange(5) % 3).astype(dtype::int32)(Slice(0, own));
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grads();
        optimizer.set_batch_weight(own, 5);
        F::softmax_cross_entropy(net(Variable(x.to(comm.device()))), t.to(comm.device()))
            .backward();
        optimizer.update();
      }
      optimizer.gather_parameters();
      return values_of(net);
    })[0];
  };
  const Values whole = run(sharded(Sharding::kNone));
  for (const BucketOptions& options : all_shardings()) EXPECT_EQ(run(options), whole);
}

// Noise is that of parameters, wherever they lie.
TEST(Sharding, GradientNoiseIsThatOfWholeArrays) {
  const auto run = [](int ranks, const BucketOptions& options) {
    return of_ranks(ranks, [&](Communicator& comm) {
      ShardedModel trained(comm, options);
      trained.optimizer->add_hook("noise", optimizers::GradientNoise(0.01));
      for (int step = 0; step < 3; ++step) trained.step();
      trained.optimizer.gather_parameters();
      return values_of(trained.net);
    })[0];
  };
  const Values whole = run(1, sharded(Sharding::kNone));
  for (const int ranks : {2, 3})
    for (const BucketOptions& options : all_shardings())
      expect_equal_training(run(ranks, options), whole, dtype::float64, shown(options));
}

// Autocast makes copies in 16 bits, which go with the values.
TEST(Sharding, GivesTheBitsOfWholeArraysUnderAutocast) {
  const auto run = [&](const BucketOptions& options) {
    std::vector<Values> values(2);
    comm::run_threads(2, [&](Communicator& comm) {
      DeepNet net(dtype::float32);
      auto optimizer = set_up(net, optimizers::Adam(0.01), comm, options);
      for (int step = 0; step < 5; ++step) {
        optimizer.zero_grads();
        const Batch batch = batch_of(2 * step + comm.rank(), 4, dtype::float32);
        Variable loss;
        {
          const AutocastScope scope(dtype::bfloat16);
          loss = mean_loss(net, part(batch, 0, 4, comm.device()));
        }
        loss.backward();
        optimizer.update();
      }
      if (options.sharding == Sharding::kParameters) {
        for (const Parameter& p : net.parameters())
          EXPECT_FALSE(p.state()->low_memory().defined()) << "gone with the values";
      }
      optimizer.gather_parameters();
      values[size_t(comm.rank())] = values_of(net);
    });
    EXPECT_EQ(values[0], values[1]);
    return values[0];
  };
  const Values whole = run({});
  for (const BucketOptions& options : all_shardings()) EXPECT_EQ(run(options), whole);
}

// Layers of other kinds ask for their parameters' values, too.
struct Layers : FunctionSet {
  F::EmbedID embed{5, 12};
  F::Convolution2D convolution{1, 3, 3};
  F::BatchNormalization normalization{3};
  F::LSTM lstm{6, 4};
  F::Linear out{4, 3};
  CATENA_FUNCTIONS(embed, convolution, normalization, lstm, out)
  Variable operator()(const Array& ids) {
    const int64_t n = ids.length();
    const Variable image = F::reshape(embed(ids), {n, 1, 3, 4});
    const Variable h = F::tanh(normalization(convolution(image)));
    lstm.reset_state();
    return out(lstm(F::reshape(h, {n, 6})));
  }
};

TEST(Sharding, GivesTheBitsOfWholeArraysToAnyLayer) {
  const auto run = [&](const BucketOptions& options) {
    return of_ranks(2, [&](Communicator& comm) {
      random::default_state(comm.device()).seed(4);
      Layers net;
      auto optimizer = set_up(net, optimizers::Adam(0.01), comm, options);
      for (int step = 0; step < 4; ++step) {
        optimizer.zero_grads();
        const Array ids = array(std::vector<int32_t>{0, step % 5, 3, comm.rank()}, {4}, cpu(0));
        const Array labels = array(std::vector<int32_t>{0, 1, 2, step % 3}, {4}, cpu(0));
        F::softmax_cross_entropy(net(ids.to(comm.device())), labels.to(comm.device())).backward();
        optimizer.update();
      }
      optimizer.check_state();
      return values_of(net);
    })[0];
  };
  random::default_state(cpu(0)).seed(4);
  const Values whole = run({});
  for (const BucketOptions& options : all_shardings()) {
    random::default_state(cpu(0)).seed(4);
    EXPECT_EQ(run(options), whole) << shown(options);
  }
}

// Files -------------------------------------------------------------------------------------------

// Rank 0 keeps its part of what it loads; the other parts would be nowhere.
TEST(Sharding, StatesOfOneRankAloneAreNotBroadcast) {
  for (const BucketOptions& options : all_shardings()) {
    comm::run_threads(2, [&](Communicator& comm) {
      ShardedModel trained(comm, options);
      trained.step();
      const auto state = host_copy_of(trained.optimizer->state());
      if (comm.rank() == 0) trained.optimizer->load_state(state);
      if (options.sharding == Sharding::kNone) return trained.optimizer.broadcast_state();
      expect_contains(error_of<ValueError>([&] { trained.optimizer.broadcast_state(); }),
                      {"broadcast_state", "not loaded equally often on all ranks",
                       "load_state() on all ranks", "from_rank_0()"});
      EXPECT_THROW(trained.optimizer.broadcast_state(), ValueError) << "still";
      trained.optimizer->load_state(state);
      trained.optimizer.broadcast_state();
      trained.optimizer.broadcast_state();
      EXPECT_EQ(host_copy_of(trained.optimizer->state()).size(), state.size());
    });
  }
}

TEST(Sharding, TheWrappedOptimizerDoesNotUpdateAPartOfTheModel) {
  comm::run_threads(2, [](Communicator& comm) {
    DeepNet net(dtype::float64);
    net.to(comm.device());
    optimizers::Adam rule(0.01);
    const Batch batch = part(batch_of(0, 6, dtype::float64), 0, 6, comm.device());
    {
      auto optimizer = create_multi_node_optimizer(rule, comm, sharded(Sharding::kStates));
      optimizer.setup(net);
    }
    rule.zero_grads();
    mean_loss(net, batch).backward();
    expect_contains(error_of<ValueError>([&] { rule.update(); }),
                    {"update", "would update a part", "setup(model)"});
    rule.setup(net);
    mean_loss(net, batch).backward();
    rule.update();
  });
}

TEST(Sharding, StatesAreThoseOfAnyOther) {
  const ShardedJob whole{.options = {}, .end = 8};
  const ShardedResult expected = over_threads(2, whole)[0];
  int ranks_after = 1;
  for (const BucketOptions& saved_as : all_shardings()) {
    const ShardedResult saved = over_threads(3, {.options = saved_as, .end = 4})[1];
    for (const BucketOptions& loaded_as : all_shardings()) {
      ranks_after = ranks_after % 4 + 1;
      const ShardedJob rest{
          .options = loaded_as, .begin = 4, .end = 8, .state = saved.state, .values = saved.values};
      const std::string what =
          message("from ", shown(saved_as), " to ", ranks_after, " ranks, ", shown(loaded_as));
      for (const ShardedResult& result : over_threads(ranks_after, rest)) {
        expect_equal_training(result.values, expected.values, whole.dtype, what);
        expect_equal_training(result.averages, expected.averages, whole.dtype, what);
      }
    }
  }
}

// Loss scales -------------------------------------------------------------------------------------

// An infinite gradient of one element is in the part of one rank alone.
TEST(Sharding, WhatOneRankFindsSkipsTheUpdateOnAll) {
  for (const BucketOptions& options : all_shardings()) {
    comm::run_threads(3, [&](Communicator& comm) {
      ShardedModel trained(comm, options);
      const auto scale = optimizers::add_loss_scale(trained.optimizer.actual_optimizer(),
                                                    {.initial = 8, .interval = 100});
      trained.step();
      trained.optimizer.gather_parameters();
      const Values before = values_of(trained.net);
      trained.optimizer.zero_grads();
      {
        const auto apart = trained.optimizer.no_sync();
        trained.pass();
      }
      Array spoiled = zeros(trained.net.l4.b.shape(), dtype::float64);
      spoiled(Slice(2, 3)).fill(std::numeric_limits<double>::infinity());
      if (comm.rank() == 1) trained.net.l4.b.accumulate_grad(spoiled.to(comm.device()));
      trained.optimizer.update();
      EXPECT_EQ(trained.optimizer->t(), 1) << shown(options);
      EXPECT_EQ(scale->value(), 4) << shown(options);
      trained.optimizer.gather_parameters();
      EXPECT_EQ(values_of(trained.net), before) << shown(options);
      trained.optimizer.check_state();
    });
  }
}

// Small models ------------------------------------------------------------------------------------

struct Scalar : FunctionSet {
  F::Linear l1;
  Scalar() : l1(layer(1, 1, dtype::float64, 0.5)) {}
  CATENA_FUNCTIONS(l1)
};

// A hook that gathers within an update: the values of the other ranks are old when the rule has
// run.
TEST(Sharding, HooksMayGatherWithinAnUpdate) {
  for (const BucketOptions& options : all_shardings()) {
    comm::run_threads(2, [&](Communicator& comm) {
      ShardedModel plain(comm, options), gathered(comm, options);
      gathered.optimizer->add_hook(
          "gathers", [&](optimizers::UpdateContext&) { gathered.optimizer.gather_parameters(); });
      for (int i = 0; i < 4; ++i) {
        plain.step();
        gathered.step();
      }
      for (ShardedModel* trained : {&plain, &gathered}) trained->optimizer.gather_parameters();
      EXPECT_EQ(values_of(gathered.net), values_of(plain.net)) << shown(options);
    });
  }
}

// Fewer elements than ranks: some have none.
TEST(Sharding, PartsMayBeEmpty) {
  for (const BucketOptions& options : all_shardings()) {
    for (const char* rule : {"Adam", "LAMB", "LARS"}) {
      const std::vector<Values> values = of_ranks(4, [&](Communicator& comm) {
        Scalar net;
        auto optimizer = set_up(net, rule_of({.rule = rule}), comm, options);
        for (int step = 0; step < 3; ++step) {
          optimizer.zero_grads();
          F::sum(net.l1(full({2, 1}, double(comm.rank() + step), {dtype::float64, comm.device()})))
              .backward();
          optimizer.update();
        }
        optimizer.gather_parameters();
        return values_of(net);
      });
      for (const Values& one : values) EXPECT_EQ(one, values[0]) << rule << ' ' << shown(options);
      EXPECT_TRUE(std::isfinite(values[0][0][0]));
    }
  }
}

// GPUs --------------------------------------------------------------------------------------------

// Ranks that share a GPU.
TEST(ShardingOnGpus, OfOneGpuEqualsOneProcess) {
  CATENA_NEEDS_GPUS(1);
  for (const char* rule : {"Adam", "LAMB", "LARS"}) {
    ShardedJob job{.rule = rule, .samples = 16, .clip_norm = 0.2};
    const Values expected = train_alone(job, cuda_device(0)).values;
    for (const BucketOptions& options : all_shardings()) {
      job.options = options;
      const auto run = [&](Communicator& comm) {
        const Values values = train_sharded(comm, job).values;
        expect_equal_training(values, expected, job.dtype, message(rule, ", ", shown(options)));
      };
      comm::run_threads(2, run, {.devices = {cuda_device(0), cuda_device(0)}, .timeout = 60});
    }
  }
}

std::function<void()> long_wait() {
  return [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
}

const comm::ThreadsOptions kOneGpu{.devices = {cuda_device(0), cuda_device(0)}, .timeout = 60};

// The memory of a unit is not written for another one while any stream still reads it.
TEST(ShardingOnGpus, UnitsMayBeUsedOnSeveralStreams) {
  CATENA_NEEDS_GPUS(1);
  const auto run = [](Communicator& comm) {
    ShardedModel trained(comm, sharded(Sharding::kParameters));
    trained.step();
    const Variable x(full({4, 9}, 0.5, {dtype::float64, comm.device()}));
    trained.optimizer.gather_parameters();
    const auto expected = trained.net.l2(x).data().to_vector<double>();
    trained.optimizer->prepare_for_capture();  // lets the units go
    const Stream other = Stream::create(comm.device());
    other.wait(current_stream(comm.device()));
    Variable late;
    {
      const StreamScope scope(other);
      trained.net.l2(x);
      other.launch_host_func(long_wait());
      late = trained.net.l2(x);
    }
    trained.net.l5(trained.net.l4(trained.net.l3(x)));  // l5 has the size of l2
    other.synchronize();
    EXPECT_EQ(late.data().to_vector<double>(), expected);
  };
  comm::run_threads(2, run, kOneGpu);
}

// The first use of values waits until they are here; so does that of another stream.
TEST(ShardingOnGpus, AllStreamsWaitForValuesOnTheirWay) {
  CATENA_NEEDS_NCCL(2);
  for (const BucketOptions& options :
       {sharded(Sharding::kParameters), sharded(Sharding::kStates, true)}) {
    comm_suite::run_nccl(2, [&](Communicator& comm) {
      ShardedModel trained(comm, options);
      trained.step();
      const Variable x(full({4, 9}, 0.5, {dtype::float64, comm.device()}));
      trained.net.l2(x);
      trained.optimizer.zero_grads();
      trained.pass();
      current_stream(comm.device()).synchronize();
      const Stream other = Stream::create(comm.device());
      comm.side_stream().launch_host_func(long_wait());
      trained.optimizer.update();
      other.wait(current_stream(comm.device()));
      const Variable first = trained.net.l2(x);
      Variable second;
      {
        const StreamScope scope(other);
        second = trained.net.l2(x);
      }
      other.synchronize();
      EXPECT_EQ(second.data().to_vector<double>(), first.data().to_vector<double>())
          << shown(options);
    });
  }
}

// So does the stream of the update, for an array that is kept over it.
TEST(ShardingOnGpus, KeptArraysAreWaitedFor) {
  CATENA_NEEDS_NCCL(2);
  comm_suite::run_nccl(2, [](Communicator& comm) {
    ShardedModel trained(comm, sharded(Sharding::kStates, true));
    trained.step();
    const Array kept = trained.net.l5.W.data();
    trained.optimizer.zero_grads();
    trained.pass();
    current_stream(comm.device()).synchronize();
    comm.side_stream().launch_host_func(long_wait());
    trained.optimizer.update();
    const Array seen = kept.copy();
    EXPECT_EQ(seen.to_vector<double>(), trained.net.l5.W.data().to_vector<double>());
  });
}

TEST(ShardingOnGpus, CapturesWithoutPreparationSayWhatToCall) {
  CATENA_NEEDS_GPUS(1);
  const auto run = [](Communicator& comm) {
    ShardedModel ahead(comm, sharded(Sharding::kStates, true));
    const Variable x(ahead.batch().x);
    ahead.net.l1(x);
    for (int i = 0; i < 2; ++i) ahead.step();  // after the first all values are compared
    cuda::Graph graph;
    const auto capture = [&](ShardedModel& trained) {
      graph = cuda::Graph::capture(comm.device(), [&] { trained.net.l1(x); });
    };
    expect_contains(error_of<ValueError>([&] { capture(ahead); }),
                    {"parameter '/l", "on their way", "prepare_for_capture()", "Graph::capture"});
    ahead.optimizer->prepare_for_capture();
    capture(ahead);
    graph.launch();
    ahead.step();

    ShardedModel units(comm, sharded(Sharding::kParameters));
    units.step();
    units.optimizer.gather_parameters();
    capture(units);
    graph.launch();
    units.step();
    expect_contains(error_of<ValueError>([&] { graph.launch(); }),
                    {"Graph::launch", "an update has let go", "prepare_for_capture()"});
  };
  comm::run_threads(2, run, kOneGpu);
}

// A graph that has not run has brought nothing.
TEST(ShardingOnGpus, WhatACaptureGathersIsNotHereBeforeALaunch) {
  CATENA_NEEDS_NCCL(2);
  for (const BucketOptions& options :
       {sharded(Sharding::kParameters), sharded(Sharding::kStates, true)}) {
    comm_suite::run_nccl(2, [&](Communicator& comm) {
      ShardedModel whole(comm, sharded(Sharding::kNone)), trained(comm, options);
      const Batch batch = trained.batch();
      trained.step(batch);
      trained.optimizer->prepare_for_capture();
      cuda::Graph steps = cuda::Graph::capture(comm.device(), [&] { trained.step(batch); });
      for (int i = 0; i < 2; ++i) steps.launch();
      for (int i = 0; i < 3; ++i) whole.step(batch);
      trained.optimizer->prepare_for_capture();
      const cuda::Graph evaluation =
          cuda::Graph::capture(comm.device(), [&] { mean_loss(trained.net, batch); });
      trained.optimizer.gather_parameters();
      trained.optimizer.check_state();
      EXPECT_LE(largest_difference(values_of(trained.net), values_of(whole.net)), 1e-9)
          << shown(options);
    });
  }
}

// The parts that ranks send are those of the values that were loaded.
TEST(ShardingOnGpus, GraphsOfUnitsGatherWhatWasWrittenSince) {
  CATENA_NEEDS_NCCL(2);
  comm_suite::run_nccl(2, [](Communicator& comm) {
    ShardedModel trained(comm, sharded(Sharding::kParameters));
    trained.step();
    const Variable x(full({4, 9}, 0.5, {dtype::float64, comm.device()}));
    trained.optimizer->prepare_for_capture();
    Variable y;
    cuda::Graph graph = cuda::Graph::capture(comm.device(), [&] { y = trained.net.l2(x); });
    trained.optimizer.gather_parameters();
    trained.net.l2.W.copy_from(full(trained.net.l2.W.shape(), 0.25, {dtype::float64, cpu(0)}));
    const auto expected = trained.net.l2(x).data().to_vector<double>();
    graph.launch();
    EXPECT_EQ(y.data().to_vector<double>(), expected);
  });
}

TEST(ShardingOnGpus, WholeValuesAreNotCapturedWithoutPreparation) {
  CATENA_NEEDS_NCCL(2);
  comm_suite::run_nccl(2, [](Communicator& comm) {
    ShardedModel trained(comm, sharded(Sharding::kParameters));
    const Batch batch = trained.batch();
    trained.step(batch);  // loads kernels
    trained.optimizer.gather_parameters();
    const auto capture = [&] { cuda::Graph::capture(comm.device(), [&] { trained.step(batch); }); };
    expect_contains(error_of<ValueError>(capture),
                    {"Graph::capture", "were here before", "prepare_for_capture()"});
  });
}

struct EqualLayers : FunctionSet {
  std::vector<F::Linear> layers;
  explicit EqualLayers(int count) {
    for (int i = 0; i < count; ++i) layers.emplace_back(2048, 2048);
  }
  CATENA_FUNCTIONS(layers)
  Variable operator()(Variable h) {
    for (F::Linear& layer : layers) h = F::relu(layer(h));
    return h;
  }
};

// Each of its eight units is gathered twice.
TEST(ShardingOnGpus, GraphsUseTheMemoryOfUnitsAgain) {
  CATENA_NEEDS_NCCL(2);
  comm_suite::run_nccl(2, [](Communicator& comm) {
    constexpr size_t kUnit = size_t(2048) * 2048 * 4, kMostUnits = 4;
    EqualLayers net(8);
    auto optimizer = set_up(net, optimizers::SGD(0.01), comm, sharded(Sharding::kParameters));
    const Array x = ones({4, 2048}, {Dtype::kFloat32, comm.device()});
    const auto step = [&] {
      optimizer.zero_grads();
      F::mean(F::square(net(Variable(x)))).backward();
      optimizer.update();
    };
    step();
    step();
    optimizer.prepare_for_capture();
    const size_t before = memory_statistics(comm.device()).in_use;
    cuda::Graph graph = cuda::Graph::capture(comm.device(), step);
    graph.launch();
    synchronize(comm.device());
    EXPECT_LE(memory_statistics(comm.device()).in_use, before + kMostUnits * kUnit);
  });
}

// One GPU each, eagerly and as one captured graph; sums of NCCL are in an order of its own.
TEST(ShardingOnGpus, EqualsOneProcess) {
  CATENA_NEEDS_NCCL(2);
  const int ranks = std::min(4, comm_suite::most_ranks());
  for (const char* rule : {"Adam", "LAMB", "LARS"}) {
    ShardedJob job{.rule = rule, .samples = 16, .clip_norm = 0.2};
    const Values expected = train_alone(job, cuda_device(0)).values;
    for (const BucketOptions& options : all_shardings()) {
      for (const bool replays : {false, true}) {
        for (const bool rounds : {false, true}) {
          if (rounds && job.rule != "Adam") continue;
          SCOPED_TRACE(message(rule, ", ", shown(options), replays ? ", replayed" : ""));
          job.options = options;
          job.replays = replays;
          job.dtype = rounds ? dtype::float32 : dtype::float64;
          if (rounds) job.options.reduce_dtype = dtype::bfloat16;
          comm_suite::run_nccl(ranks, [&](Communicator& comm) {
            const Values values = train_sharded(comm, job).values;
            if (rounds)
              EXPECT_LE(largest_difference(values, expected), 0.1);
            else
              expect_equal_training(values, expected, job.dtype);
          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace catena::parallel
