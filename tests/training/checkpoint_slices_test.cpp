// Checkpoints of tensor-parallel layers, and of arrays in several orders in memory.
#include <gtest/gtest.h>

#include "catena/array/random.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/optimizers/moving_average.h"
#include "catena/parallel/grid.h"
#include "catena/parallel/tensor/embed_id.h"
#include "catena/parallel/tensor/linear.h"
#include "catena/training/checkpoint_folder.h"
#include "parallel/network.h"
#include "rank_results.h"
#include "temp_folder.h"

namespace catena::training {
namespace {

using catena::testing::values_of;
using catena::testing::wave;

namespace F = functions;

struct WholeLayers : FunctionSet {
  F::EmbedID ids{16, 12};
  F::Linear up{12, 24}, down{24, 12};
  CATENA_FUNCTIONS(ids, up, down)
};
struct SlicedLayers : FunctionSet {
  parallel::VocabParallelEmbedID ids;
  parallel::ColumnParallelLinear up;
  parallel::RowParallelLinear down;
  explicit SlicedLayers(Communicator& comm)
      : ids(16, 12, comm), up(12, 24, comm), down(24, 12, comm) {}
  CATENA_FUNCTIONS(ids, up, down)
};

void fill_gradients(Parameterized& model, double phase) {
  for (const auto& [path, p] : model.named_parameters())
    p.set_grad(wave(p.shape(), phase + double(path.size()), p.dtype()));
}

// What was saved by layers that are not split comes back after any number of ranks had it.
TEST(CheckpointSlices, OfTensorParallelLayersAreThoseOfTheWhole) {
  const TempFolder folder;
  WholeLayers whole;
  optimizers::Adam adam(0.01);
  optimizers::add_moving_average(adam, 0.9);
  adam.setup(whole);
  for (int i = 0; i < 3; ++i) {
    fill_gradients(whole, i);
    adam.update();
  }
  serializers::Checkpoint state;
  state.add("model", whole);
  state.add("optimizer", adam);
  CheckpointFolder(folder.path(), nullptr, {.keep = 9}).save(state, 1);
  struct Split {
    int data, tensor;
    parallel::Sharding sharding;
  };
  int64_t step = 1;
  for (const Split& split :
       {Split{1, 2, parallel::Sharding::kNone}, Split{2, 2, parallel::Sharding::kStates},
        Split{1, 4, parallel::Sharding::kNone}, Split{3, 1, parallel::Sharding::kStates},
        Split{2, 2, parallel::Sharding::kParameters}, Split{3, 1, parallel::Sharding::kParameters},
        Split{2, 1, parallel::Sharding::kNone}}) {
    comm::run_threads(split.data * split.tensor, [&](Communicator& comm) {
      const parallel::Grid grid(comm, {.data = split.data, .tensor = split.tensor});
      random::default_state(comm.device()).seed(1);
      SlicedLayers model(grid.tensor());
      model.to(comm.device());
      auto optimizer = create_multi_node_optimizer(optimizers::Adam(0.01), grid.data(),
                                                   {.sharding = split.sharding});
      optimizers::add_moving_average(optimizer.actual_optimizer(), 0.9);
      optimizer.setup(model);
      serializers::Checkpoint own;
      own.add("model", model);
      own.add("optimizer", optimizer.actual_optimizer());
      CheckpointFolder checkpoints(folder.path(), &comm, {.keep = 9});
      EXPECT_EQ(checkpoints.load(own), step);
      checkpoints.save(own, step + 1);
      EXPECT_EQ(optimizer.sharded() ? optimizer.sharded()->gathers() : 0, 0);
    });
    ++step;
  }
  WholeLayers again;
  optimizers::Adam other(0.5);
  optimizers::add_moving_average(other, 0.9);
  other.setup(again);
  serializers::Checkpoint loaded;
  loaded.add("model", again);
  loaded.add("optimizer", other);
  EXPECT_EQ(CheckpointFolder(folder.path()).load(loaded), step);
  EXPECT_EQ(values_of(again), values_of(whole));
  const NamedArrays expected = adam.state(), got = other.state();
  for (size_t k = 0; k < expected.size(); ++k)
    EXPECT_EQ(got[k].second.to_vector<double>(), expected[k].second.to_vector<double>())
        << expected[k].first;
}

// States of weights whose channels are last in memory, spread and not.
TEST(CheckpointSlices, TheOrderInMemoryDoesNotMatter) {
  const TempFolder folder;
  const Shape shape{4, 3, 5, 5};
  const Array values = wave(shape, 1, dtype::float32);
  const auto make = [&](bool channels_last) {
    Array a = channels_last ? Array::uninitialized(shape, dtype::float32, cpu(0),
                                                   MemoryOrder(Axes{0, 2, 3, 1}))
                            : Array::uninitialized(shape, dtype::float32, cpu(0));
    a.assign(values);
    return Parameter(a, "W");
  };
  struct One : Parameterized {
    Parameter W;
    void visit_parameters(const Visitor& visitor, const std::string& prefix) override {
      visitor(prefix + "W", W);
    }
  };
  const auto run = [&](int ranks, bool channels_last, parallel::Sharding sharding, int64_t step) {
    return testing::of_ranks(ranks, [&](Communicator& comm) {
      One model;
      model.W = make(channels_last);
      model.W.to(comm.device());
      auto optimizer =
          create_multi_node_optimizer(optimizers::Adam(0.01), comm, {.sharding = sharding});
      optimizer.setup(model);
      serializers::Checkpoint state;
      state.add("model", model);
      state.add("optimizer", optimizer.actual_optimizer());
      CheckpointFolder checkpoints(folder.path(), &comm);
      const int64_t loaded = step > 0 ? checkpoints.load(state) : 0;
      EXPECT_EQ(loaded, step);
      model.W.set_grad(wave(shape, double(step), dtype::float32));
      optimizer.update();
      checkpoints.save(state, step + 1);
      return model.W.data().to_vector<double>();
    })[0];
  };
  using parallel::Sharding;
  run(1, false, Sharding::kNone, 0);
  run(2, true, Sharding::kStates, 1);
  run(4, false, Sharding::kStates, 2);
  const auto got = run(2, true, Sharding::kNone, 3);
  One model;
  model.W = make(false);
  optimizers::Adam adam(0.01);
  adam.setup(model);
  for (int i = 0; i < 4; ++i) {
    model.W.set_grad(wave(shape, i, dtype::float32));
    adam.update();
  }
  EXPECT_EQ(got, model.W.data().to_vector<double>());
}

}  // namespace
}  // namespace catena::training
