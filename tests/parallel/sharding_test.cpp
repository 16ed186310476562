// Gradients and parameters spread over ranks against one process, over threads and GPUs.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>

#include "catena/array/random.h"
#include "catena/array/reduction.h"
#include "catena/autograd/autocast.h"
#include "catena/functions/activation.h"
#include "catena/functions/array.h"
#include "catena/functions/connection.h"
#include "catena/functions/normalization.h"
#include "catena/optimizers/loss_scale.h"
#include "comm/nccl.h"
#include "error_text.h"
#include "parallel/sharded_training.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // NOLINT: the network and its training
using optimizers::ParameterArena;

// What each rank ends with.
std::vector<ShardedResult> over_threads(int ranks, const ShardedJob& job) {
  std::vector<ShardedResult> results(static_cast<size_t>(ranks));
  comm::run_threads(
      ranks, [&](Communicator& comm) { results[size_t(comm.rank())] = train_sharded(comm, job); });
  return results;
}

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
TEST(Sharding, FrozenPartsEqualOneProcess) {
  expect_one_process({.clip_norm = 0.2, .freezes = true}, {3});
}
TEST(Sharding, ManyRanksEqualOneProcess) {
  expect_one_process({.samples = 13, .clip_norm = 0.2}, {6, 8});
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

// A rank that has run out of samples takes part in the update alone.
TEST(Sharding, RanksWithoutSamplesTakePart) {
  for (const BucketOptions& options : all_shardings()) {
    if (options.sharding == Sharding::kParameters) continue;  // every rank uses every unit
    const ShardedJob job{.options = options, .end = 5, .samples = 2};
    for (const ShardedResult& result : over_threads(3, job))
      expect_equal_training(result.values, train_alone(job).values, job.dtype, shown(options));
  }
}

// Autocast makes copies in 16 bits, which go with the values.
TEST(Sharding, GivesTheBitsOfWholeArraysUnderAutocast) {
  const auto run = [&](const BucketOptions& options) {
    std::vector<Values> values(2);
    comm::run_threads(2, [&](Communicator& comm) {
      DeepNet net(dtype::float32);
      net.to(comm.device());
      auto optimizer = create_multi_node_optimizer(optimizers::Adam(0.01), comm, options);
      optimizer.setup(net);
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
    const Variable h = F::relu(normalization(convolution(image)));
    lstm.reset_state();
    return out(lstm(F::reshape(h, {n, 6})));
  }
};

TEST(Sharding, GivesTheBitsOfWholeArraysToAnyLayer) {
  const auto run = [&](const BucketOptions& options) {
    Values result;
    comm::run_threads(2, [&](Communicator& comm) {
      random::default_state(comm.device()).seed(4);
      Layers net;
      net.to(comm.device());
      auto optimizer = create_multi_node_optimizer(optimizers::Adam(0.01), comm, options);
      optimizer.setup(net);
      for (int step = 0; step < 4; ++step) {
        optimizer.zero_grads();
        const Array ids = array(std::vector<int32_t>{0, step % 5, 3, comm.rank()}, {4}, cpu(0));
        const Array labels = array(std::vector<int32_t>{0, 1, 2, step % 3}, {4}, cpu(0));
        F::softmax_cross_entropy(net(ids.to(comm.device())), labels.to(comm.device())).backward();
        optimizer.update();
      }
      optimizer.check_state();
      if (comm.rank() == 0) result = values_of(net);
    });
    return result;
  };
  random::default_state(cpu(0)).seed(4);
  const Values whole = run({});
  for (const BucketOptions& options : all_shardings()) {
    random::default_state(cpu(0)).seed(4);
    EXPECT_EQ(run(options), whole) << shown(options);
  }
}

// Files -------------------------------------------------------------------------------------------

TEST(Sharding, StatesAreThoseOfAnyOther) {
  const ShardedJob whole{.options = {}, .end = 8};
  const Values expected = over_threads(2, whole)[0].values;
  int ranks_after = 1;
  for (const BucketOptions& saved_as : all_shardings()) {
    const ShardedResult saved = over_threads(3, {.options = saved_as, .end = 4})[1];
    for (const BucketOptions& loaded_as : all_shardings()) {
      ranks_after = ranks_after % 4 + 1;
      const ShardedJob rest{
          .options = loaded_as, .begin = 4, .end = 8, .state = saved.state, .values = saved.values};
      for (const ShardedResult& result : over_threads(ranks_after, rest))
        expect_equal_training(
            result.values, expected, whole.dtype,
            message("from ", shown(saved_as), " to ", ranks_after, " ranks, ", shown(loaded_as)));
    }
  }
}

// Memory ------------------------------------------------------------------------------------------

TEST(Sharding, TakesAShareOfTheMemory) {
  const auto bytes = [](Sharding sharding) {
    return double(over_threads(4, {.options = sharded(sharding), .end = 3})[0].bytes);
  };
  // Parameters, gradients and two states of four parts each, besides what fills parts up.
  const double whole = bytes(Sharding::kStates) / 2.5;
  EXPECT_EQ(bytes(Sharding::kGradients), whole * 1.75);
  EXPECT_LT(bytes(Sharding::kParameters), whole * 1.6);
}

struct Trained {
  DeepNet net{dtype::float64};
  MultiNodeOptimizer optimizer;
  Trained(Communicator& comm, const BucketOptions& options)
      : optimizer(create_multi_node_optimizer(optimizers::Adam(0.01), comm, options)) {
    net.to(comm.device());
    optimizer.setup(net);
  }
  Batch batch() const { return part(batch_of(0, 6, dtype::float64), 0, 6, optimizer_device()); }
  Device optimizer_device() const { return net.l1.W.device(); }
  void pass() { mean_loss(net, batch()).backward(); }
  void step() {
    optimizer.zero_grads();
    pass();
    optimizer.update();
  }
  size_t count(const std::function<bool(const ParameterArena&)>& is_such) const {
    const auto& arenas = const_cast<MultiNodeOptimizer&>(optimizer)->layout().arenas();
    return size_t(std::count_if(arenas.begin(), arenas.end(), is_such));
  }
};

// No more than three units at once, forward and backward, and each is gathered twice at most.
TEST(Sharding, UnitsAreHereWhileTheyAreUsed) {
  comm::run_threads(2, [](Communicator& comm) {
    Trained trained(comm, sharded(Sharding::kParameters));
    const auto here = [&] {
      return trained.count([](const ParameterArena& arena) { return arena.has_whole_data(); });
    };
    EXPECT_EQ(trained.optimizer->layout().arenas().size(), 6u);
    EXPECT_EQ(here(), 6u) << "until the first step, for loading";
    for (int step = 0; step < 3; ++step) {
      const int64_t before = trained.optimizer.sharded()->gathers();
      trained.optimizer.zero_grads();
      EXPECT_EQ(here(), 0u);
      const Variable loss = mean_loss(trained.net, trained.batch());
      EXPECT_EQ(here(), 3u);
      loss.backward();
      EXPECT_EQ(here(), 3u);
      trained.optimizer.update();
      EXPECT_EQ(here(), 0u);
      EXPECT_EQ(trained.optimizer.sharded()->gathers() - before, 6 + 3) << step;
    }
    trained.optimizer.gather_parameters();
    EXPECT_EQ(here(), 6u);
    mean_loss(trained.net, trained.batch());
    EXPECT_EQ(here(), 6u) << "until the next update";
    trained.step();
    EXPECT_EQ(here(), 0u);
    const int64_t before = trained.optimizer.sharded()->gathers();
    Variable h(zeros({1, 9}, {dtype::float64, comm.device()}));
    for (int k = 0; k < 4; ++k) h = trained.net.l5(trained.net.l2(h));
    trained.net.l3(h);
    EXPECT_EQ(trained.optimizer.sharded()->gathers() - before, 3) << "of units in turn";
  });
}

TEST(Sharding, UnitsMayBeNamed) {
  comm::run_threads(2, [](Communicator& comm) {
    BucketOptions options = sharded(Sharding::kParameters);
    options.units = {"/l1/W", "/l", "/l2"};  // "/l" is a part of none
    Trained trained(comm, options);
    EXPECT_EQ(trained.optimizer->layout().arenas().size(), 7u);
    trained.step();
    trained.step();
    trained.optimizer.check_state();
  });
}

// Gradients of buckets that are done are freed while backward goes on.
TEST(Sharding, GradientsAreMadeAndFreedByBuckets) {
  comm::run_threads(2, [](Communicator& comm) {
    struct Watch : BackwardObserver {
      Trained& trained;
      size_t most = 0;
      explicit Watch(Trained& t) : trained(t) {}
      void gradient_is_final(ParameterState&) override {
        most = std::max(most, trained.count([](const ParameterArena& arena) {
          return arena.has_whole_gradient();
        }));
      }
    };
    Trained trained(comm, {150, 150, 0, Sharding::kGradients});
    const size_t arenas = trained.optimizer->layout().arenas().size();
    ASSERT_GT(arenas, 5u);
    Watch watch(trained);
    for (const Parameter& p : trained.net.parameters()) watch.observe(p);
    for (int step = 0; step < 3; ++step) {
      trained.step();
      EXPECT_EQ(trained.count([](const ParameterArena& a) { return a.has_whole_gradient(); }), 0u);
    }
    EXPECT_GE(watch.most, 1u);
    EXPECT_LE(watch.most, 3u);
  });
}

// Errors ------------------------------------------------------------------------------------------

TEST(Sharding, GradientsOfOtherRanksAreAnError) {
  for (const Sharding sharding : {Sharding::kStates, Sharding::kGradients}) {
    comm::run_threads(2, [&](Communicator& comm) {
      Trained trained(comm, {1 << 20, 1 << 20, 0, sharding});
      trained.optimizer.zero_grads();
      trained.pass();
      const auto read = [&] {
        for (const Parameter& p : trained.net.parameters()) p.grad();
      };
      expect_contains(error_of<GradientError>(read),
                      {"the gradient of parameter '/l", "not in this process"});
      trained.optimizer.update();
      trained.optimizer.zero_grads();
      for (const Parameter& p : trained.net.parameters())
        EXPECT_EQ(p.grad().to_vector<double>(), std::vector<double>(size_t(p.size()), 0.0));
      trained.pass();
      trained.optimizer.update();
    });
  }
}

TEST(Sharding, ValuesThatAreNotHereAreAnError) {
  for (const BucketOptions& options :
       {sharded(Sharding::kParameters), sharded(Sharding::kGradients, true)}) {
    comm::run_threads(2, [&](Communicator& comm) {
      Trained trained(comm, options);
      trained.step();
      for (const Parameter& p : trained.net.parameters())
        expect_contains(error_of<ValueError>([&] { p.data(); }),
                        {"Parameter::data", p.name().c_str(), "not in this process"});
      trained.optimizer.gather_parameters();
      const Values values = values_of(trained.net);
      trained.net.l1.b.copy_from(zeros(trained.net.l1.b.shape(), dtype::float64));
      trained.step();
      trained.optimizer.gather_parameters();
      const auto b = trained.net.l1.b.data().to_vector<double>();
      for (size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(b[i], 0, 0.011) << "one step from 0";
      trained.optimizer.check_state();
    });
  }
}

// What a capture would find is what every replay finds.
TEST(Sharding, CapturesBeginWithValuesWhereStepsLeaveThem) {
  comm::run_threads(2, [&](Communicator& comm) {
    Trained units(comm, sharded(Sharding::kParameters));
    units.step();
    units.optimizer.gather_parameters();
    units.optimizer->prepare_for_capture();
    EXPECT_THROW(units.net.l1.W.data(), ValueError);
    units.step();
    Trained ahead(comm, sharded(Sharding::kStates, true));
    ahead.step();
    EXPECT_THROW(ahead.net.l1.W.data(), ValueError);
    ahead.optimizer->prepare_for_capture();
    EXPECT_TRUE(ahead.net.l1.W.data().defined());
    ahead.step();
    ahead.optimizer.check_state();
  });
}

// Units of one size that ranks use in different orders are not taken for each other.
TEST(Sharding, UnitsInAnotherOrderAreNamed) {
  std::vector<std::string> errors(2);
  try {
    comm::run_threads(2, [&](Communicator& comm) {
      Trained trained(comm, sharded(Sharding::kParameters));
      trained.optimizer.zero_grads();
      const Variable x(zeros({1, 9}, {dtype::float64, comm.device()}));
      errors[size_t(comm.rank())] =
          error_of<CommError>([&] { comm.rank() == 0 ? trained.net.l2(x) : trained.net.l5(x); });
    });
  } catch (const Error&) {
  }
  for (const std::string& error : errors)
    expect_contains(error, {"all_gather", "bucket 4 of optimizer 1", "bucket 1 of optimizer 1"});
}

// A pass after the update would add to averages of which a rank has a part.
TEST(Sharding, PassesBetweenUpdateAndZeroGradsAreAnErrorOfTheUpdate) {
  for (const Sharding sharding : {Sharding::kStates, Sharding::kGradients}) {
    comm::run_threads(2, [&](Communicator& comm) {
      Trained trained(comm, sharded(sharding));
      trained.step();
      trained.pass();
      expect_contains(error_of<GradientError>([&] { trained.optimizer.update(); }),
                      {"update", "since the last update", "zero_grads()"});
      trained.net.zero_grads();  // the model's
      trained.pass();
      trained.optimizer.update();
      trained.optimizer.check_state();
      trained.optimizer.update();  // the same gradients once more
      trained.optimizer.check_state();
    });
  }
}

// Without zero_grads the averages are still there, in parts.
TEST(Sharding, ASecondUpdateUsesTheSameGradients) {
  const auto run = [](const BucketOptions& options) {
    Values values;
    comm::run_threads(3, [&](Communicator& comm) {
      Trained trained(comm, options);
      trained.step();
      trained.optimizer.zero_grads();
      const Batch own = part(batch_of(comm.rank(), 4, dtype::float64), 0, 4, comm.device());
      mean_loss(trained.net, own).backward();
      trained.optimizer.update();
      trained.optimizer.update();
      trained.optimizer.check_state();
      if (comm.rank() == 0) values = values_of(trained.net);
    });
    return values;
  };
  const Values whole = run(sharded(Sharding::kNone));
  for (const BucketOptions& options : all_shardings())
    expect_equal_training(run(options), whole, dtype::float64, shown(options));
}

TEST(Sharding, ModelsMayMove) {
  for (const BucketOptions& options : all_shardings()) {
    const auto run = [&](bool moves) {
      Values values;
      comm::run_threads(3, [&](Communicator& comm) {
        Trained trained(comm, options);
        for (int step = 0; step < 4; ++step) {
          if (moves && step == 2) {
            trained.net.l1(zeros({1, kInputs}, {dtype::float64, comm.device()}));  // brings it
            trained.net.l1.to(cpu(40));
            trained.net.l1.to(comm.device());
          }
          trained.step();
          EXPECT_TRUE(trained.optimizer->layout().in_place());
        }
        trained.optimizer.check_state();
        if (comm.rank() == 0) values = values_of(trained.net);
      });
      return values;
    };
    EXPECT_EQ(run(true), run(false)) << shown(options);
  }
}

// Another optimizer takes the model over.
TEST(Sharding, TheModelOutlivesTheOptimizer) {
  for (const BucketOptions& options : all_shardings()) {
    if (options.sharding == Sharding::kParameters) continue;
    comm::run_threads(2, [&](Communicator& comm) {
      DeepNet net(dtype::float64);
      net.to(comm.device());
      {
        auto optimizer = create_multi_node_optimizer(optimizers::Adam(0.01), comm, options);
        optimizer.setup(net);
        optimizer.zero_grads();
        mean_loss(net, part(batch_of(0, 6, dtype::float64), 0, 6, comm.device())).backward();
        optimizer.update();
      }
      for (const Parameter& p : net.parameters())
        EXPECT_TRUE(p.state()->is_stale() || p.state()->gradient_memory().defined()) << p.name();
      optimizers::Adam next(0.01);
      next.setup(net);
      next.zero_grads();
      mean_loss(net, part(batch_of(0, 6, dtype::float64), 0, 6, comm.device())).backward();
      next.update();
      EXPECT_TRUE(std::isfinite(net.l1.W.data().to_vector<double>()[0]));
    });
  }
}

// Loss scales -------------------------------------------------------------------------------------

// An infinite gradient of one element is in the part of one rank alone.
TEST(Sharding, WhatOneRankFindsSkipsTheUpdateOnAll) {
  for (const BucketOptions& options : all_shardings()) {
    comm::run_threads(3, [&](Communicator& comm) {
      Trained trained(comm, options);
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

// Fewer elements than ranks: some have none.
TEST(Sharding, PartsMayBeEmpty) {
  for (const BucketOptions& options : all_shardings()) {
    for (const char* rule : {"Adam", "LAMB", "LARS"}) {
      std::vector<Values> values(4);
      comm::run_threads(4, [&](Communicator& comm) {
        Scalar net;
        net.to(comm.device());
        auto optimizer = create_multi_node_optimizer(rule_of({.rule = rule}), comm, options);
        optimizer.setup(net);
        for (int step = 0; step < 3; ++step) {
          optimizer.zero_grads();
          F::sum(net.l1(full({2, 1}, double(comm.rank() + step), {dtype::float64, comm.device()})))
              .backward();
          optimizer.update();
        }
        optimizer.gather_parameters();
        values[size_t(comm.rank())] = values_of(net);
      });
      for (const Values& one : values) EXPECT_EQ(one, values[0]) << rule << ' ' << shown(options);
      EXPECT_TRUE(std::isfinite(values[0][0][0]));
    }
  }
}

// Gradients in 16 bits ----------------------------------------------------------------------------

struct Weights : FunctionSet {
  OwnedParameter w;
  explicit Weights(int64_t n) : w(zeros({n}, dtype::float32)) {}
  CATENA_PARAMETERS(w)
};

// A rank's gradients: some of one size, of both signs, and of those of rank 0 some so large that a
// one is lost beside them in 16 bits.
Array gradient_of(int rank, int64_t n, Dtype rounded_to) {
  const double large = rounded_to == dtype::bfloat16 ? 256 : 2048;
  std::vector<double> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const double wave = std::sin(1.7 * double(i) + 0.9 * rank);
    values[size_t(i)] = i % 3 == 0   ? (rank == 0 ? large : 1)
                        : i % 3 == 1 ? wave
                                     : wave * wave * 1e-3;
  }
  return array(values, {n}, cpu(0)).astype(dtype::float32);
}

struct Errors {
  double worst = 0;  // largest |got - exact| / (mean of |gradient|) over elements
  void add(double got, double exact, double mean_size) {
    if (mean_size > 0) worst = std::max(worst, std::abs(got - exact) / mean_size);
  }
};

class SixteenBitTest : public ::testing::TestWithParam<std::tuple<Dtype, int>> {};

TEST_P(SixteenBitTest, StaysWithinTheBoundThatSumsIn16BitsViolate) {
  const auto [dtype, ranks] = GetParam();
  constexpr int64_t kElements = 301;
  const double u = dtype == dtype::bfloat16 ? std::ldexp(1, -8) : std::ldexp(1, -11);
  const double additions = ranks * std::ldexp(1, -23);
  std::vector<std::vector<double>> gradients;
  for (int r = 0; r < ranks; ++r)
    gradients.push_back(gradient_of(r, kElements, dtype).to_vector<double>());
  std::vector<double> exact(kElements), size(kElements);
  for (const auto& g : gradients) {
    for (size_t i = 0; i < exact.size(); ++i) {
      exact[i] += g[i] / ranks;
      size[i] += std::abs(g[i]) / ranks;
    }
  }
  for (const Sharding sharding : {Sharding::kNone, Sharding::kStates, Sharding::kGradients}) {
    for (const bool weighted : {false, true}) {
      std::mutex mutex;
      Errors errors;
      int64_t seen = 0;
      comm::run_threads(ranks, [&, dtype = dtype](Communicator& comm) {
        Weights model(kElements);
        model.to(comm.device());
        BucketOptions options = sharded(sharding);
        options.reduce_dtype = dtype;
        auto optimizer = create_multi_node_optimizer(optimizers::SGD(1), comm, options);
        optimizer.setup(model);
        if (weighted) optimizer.set_batch_weight(1, comm.size());
        optimizer.zero_grads();
        const Array own = gradient_of(comm.rank(), kElements, dtype).to(comm.device());
        F::sum(model.w.variable() * Variable::constant(own)).backward();
        const ParameterArena& arena = optimizer->layout().arenas()[0];
        const auto got = arena.gradient().memory.to_vector<double>();
        const int64_t first = arena.gradient().covers.begin;
        optimizer.update();
        optimizer.check_state();
        const std::lock_guard lock(mutex);
        for (int64_t i = 0; i < int64_t(got.size()) && first + i < kElements; ++i, ++seen) {
          const auto k = static_cast<size_t>(first + i);
          errors.add(got[size_t(i)], exact[k], size[k]);
        }
      });
      EXPECT_EQ(seen, sharding == Sharding::kNone ? ranks * kElements : kElements);
      const double roundings = sharding == Sharding::kNone ? 2 * u + u * u : u;
      EXPECT_LE(errors.worst, roundings + additions) << name(sharding) << weighted;
      EXPECT_GT(errors.worst, u / 8) << "rounds";
    }
  }
  // The same sums with a rounding after each addition.
  Errors in_16_bits;
  for (size_t i = 0; i < exact.size(); ++i) {
    Array sum = zeros({}, dtype);
    for (const auto& g : gradients) sum = sum + full({}, g[i], dtype);
    in_16_bits.add(sum.astype(dtype::float64).item<double>() / ranks, exact[i], size[i]);
  }
  EXPECT_GT(in_16_bits.worst, 2 * u + u * u + additions);
}

INSTANTIATE_TEST_SUITE_P(All, SixteenBitTest,
                         ::testing::Values(std::tuple(dtype::bfloat16, 8),
                                           std::tuple(dtype::float16, 8)),
                         [](const auto& info) {
                           return std::string(name(std::get<0>(info.param)));
                         });

TEST(SixteenBits, TrainTo) {
  for (const BucketOptions& sharding : all_shardings()) {
    ShardedJob job{.dtype = dtype::float32, .options = sharding, .end = 10};
    const Values expected = train_alone(job).values;
    job.options.reduce_dtype = dtype::bfloat16;
    const auto results = over_threads(3, job);
    for (const ShardedResult& result : results) {
      EXPECT_EQ(result.values, results[0].values) << shown(sharding);
      EXPECT_LE(largest_difference(result.values, expected), 0.05) << shown(sharding);
      EXPECT_GT(largest_difference(result.values, expected), 1e-6) << shown(sharding);
    }
  }
}

TEST(SixteenBits, OtherDtypesAreRefused) {
  comm::run_threads(1, [](Communicator& comm) {
    BucketOptions options;
    options.reduce_dtype = dtype::float32;
    expect_contains(error_of<ValueError>(
                        [&] { create_multi_node_optimizer(optimizers::SGD(1), comm, options); }),
                    {"reduce_dtype of float16 or bfloat16", "float32"});
  });
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
