// What ranks hold in common is compared at the first saves of a folder.
#include <gtest/gtest.h>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/comm/factory.h"
#include "catena/functions/connection/linear.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/moving_average.h"
#include "catena/parallel/grid.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/parallel/tensor/linear.h"
#include "catena/training/checkpoint_folder.h"
#include "error_text.h"
#include "temp_folder.h"

namespace catena::training {
namespace {

namespace F = functions;

// A layer with a slice of a vector of eight on each rank, and arrays that a rank has for itself.
struct Scale : Parameterized {
  OwnedParameter g;
  OwnedPersistent seen, mean, running;  // the last has a slice of eight as well
  explicit Scale(Communicator& comm)
      : g(full({8 / comm.size()}, 1.0 + comm.rank(), dtype::float32)),
        seen(full({2}, comm.rank(), dtype::float32), OverRanks::kPerRank),
        mean(full({2}, comm.rank(), dtype::float32), OverRanks::kMean),
        running(full({8 / comm.size()}, 1.0 + comm.rank(), dtype::float32), OverRanks::kMean) {}
  CATENA_PARAMETERS(g, seen, mean, running)
};
struct Block : FunctionSet {
  parallel::ColumnParallelLinear up;
  Scale scale;
  explicit Block(Communicator& comm) : up(4, 8, comm), scale(comm) {}
  CATENA_FUNCTIONS(up, scale)
};

std::string error_of_save(const std::string& path, Communicator& comm, Parameterized& model) {
  optimizers::Adam rule(0.1);
  rule.setup(model);
  serializers::Checkpoint state;
  state.add("model", model);
  state.add("optimizer", rule);
  CheckpointFolder folder(path, &comm);
  return error_of<ValueError>([&] { folder.save(state, 1); });
}

TEST(CheckpointEquality, ModelsOfTheSameNamesWithOtherValuesAreAnError) {
  const TempFolder folder;
  comm::run_threads(3, [&](Communicator& comm) {
    const DeviceScope scope(comm.device());
    random::default_state(comm.device()).seed(comm.rank() == 0 ? 1 : 2);
    F::Linear part(4, 4);
    expect_contains(error_of_save(folder.path(), comm, part),
                    {"CheckpointFolder::save: 'model/W' on ranks 1, 2 differ", "on rank 0",
                     "Checkpoint::declare_slice", "a path of its own"});
  });
  EXPECT_TRUE(CheckpointFolder(folder.path()).steps().empty());
}

// A difference of one bit, in a state of the optimizer.
TEST(CheckpointEquality, StatesAreComparedToo) {
  const TempFolder folder;
  comm::run_threads(2, [&](Communicator& comm) {
    const DeviceScope scope(comm.device());
    random::default_state(comm.device()).seed(1);
    F::Linear part(64, 64);
    optimizers::Adam rule(0.1);
    rule.setup(part);
    if (comm.rank() == 1) rule.state_of(part.W)[1](3, 5).fill(1e-30f);
    serializers::Checkpoint state;
    state.add("optimizer", rule);
    CheckpointFolder checkpoints(folder.path(), &comm);
    const std::string error = error_of<ValueError>([&] { checkpoints.save_async(state, 1); });
    expect_contains(error, {"CheckpointFolder::save_async: 'optimizer/v/W' on rank 1 differs"});
    if (comm.rank() == 1) rule.state_of(part.W)[1](3, 5).fill(0);
    checkpoints.save(state, 1);  // the folder goes on
    if (comm.rank() == 1) rule.state_of(part.W)[1](3, 5).fill(1);
    checkpoints.save(state, 1);  // a save of one step again
    expect_contains(error_of<ValueError>([&] { checkpoints.save(state, 2); }),
                    {"'optimizer/v/W' on rank 1 differs"});
    if (comm.rank() == 1) rule.state_of(part.W)[1](3, 5).fill(0);
    checkpoints.save(state, 2);
    if (comm.rank() == 1) rule.state_of(part.W)[1](3, 5).fill(1);
    checkpoints.save(state, 3);  // later saves do not read everything
  });
}

TEST(CheckpointEquality, PersistentArraysAreComparedByTheirDeclaration) {
  struct Kept : Parameterized {
    OwnedParameter W{zeros({2}, dtype::float32)};
    OwnedPersistent count;
    Kept(double value, OverRanks over_ranks)
        : count(full({2}, value, dtype::float32), over_ranks) {}
    CATENA_PARAMETERS(W, count)
  };
  for (const OverRanks over_ranks : {OverRanks::kEqual, OverRanks::kMean, OverRanks::kPerRank}) {
    const TempFolder folder;
    comm::run_threads(2, [&](Communicator& comm) {
      const DeviceScope scope(comm.device());
      Kept model(comm.rank(), over_ranks);
      const std::string error = error_of_save(folder.path(), comm, model);
      if (over_ranks == OverRanks::kEqual)
        expect_contains(error, {"'model/count' on rank 1 differs"});
      else
        EXPECT_EQ(error, "no error");
    });
  }
}

TEST(CheckpointEquality, StatesThatAreSpreadMayDiffer) {
  for (const parallel::Sharding sharding :
       {parallel::Sharding::kStates, parallel::Sharding::kParameters}) {
    const TempFolder folder;
    comm::run_threads(2, [&](Communicator& comm) {
      const DeviceScope scope(comm.device());
      random::default_state(comm.device()).seed(1);
      F::Linear part(16, 16);
      auto optimizer =
          create_multi_node_optimizer(optimizers::Adam(0.1), comm, {.sharding = sharding});
      optimizer.setup(part);
      part.W.set_grad(ones({16, 16}, {dtype::float32, comm.device()}));
      part.b.set_grad(ones({16}, {dtype::float32, comm.device()}));
      optimizer.update();
      serializers::Checkpoint state;
      state.add("model", part);
      state.add("optimizer", optimizer.actual_optimizer());
      CheckpointFolder checkpoints(folder.path(), &comm);
      checkpoints.save(state, 1);
      EXPECT_EQ(checkpoints.load(state), 1);
    });
  }
}

// Slices of a layer of one's own
// -------------------------------------------------------------------

TEST(CheckpointEquality, SlicesOfOnesOwnAreAnErrorUntilTheyAreDeclared) {
  const TempFolder folder;
  comm::run_threads(2, [&](Communicator& comm) {
    const DeviceScope scope(comm.device());
    random::default_state(comm.device()).seed(1);
    Block model(comm);
    expect_contains(error_of_save(folder.path(), comm, model), {"'model/scale/g' on rank 1"});
  });
}

// Its parameters, states and averages are saved as parts of the whole.
TEST(CheckpointEquality, DeclaredSlicesComeBackOnOtherNumbersOfRanks) {
  const TempFolder folder;
  for (const int ranks : {2, 4, 2}) {
    const bool is_first = CheckpointFolder(folder.path()).steps().empty();
    comm::run_threads(ranks, [&](Communicator& comm) {
      const DeviceScope scope(comm.device());
      const int64_t rank = comm.rank(), count = comm.size();
      random::default_state(comm.device()).seed(1);
      Block model(comm);
      optimizers::Adam rule(0.1);
      const auto average = optimizers::add_moving_average(rule, 0.9);
      rule.setup(model);
      serializers::Checkpoint state;
      state.add("model", model);
      state.add("optimizer", rule);
      const serializers::Checkpoint::AxisSlice slice{.axis = 0, .index = rank, .count = count};
      state.declare_slice(model.scale.g, slice);
      state.declare_slice(model.scale.running, slice);
      CheckpointFolder checkpoints(folder.path(), &comm, {.keep = 9});
      if (is_first) {
        const Array own = arange(8 / count, {dtype::float32, comm.device()}) + rank * 8 / count;
        model.scale.g.data().assign(own);
        rule.state_of(model.scale.g)[0].assign(own * 2);
        average->of(model.scale.g).assign(own * 3);
        model.scale.running.data().assign(own * 4);
        checkpoints.save(state, 1);
        return;
      }
      const int64_t step = checkpoints.load(state);
      for (int64_t k = 0; k < 8 / count; ++k) {
        const double expected = double(rank * 8 / count + k);
        EXPECT_EQ(model.scale.g.data()(k).item<float>(), expected);
        EXPECT_EQ(rule.state_of(model.scale.g)[0](k).item<float>(), 2 * expected);
        EXPECT_EQ(average->of(model.scale.g)(k).item<float>(), 3 * expected);
        EXPECT_EQ(model.scale.running.data()(k).item<float>(), 4 * expected);
      }
      checkpoints.save(state, step + 1);
    });
  }
}

TEST(CheckpointEquality, DeclaredSlicesAreChecked) {
  F::Linear part(4, 4);
  serializers::Checkpoint state;
  expect_contains(error_of<ValueError>([&] { state.declare_slice(part.b, {.axis = 1}); }),
                  {"declare_slice", "axis 1", "(4,)"});
  expect_contains(
      error_of<ValueError>([&] { state.declare_slice(part.b, {.index = 2, .count = 2}); }),
      {"slice 2 of 2"});
  expect_contains(error_of<ValueError>([&] { state.declare_slice(Parameter(), {}); }),
                  {"a parameter that is undefined"});
  const Persistent running(zeros({4}));
  expect_contains(error_of<ValueError>([&] { state.declare_slice(running, {.axis = 2}); }),
                  {"axis 2", "a persistent array of shape (4,)"});
  expect_contains(error_of<ValueError>([&] { state.declare_slice(Persistent(), {}); }),
                  {"a persistent array that is undefined"});
  const Persistent own(zeros({4}), OverRanks::kPerRank);
  expect_contains(error_of<ValueError>([&] { state.declare_slice(own, {}); }), {"kPerRank"});
}

}  // namespace
}  // namespace catena::training
