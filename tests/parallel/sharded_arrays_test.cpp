// Where gradients and parameters are in the steps of sharded training, and what asks for those that
// are not here.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "catena/functions/array/concat.h"
#include "catena/optimizers/hooks.h"
#include "error_text.h"
#include "parallel/sharded_training.h"
#include "rank_results.h"
#include "set_up.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // NOLINT: the network and its training
using optimizers::ParameterArena;

TEST(Sharding, TakesAShareOfTheMemory) {
  const auto bytes = [](Sharding sharding) {
    return double(over_threads(4, {.options = sharded(sharding), .end = 3})[0].bytes);
  };
  // Parameters, gradients and two states of four parts each, besides what fills parts up.
  const double whole = bytes(Sharding::kStates) / 2.5;
  EXPECT_EQ(bytes(Sharding::kGradients), whole * 1.75);
  EXPECT_LT(bytes(Sharding::kParameters), whole * 1.6);
}

// No more than three units in use at once, forward and backward, and each is gathered twice at
// most. From the second step on, the one that backward needs first after those stays.
TEST(Sharding, UnitsAreHereWhileTheyAreUsed) {
  comm::run_threads(2, [](Communicator& comm) {
    ShardedModel trained(comm, sharded(Sharding::kParameters));
    const auto here = [&] {
      return trained.count([](const ParameterArena& arena) { return arena.has_whole_data(); });
    };
    EXPECT_EQ(trained.optimizer->layout().arenas().size(), 6u);
    EXPECT_EQ(here(), 0u) << "from setup on";
    for (int step = 0; step < 3; ++step) {
      const int64_t before = trained.optimizer.sharded()->gathers();
      trained.optimizer.zero_grads();
      EXPECT_EQ(here(), 0u);
      const Variable loss = mean_loss(trained.net, trained.batch());
      EXPECT_EQ(here(), step == 0 ? 3u : 4u);
      loss.backward();
      EXPECT_EQ(here(), 3u);
      trained.optimizer.update();
      EXPECT_EQ(here(), 0u);
      EXPECT_EQ(trained.optimizer.sharded()->gathers() - before, 6 + (step == 0 ? 3 : 2)) << step;
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
    options.units = {"/l1/W", "/l"};  // "/l" is a part of none
    expect_contains(error_of<ValueError>([&] { ShardedModel(comm, options); }),
                    {"setup", "units", "'/l'", "/l1/W"});
    options.units = {"/l1/W", "/l2"};
    ShardedModel trained(comm, options);
    EXPECT_EQ(trained.optimizer->layout().arenas().size(), 7u);
    trained.step();
    trained.step();
    trained.optimizer.check_state();
  });
}

// The layers of a vector are together one child of the model.
TEST(Sharding, UnitsAreTheBlocksOfAContainer) {
  struct Block : FunctionSet {
    F::Linear up{9, 9}, down{9, 9};
    CATENA_FUNCTIONS(up, down)
  };
  struct Blocks : FunctionSet {
    F::Linear in{9, 9};
    std::vector<Block> body{3};
    CATENA_FUNCTIONS(in, body)
  };
  comm::run_threads(2, [](Communicator& comm) {
    Blocks net;
    auto optimizer = set_up(net, optimizers::SGD(0.1), comm, {.sharding = Sharding::kParameters});
    EXPECT_EQ(optimizer->layout().arenas().size(), 4u);
    for (const ParameterArena& arena : optimizer->layout().arenas()) {
      std::set<std::string> units;
      for (const auto& slot : arena.slots()) {
        const std::string& name = slot.parameter.name();
        units.insert(name.starts_with("/body") ? name.substr(0, name.find('/', 6)) : "/in");
      }
      EXPECT_EQ(units.size(), 1u) << *units.begin();
    }
  });
}

constexpr int64_t kLarge = 1500;

// A unit of 17 MiB.
struct LargeBlock : FunctionSet {
  F::Linear l1{kLarge, kLarge}, l2{kLarge, kLarge};
  CATENA_FUNCTIONS(l1, l2)
  Variable operator()(const Variable& x) { return l2(l1(x)); }
};
struct LargeNet : FunctionSet {
  std::vector<LargeBlock> blocks = std::vector<LargeBlock>(4);
  CATENA_FUNCTIONS(blocks)
};

struct LargeTraining {
  LargeNet net;
  MultiNodeOptimizer optimizer;
  explicit LargeTraining(Communicator& comm)
      : optimizer(testing::set_up(net, optimizers::SGD(1e-3), comm,
                                  {.sharding = Sharding::kParameters})) {}
  int64_t here() {
    const auto& arenas = optimizer->layout().arenas();
    return std::count_if(arenas.begin(), arenas.end(),
                         [](const ParameterArena& arena) { return arena.has_whole_data(); });
  }
  Variable input() const { return Variable(ones({1, kLarge}, {dtype::float32, net.device()})); }
  // The number of gathers in a step whose loss is the sum of what `forward` returns.
  template <typename Forward>
  int64_t gathers_of_step(const Forward& forward) {
    const int64_t before = optimizer.sharded()->gathers();
    optimizer.zero_grads();
    F::sum(forward(input())).backward();
    EXPECT_EQ(here(), 1);
    optimizer.update();
    return optimizer.sharded()->gathers() - before;
  }
};

// One unit is here at a time, but for those of one call, and one on its way, or kept for its next
// use.
TEST(Sharding, LargeUnitsAreFreedWhenOthersAreUsed) {
  comm::run_threads(2, [](Communicator& comm) {
    LargeTraining t(comm);
    const auto bias = [&](size_t block) -> Parameter& { return t.net.blocks[block].l1.b; };
    for (int step = 0; step < 4; ++step) {
      const auto forward = [&](Variable h) {
        for (size_t i = 0; i < 4; ++i) {
          h = t.net.blocks[i](h);
          EXPECT_EQ(t.here(), step > 0 && i == 3 ? 2 : 1) << "what backward uses next stays";
        }
        if (step == 3) F::sum(bias(0));
        EXPECT_EQ(t.here(), step == 1 || step == 2 ? 2 : 1) << "unless another one is used next";
        return h;
      };
      const int64_t second = step == 0 ? 3 : step < 3 ? 2 : 5;
      EXPECT_EQ(t.gathers_of_step(forward), 4 + second) << step;
    }
    EXPECT_EQ(F::concat({bias(0), bias(1), bias(3)}, 0).size(), 3 * kLarge);
    EXPECT_EQ(t.here(), 3);
    F::sum(bias(2));
    EXPECT_EQ(t.here(), 1);
    t.optimizer.check_state();
  });
}

TEST(Sharding, LargeUnitsThatAreUsedInTurnStay) {
  comm::run_threads(2, [](Communicator& comm) {
    LargeTraining t(comm);
    const auto forward = [&](Variable h) {
      for (size_t i = 0; i < 4; ++i) h = t.net.blocks[i % 2](h);
      return h;
    };
    std::vector<int64_t> gathers;
    for (int step = 0; step < 4; ++step) gathers.push_back(t.gathers_of_step(forward));
    EXPECT_EQ(gathers, (std::vector<int64_t>{7, 3, 2, 2}));
    // A step that ends without the use for which a unit was kept
    t.optimizer.zero_grads();
    forward(t.input());
    EXPECT_EQ(t.here(), 2);
    t.optimizer.update();
    EXPECT_EQ(t.here(), 0);
    t.gathers_of_step(forward);
    t.optimizer.check_state();
  });
}

// The unit with which a pass ends and the next one begins is gathered once for both.
TEST(Sharding, UnitsStayBetweenPassesThatAccumulate) {
  comm::run_threads(2, [](Communicator& comm) {
    ShardedModel trained(comm, sharded(Sharding::kParameters));
    for (int step = 0; step < 5; ++step) {
      const int64_t before = trained.optimizer.sharded()->gathers();
      trained.optimizer.zero_grads();
      {
        const NoSync more = trained.optimizer.accumulate();
        mean_loss(trained.net, trained.batch()).backward();
      }
      mean_loss(trained.net, trained.batch()).backward();
      trained.optimizer.update();
      // Six, and the other three for backward; a pass behind another has three already. From the
      // second step on, each backward has a fourth.
      EXPECT_EQ(trained.optimizer.sharded()->gathers() - before, step == 0 ? 15 : 13) << step;
    }
  });
}

// Gradients of buckets that are done are freed while backward goes on.
TEST(Sharding, GradientsAreMadeAndFreedByBuckets) {
  comm::run_threads(2, [](Communicator& comm) {
    struct Watch : BackwardObserver {
      ShardedModel& trained;
      size_t most = 0;
      explicit Watch(ShardedModel& t) : trained(t) {}
      void gradient_is_final(ParameterState&) override {
        most = std::max(most, trained.count([](const ParameterArena& arena) {
          return arena.has_whole_gradient();
        }));
      }
    };
    ShardedModel trained(comm, {150, 150, 0, Sharding::kGradients});
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

// Whatever the memory that gradients get has held before: of parameters that a step does not reach,
// of those that several passes reach, and beside all of them.
TEST(Sharding, GradientsDoNotDependOnWhatTheirMemoryHeld) {
  const auto train = [](const BucketOptions& options) {
    return of_ranks(2, [&](Communicator& comm) {
      ShardedModel trained(comm, options);
      trained.optimizer->add_hook("clip", optimizers::gradient_clipping(0.1));
      const auto pass = [&](int64_t k) {
        const Batch batch = part(batch_of(k + comm.rank(), 4, dtype::float64), 0, 4, comm.device());
        if (k % 3 == 0) return mean_loss(trained.net, batch).backward();
        F::sum(F::tanh(trained.net.l2(F::tanh(trained.net.l1(Variable(batch.x)))))).backward();
      };
      for (int64_t step = 0; step < 9; ++step) {
        trained.optimizer.zero_grads();
        if (step % 2 == 0) {
          const NoSync apart(comm);
          pass(step + 1);
        }
        pass(step);
        trained.optimizer.update();
      }
      trained.optimizer.check_state();
      trained.optimizer.gather_parameters();
      return values_of(trained.net);
    })[0];
  };
  const Values whole = train(sharded(Sharding::kNone));
  set_allocator([](Device device, size_t bytes) {
    StoragePtr storage = allocate(device, bytes);
    if (device.is_cpu()) std::memset(storage->data, 0xff, storage->bytes);
    return storage;
  });
  struct Restored {
    ~Restored() { set_allocator({}); }
  } restored;
  for (const BucketOptions& options : all_shardings())
    expect_equal_training(train(options), whole, dtype::float64, shown(options));
}

// Errors ------------------------------------------------------------------------------------------

TEST(Sharding, GradientsOfOtherRanksAreAnError) {
  for (const Sharding sharding : {Sharding::kStates, Sharding::kGradients}) {
    comm::run_threads(2, [&](Communicator& comm) {
      ShardedModel trained(comm, {1 << 20, 1 << 20, 0, sharding});
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

// Then they are written as any other.
void expect_that_writes_count(ShardedModel& trained) {
  trained.net.l1.b.copy_from(zeros(trained.net.l1.b.shape(), dtype::float64));
  trained.step();
  trained.optimizer.gather_parameters();
  const auto b = trained.net.l1.b.data().to_vector<double>();
  for (size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(b[i], 0, 0.011) << "one step from 0";
  trained.optimizer.check_state();
}

TEST(Sharding, ValuesThatAreNotHereAreAnError) {
  comm::run_threads(2, [](Communicator& comm) {
    ShardedModel trained(comm, sharded(Sharding::kParameters));
    trained.step();
    for (const Parameter& p : trained.net.parameters())
      expect_contains(error_of<ValueError>([&] { p.data(); }),
                      {"Parameter::data", p.name().c_str(), "not in this process"});
    trained.optimizer.gather_parameters();
    expect_that_writes_count(trained);
  });
}

// One rank alone reads, as for a line of a log.
TEST(Sharding, ValuesOnTheirWayArriveForWhoeverReadsThem) {
  for (const Sharding sharding : {Sharding::kStates, Sharding::kGradients}) {
    comm::run_threads(2, [&](Communicator& comm) {
      ShardedModel whole(comm, sharded(Sharding::kNone)), ahead(comm, sharded(sharding, true));
      for (int step = 0; step < 3; ++step) {
        whole.step();
        ahead.step();
        if (comm.rank() != step % 2) continue;
        EXPECT_EQ(values_of(ahead.net), values_of(whole.net)) << name(sharding) << step;
      }
      expect_that_writes_count(ahead);
    });
  }
}

// An update waits for the arrays that a program has kept, and for no others. Ranks keep what they
// like.
TEST(Sharding, KeptArraysShowTheValuesOfTheUpdate) {
  for (const Sharding sharding : {Sharding::kStates, Sharding::kGradients}) {
    comm::run_threads(2, [&](Communicator& comm) {
      ShardedModel whole(comm, sharded(Sharding::kNone)), ahead(comm, sharded(sharding, true));
      const auto step = [&] {
        whole.step();
        ahead.step();
      };
      const auto absent = [&] {
        int count = 0;
        for (const Parameter& p : ahead.net.parameters()) count += p.state()->data->is_absent;
        return count;
      };
      const auto watched = [&](DeepNet& net) {  // a view or the array itself
        return comm.rank() == 0 ? net.l6.W.data()(Slice(1, 3)) : net.l3.b.data();
      };
      for (int i = 0; i < 2; ++i) step();  // the first update compares all values
      const int all = absent();
      EXPECT_GT(all, 0);
      const Variable loss = mean_loss(ahead.net, ahead.batch());
      step();
      EXPECT_EQ(absent(), all) << "graphs refer to parameters, not to their arrays";
      Array kept = watched(ahead.net);
      step();
      EXPECT_LT(absent(), all);
      EXPECT_GT(absent(), 0);
      EXPECT_EQ(kept.to_vector<double>(), watched(whole.net).to_vector<double>());
      kept = {};
      step();
      EXPECT_EQ(absent(), all);
      expect_that_writes_count(ahead);
    });
  }
}

// A replay writes the values of parameters that are not here then, through the arrays of the
// capture.
TEST(Sharding, WritesOfReplaysCountForParametersThatAreAway) {
  comm::run_threads(2, [&](Communicator& comm) {
    ShardedModel ahead(comm, sharded(Sharding::kStates, true));
    ahead.step();
    ahead.optimizer->prepare_for_capture();  // all values are here
    const ParameterArena captured = ahead.optimizer->layout().arenas()[0];
    const ParameterState& state = *captured.slots()[0].parameter.state();
    ahead.optimizer->arena(0).keep_own_data(false);
    ASSERT_TRUE(state.data->is_absent);
    const uint64_t before = state.data->writes();
    captured.note_write();
    EXPECT_GT(state.data->writes(), before);
    const uint64_t now = state.data->writes();
    ahead.optimizer.gather_parameters();
    EXPECT_EQ(state.data->writes(), now) << "they came, and nothing has changed";
  });
}

// What a capture would find is what every replay finds.
TEST(Sharding, CapturesBeginWithValuesWhereStepsLeaveThem) {
  comm::run_threads(2, [&](Communicator& comm) {
    ShardedModel units(comm, sharded(Sharding::kParameters));
    units.step();
    units.optimizer.gather_parameters();
    units.optimizer->prepare_for_capture();
    EXPECT_THROW(units.net.l1.W.data(), ValueError);
    units.step();
    ShardedModel ahead(comm, sharded(Sharding::kStates, true));
    for (int i = 0; i < 2; ++i) ahead.step();
    EXPECT_TRUE(ahead.net.l1.W.state()->data->is_absent);
    ahead.optimizer->prepare_for_capture();
    EXPECT_TRUE(ahead.net.l1.W.data().defined());
    ahead.step();
    ahead.optimizer.check_state();
  });
}

// Units of one size that ranks use in different orders are not taken for each other.
TEST(Sharding, UnitsInAnotherOrderAreNamed) {
  const auto errors = errors_of_ranks(AfterError::kGoOn, 2, [](Communicator& comm) {
    ShardedModel trained(comm, sharded(Sharding::kParameters));
    trained.optimizer.zero_grads();
    const Variable x(zeros({1, 9}, {dtype::float64, comm.device()}));
    comm.rank() == 0 ? trained.net.l2(x) : trained.net.l5(x);
  });
  for (const std::string& error : errors)
    expect_contains(error, {"all_gather", "bucket 4 of optimizer 1", "bucket 1 of optimizer 1"});
}

// A pass after the update would add to averages of which a rank has a part.
TEST(Sharding, PassesBetweenUpdateAndZeroGradsAreAnErrorOfTheUpdate) {
  for (const Sharding sharding : {Sharding::kStates, Sharding::kGradients}) {
    comm::run_threads(2, [&](Communicator& comm) {
      ShardedModel trained(comm, sharded(sharding));
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
    return of_ranks(3, [&](Communicator& comm) {
      ShardedModel trained(comm, options);
      trained.step();
      trained.optimizer.zero_grads();
      const Batch own = part(batch_of(comm.rank(), 4, dtype::float64), 0, 4, comm.device());
      mean_loss(trained.net, own).backward();
      trained.optimizer.update();
      trained.optimizer.update();
      trained.optimizer.check_state();
      return values_of(trained.net);
    })[0];
  };
  const Values whole = run(sharded(Sharding::kNone));
  for (const BucketOptions& options : all_shardings())
    expect_equal_training(run(options), whole, dtype::float64, shown(options));
}

TEST(Sharding, ModelsMayMove) {
  for (const BucketOptions& options : all_shardings()) {
    const auto run = [&](bool moves) {
      return of_ranks(3, [&](Communicator& comm) {
        ShardedModel trained(comm, options);
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
        return values_of(trained.net);
      })[0];
    };
    EXPECT_EQ(run(true), run(false)) << shown(options);
  }
}

// Its first operands' units would be freed for those of the later ones.
TEST(Sharding, OneCallUsesThreeUnitsAtMost) {
  comm::run_threads(2, [&](Communicator& comm) {
    ShardedModel trained(comm, sharded(Sharding::kParameters));
    trained.step();
    DeepNet& net = trained.net;
    EXPECT_EQ(F::concat({net.l1.b, net.l2.b, net.l5.b}, 0).size(), 27);
    expect_contains(error_of<ValueError>([&] {
                      F::concat({net.l1.b, net.l2.b, net.l5.b, net.l4.b}, 0);
                    }),
                    {"Concat", "'/l1/b'", "more parts of the model", "BucketOptions::units"});
    trained.step();
    trained.optimizer.check_state();
  });
}

TEST(Sharding, AssigningALayerWhoseValuesAreAwayIsAnError) {
  comm::run_threads(2, [&](Communicator& comm) {
    ShardedModel trained(comm, sharded(Sharding::kParameters));
    trained.step();
    EXPECT_THROW(trained.net.l2 = F::Linear(9, 9), ValueError);
    trained.step();
    trained.optimizer.check_state();
  });
}

// What each of two ranks throws in a step after `change`, which rank 1 alone makes.
std::vector<std::string> errors_after(const BucketOptions& options, int steps,
                                      const std::function<void(ShardedModel&)>& change) {
  return errors_of_ranks(AfterError::kGoOn, 2, [&](Communicator& comm) {
    ShardedModel trained(comm, options);
    for (int i = 0; i < steps; ++i) trained.step();
    trained.optimizer.gather_parameters();
    if (comm.rank() == 1) change(trained);
    trained.step();
  });
}

// Before the ranks send each other what they keep: it would be a mixture, alike everywhere.
TEST(Sharding, ValuesThatOneRankHasWrittenAreFound) {
  for (const BucketOptions& options : all_shardings()) {
    for (const int steps : {0, 2}) {
      if (options.sharding == Sharding::kNone && steps > 0) continue;  // in the 64th update
      const auto write = [](ShardedModel& trained) { trained.net.l3.W.data().fill(1); };
      for (const std::string& error : errors_after(options, steps, write))
        expect_contains(error, {"do not hold the same state", "parameter '/l3/W'", "on rank 1"});
    }
    const auto freeze = [](ShardedModel& trained) { trained.optimizer->freeze("/l3"); };
    for (const std::string& error : errors_after(options, 0, freeze))
      expect_contains(error, {"the frozen parameters are none on rank 0, /l3/W, /l3/b on rank 1"});
  }
}

// Each rank changes the part that it updates, so that parameters of all ranks stay alike.
TEST(Sharding, HooksOfOneRankAloneAreFound) {
  const std::vector<std::pair<optimizers::Hook, std::string>> hooks{
      {optimizers::weight_decay(0.25), "none on rank 0, weight decay 0.25 on rank 1"},
      {optimizers::gradient_clipping(2), "none on rank 0, clipping by the norm 2 on rank 1"},
      {optimizers::Lasso(0.5), "none on rank 0, sign decay 0.5 on rank 1"},
      {optimizers::gradient_hard_clipping(-1, 2), "none on rank 0, hard clipping -1 2 on rank 1"},
      {optimizers::GradientNoise(0.5, 1, 7), "none on rank 0, noise 0.5 1 0 7 on rank 1"},
      {[](optimizers::UpdateContext& update) {
         update.note_change({"own", {}});
       },
       "none on rank 0, own on rank 1"}};
  for (const BucketOptions& options : all_shardings())
    for (const auto& [hook, text] : hooks) {
      // The norm of gradients that are spread is a call of all ranks, which notice it there.
      const bool is_norm = text.find("norm") != std::string::npos;
      if (is_norm && options.sharding != Sharding::kNone) continue;
      const auto add = [&](ShardedModel& trained) { trained.optimizer->add_hook("hook", hook); };
      for (const std::string& error : errors_after(options, 0, add))
        expect_contains(
            error, {"what hooks did to the gradients", text.c_str(), "hyper-parameters and hooks"});
    }
}

// Averages of which ranks keep parts do not move along.
TEST(Sharding, ModelsThatMoveBetweenBackwardAndUpdateAreAnErrorOfTheUpdate) {
  for (const BucketOptions& options : all_shardings()) {
    comm::run_threads(2, [&](Communicator& comm) {
      ShardedModel trained(comm, options);
      trained.step();
      trained.optimizer.zero_grads();
      trained.pass();
      trained.optimizer.gather_parameters();
      trained.net.l6.to(cpu(40));
      trained.net.l6.to(comm.device());
      if (options.sharding == Sharding::kNone) return trained.optimizer.update();
      expect_contains(error_of<GradientError>([&] { trained.optimizer.update(); }),
                      {"update", "have moved", "zero_grads() after"});
      trained.step();
      trained.optimizer.check_state();
    });
  }
}

struct ZeroNet : FunctionSet {
  F::Linear l1{1, 2, {.initialW = zeros({2, 1}, dtype::float64)}};
  CATENA_FUNCTIONS(l1)
};

// Of two optimizers that hold a model in turn, the one whose arenas it is in makes the step.
TEST(Sharding, OptimizersMayTakeTheModelFromEachOther) {
  for (const BucketOptions& options : all_shardings()) {
    for (const bool clears : {false, true}) {
      comm::run_threads(2, [&](Communicator& comm) {
        ZeroNet net;
        net.to(comm.device());
        auto first =
            create_multi_node_optimizer(optimizers::SGD(1), comm, sharded(Sharding::kNone));
        auto second = create_multi_node_optimizer(optimizers::SGD(1), comm, options);
        const auto step = [&](MultiNodeOptimizer& optimizer) {
          optimizer.zero_grads();
          F::sum(net.l1(ones({1, 1}, {dtype::float64, comm.device()}))).backward();
          optimizer.update();
          optimizer.gather_parameters();
        };
        first.setup(net);
        step(first);
        second.setup(net);
        step(second);
        for (int turn = 0; turn < 2; ++turn) {
          if (clears) second.zero_grads();
          step(first);
          if (clears) first.zero_grads();
          step(second);
        }
        step(first);
        for (const Parameter& p : net.parameters())
          EXPECT_EQ(p.data().to_vector<double>(), std::vector<double>(size_t(p.size()), -7))
              << p.name() << ' ' << shown(options) << clears;
        first.check_state();
      });
    }
  }
}

TEST(Sharding, GradientsInPartsAreNotForAnotherOptimizer) {
  comm::run_threads(2, [&](Communicator& comm) {
    ZeroNet net;
    net.to(comm.device());
    auto first = create_multi_node_optimizer(optimizers::SGD(1), comm, sharded(Sharding::kNone));
    auto second = create_multi_node_optimizer(optimizers::SGD(1), comm, sharded(Sharding::kStates));
    first.setup(net);
    second.setup(net);
    second.zero_grads();
    F::sum(net.l1(ones({1, 1}, {dtype::float64, comm.device()}))).backward();
    second.update();
    expect_contains(error_of<GradientError>([&] { first.update(); }),
                    {"update", "another optimizer has taken them", "zero_grads()"});
  });
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

}  // namespace
}  // namespace catena::parallel
