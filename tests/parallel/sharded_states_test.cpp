// States spread over ranks against states that every rank holds: equal bits, less memory, and files
// that fit any number of ranks.
#include "catena/parallel/sharded_states.h"

#include <gtest/gtest.h>

#include "catena/optimizers/ada_delta.h"
#include "catena/optimizers/adamw.h"
#include "catena/optimizers/lamb.h"
#include "catena/optimizers/lion.h"
#include "catena/optimizers/rmsprop_graves.h"
#include "catena/optimizers/smorms3.h"
#include "error_text.h"
#include "parallel/network.h"

namespace catena::parallel {
namespace {

using catena::testing::batch_of;
using catena::testing::loss_of;
using catena::testing::Net;
using catena::testing::part;
using catena::testing::Values;
using catena::testing::values_of;
using optimizers::Adam;

using State = std::map<std::string, Array>;

State copy_of(const NamedArrays& state) {
  State result;
  for (const auto& [name, array] : state) result[name] = array.to(cpu(0)).copy();
  return result;
}
std::map<std::string, std::vector<double>> numbers_of(const State& state) {
  std::map<std::string, std::vector<double>> result;
  for (const auto& [name, array] : state) result[name] = array.to_vector<double>();
  return result;
}

struct Result {
  std::vector<Values> values;  // of each rank
  std::vector<State> states;   // the same
  std::vector<int64_t> bytes;  // of master copies and states
};

struct Job {
  Dtype dtype = dtype::float32;
  Sharding sharding = Sharding::kNone;
  int begin = 0, end = 5;
  const State* start = nullptr;
  const Values* values = nullptr;
  bool clips = false;
};

void train(Communicator& comm, const Job& run, Result& result) {
  Net net(run.dtype, comm.rank());
  net.to(comm.device());
  auto optimizer = create_multi_node_optimizer(Adam(0.01), comm, {.sharding = run.sharding});
  optimizer->add_group("biases", {"*/b"}, {.rate = 0.5});
  if (run.clips) optimizer->add_hook("clip", optimizers::gradient_clipping(0.1));
  optimizer.setup(net);
  if (run.start != nullptr) {
    const Parameters parameters = net.parameters();
    for (size_t k = 0; k < parameters.size(); ++k)
      parameters[k].copy_from(
          array((*run.values)[k], parameters[k].shape(), cpu(0)).astype(run.dtype));
    optimizer->load_state(*run.start);
  }
  for (int step = run.begin; step < run.end; ++step) {
    optimizer.zero_grads();
    // All ranks see the same batch, so that results do not depend on their number.
    loss_of(net, part(batch_of(step, 6, run.dtype), 0, 6, comm.device())).backward();
    optimizer.update();
  }
  optimizer.check_state();
  EXPECT_EQ(optimizer->t(), run.end);
  EXPECT_EQ(optimizer->is_sharded(), run.sharding == Sharding::kStates && comm.size() > 1);
  const auto rank = static_cast<size_t>(comm.rank());
  result.values[rank] = values_of(net);
  result.states[rank] = copy_of(optimizer->state());
  for (const auto& arena : optimizer->layout().arenas()) result.bytes[rank] += arena.state_bytes();
}

Result run_on(int ranks, const Job& run) {
  Result result;
  result.values.resize(size_t(ranks));
  result.states.resize(size_t(ranks));
  result.bytes.resize(size_t(ranks));
  comm::run_threads(ranks, [&](Communicator& comm) { train(comm, run, result); });
  return result;
}

class ShardedStatesTest : public ::testing::TestWithParam<Dtype> {};

TEST_P(ShardedStatesTest, GiveTheBitsOfStatesThatAllRanksHold) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const bool clips : {false, true}) {
      const Result whole = run_on(ranks, {.dtype = GetParam(), .clips = clips});
      const Result parts =
          run_on(ranks, {.dtype = GetParam(), .sharding = Sharding::kStates, .clips = clips});
      EXPECT_EQ(parts.values, whole.values) << ranks;
      for (int r = 0; r < ranks; ++r)
        EXPECT_EQ(numbers_of(parts.states[size_t(r)]), numbers_of(whole.states[size_t(r)]))
            << ranks;
    }
  }
}

template <class Rule>
Values trained_by(Sharding sharding, Dtype dtype) {
  Values result;
  comm::run_threads(3, [&](Communicator& comm) {
    Net net(dtype, comm.rank());
    net.to(comm.device());
    auto optimizer = create_multi_node_optimizer(Rule(0.01), comm, {.sharding = sharding});
    optimizer.setup(net);
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grads();
      loss_of(net, part(batch_of(step, 6, dtype), 0, 6, comm.device())).backward();
      optimizer.update();
    }
    optimizer.check_state();
    if (comm.rank() == 0) result = values_of(net);
  });
  return result;
}

template <class Rule>
void expect_equal_bits(Dtype dtype) {
  EXPECT_EQ(trained_by<Rule>(Sharding::kStates, dtype), trained_by<Rule>(Sharding::kNone, dtype));
}

TEST_P(ShardedStatesTest, GiveTheBitsOfOtherRules) {
  expect_equal_bits<optimizers::RMSpropGraves>(GetParam());
  expect_equal_bits<optimizers::SMORMS3>(GetParam());
  expect_equal_bits<optimizers::AdaDelta>(GetParam());
  expect_equal_bits<optimizers::Lion>(GetParam());
}

// Its norms are summed in another order.
TEST_P(ShardedStatesTest, SumTheNormsOfSteps) {
  const Values whole = trained_by<optimizers::LAMB>(Sharding::kNone, GetParam());
  const Values parts = trained_by<optimizers::LAMB>(Sharding::kStates, GetParam());
  for (size_t k = 0; k < whole.size(); ++k)
    for (size_t i = 0; i < whole[k].size(); ++i)
      EXPECT_NEAR(parts[k][i], whole[k][i], itemsize(GetParam()) == 2 ? 0.02 : 1e-6);
}

TEST_P(ShardedStatesTest, TakeAShareOfTheMemory) {
  const int64_t whole = run_on(1, {.dtype = GetParam()}).bytes[0];
  ASSERT_GT(whole, 0);
  for (const int ranks : {2, 3, 4}) {
    const Result parts = run_on(ranks, {.dtype = GetParam(), .sharding = Sharding::kStates});
    // Parts begin at multiples of 256 bytes of the parameters.
    const int64_t blocks = itemsize(GetParam()) == 2 ? 3 : 2;
    const int64_t rounding = blocks * 256 * (itemsize(GetParam()) == 2 ? 2 : 1);
    for (const int64_t bytes : parts.bytes) {
      EXPECT_LE(bytes, whole / ranks + rounding) << ranks;
      EXPECT_EQ(bytes, parts.bytes[0]) << "equal parts";
    }
  }
}

// Saved with three parts, loaded with none, two, three and four, and the other way round.
TEST_P(ShardedStatesTest, AreLoadedOnOtherNumbersOfRanks) {
  const Dtype dtype = GetParam();
  for (const Sharding saved_as : {Sharding::kNone, Sharding::kStates}) {
    const Result saved = run_on(3, {.dtype = dtype, .sharding = saved_as, .end = 3});
    const Job rest{.dtype = dtype,
                   .begin = 3,
                   .end = 6,
                   .start = &saved.states[1],
                   .values = &saved.values[0]};
    const Result expected = run_on(2, rest);
    for (const int ranks : {1, 2, 4}) {
      Job sharded = rest;
      sharded.sharding = Sharding::kStates;
      const Result got = run_on(ranks, sharded);
      if (ranks == 2) {
        EXPECT_EQ(got.values, expected.values);
      }
      catena::testing::expect_equal_training(got.values[0], expected.values[0], dtype::float32);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, ShardedStatesTest,
                         ::testing::Values(dtype::float32, dtype::bfloat16),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST(ShardedStates, KnowTheirParts) {
  comm::run_threads(2, [&](Communicator& comm) {
    Net net(dtype::float32);
    net.to(comm.device());
    auto optimizer = create_multi_node_optimizer(Adam(0.01), comm, {.sharding = Sharding::kStates});
    optimizer.setup(net);
    int64_t elements = 0;
    for (const optimizers::ShardedArray& part : optimizer->local_state()) {
      EXPECT_EQ(part.local.size(), part.covers.size()) << part.name;
      EXPECT_LE(part.covers.end, element_count(part.shape)) << part.name;
      elements += part.covers.size();
    }
    const auto all = comm.all_gather_object(elements);
    EXPECT_EQ(all[0] + all[1], 2 * net.parameter_count());
    expect_contains(error_of<ValueError>([&] { optimizer->state_of(net.l1.W); }),
                    {"state_of", "spread over processes", "local_state()"});
  });
}

// The arenas are laid out anew on all ranks, with their parts of the states.
TEST(ShardedStates, FollowAModelThatWentAway) {
  const auto run = [](bool moves) {
    Values result;
    comm::run_threads(3, [&](Communicator& comm) {
      Net net(dtype::float32);
      net.to(comm.device());
      auto optimizer =
          create_multi_node_optimizer(Adam(0.01), comm, {.sharding = Sharding::kStates});
      optimizer.setup(net);
      for (int step = 0; step < 4; ++step) {
        if (moves && step == 2) {
          net.to(cpu(40));
          net.to(comm.device());
        }
        optimizer.zero_grads();
        loss_of(net, part(batch_of(step, 6, dtype::float32), 0, 6, comm.device())).backward();
        optimizer.update();
        EXPECT_TRUE(optimizer->layout().in_place());
      }
      if (comm.rank() == 0) result = values_of(net);
    });
    return result;
  };
  EXPECT_EQ(run(true), run(false));
}

// Of one rank alone this is an error on all, which says so, and not a hang.
TEST(ShardedStates, AModelThatMovedOnOneRankIsAnError) {
  std::vector<std::string> errors(2);
  try {
    comm::run_threads(2, [&](Communicator& comm) {
      Net net(dtype::float32);
      net.to(comm.device());
      auto optimizer = create_multi_node_optimizer(Adam(0.01), comm);
      optimizer.setup(net);
      if (comm.rank() == 1) {
        net.to(cpu(40));
        net.to(comm.device());
      }
      const auto step = [&] {
        optimizer.zero_grads();
        loss_of(net, part(batch_of(0, 6, dtype::float32), 0, 6, comm.device())).backward();
        optimizer.update();
      };
      errors[size_t(comm.rank())] = error_of<CommError>(step);
    });
  } catch (const Error&) {
  }
  for (const std::string& error : errors)
    expect_contains(error, {"the parameters of rank 1 have moved, those of rank 0 have not",
                            "all_reduce", "on all ranks in the same step"});
}

struct Plain : Optimizer {
  Plain() : Optimizer("lr", 0.1) {}
  void update_one(const Array& p, const Array& g, const Arrays&) override { p -= lr() * g; }
};

TEST(ShardedStates, WantRulesOverArenas) {
  comm::run_threads(2, [&](Communicator& comm) {
    Net net(dtype::float32);
    net.to(comm.device());
    auto optimizer = create_multi_node_optimizer(std::make_unique<Plain>(), comm,
                                                 {.sharding = Sharding::kStates});
    expect_contains(error_of<ValueError>([&] { optimizer.setup(net); }),
                    {"setup", "2 processes", "parameter by parameter", "Sharding::kNone"});
    Adam late;
    late.setup(net);
    expect_contains(
        error_of<ValueError>([&] { late.add_stage(std::make_shared<ShardedStates>(comm)); }),
        {"add_stage", "before setup"});
  });
}

}  // namespace
}  // namespace catena::parallel
