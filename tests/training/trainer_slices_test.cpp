// Trainers over a grid whose models have tensor-parallel layers.
#include <filesystem>
#include <fstream>

#include "catena/comm/factory.h"
#include "catena/functions/connection/linear.h"
#include "catena/parallel/grid.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/parallel/tensor/linear.h"
#include "catena/training/trainer.h"
#include "error_text.h"
#include "rank_results.h"
#include "temp_folder.h"
#include "training/problem.h"

namespace catena::training {
namespace {

namespace F = functions;
using parallel::GridShape;

struct SlicedNet : FunctionSet {
  parallel::ColumnParallelLinear up;
  parallel::RowParallelLinear down;
  explicit SlicedNet(Communicator& comm)
      : up(testing::kInputs, 16, comm), down(16, testing::kClasses, comm) {}
  CATENA_FUNCTIONS(up, down)
  Variable operator()(const Variable& x) { return down(F::tanh(up(x))); }
};

struct WholeNet : FunctionSet {
  F::Linear up{testing::kInputs, 16}, down{16, testing::kClasses};
  explicit WholeNet(Communicator&) {}
  CATENA_FUNCTIONS(up, down)
  Variable operator()(const Variable& x) { return down(F::tanh(up(x))); }
};

// One rank with everything that its run needs.
template <class Net>
struct GridRank {
  parallel::Grid grid;
  Net model;
  MultiNodeOptimizer optimizer;
  datasets::ResidentIterator batches;
  StandardUpdater updater;

  GridRank(Communicator& comm, const GridShape& shape)
      : grid((random::default_state(comm.device()).seed(1), comm), shape),
        model(grid.tensor()),
        optimizer(create_multi_node_optimizer(optimizers::Adam(0.01), grid.data())),
        batches(make_data(), datasets::ShuffledIterator(kSamples, 6, 1), comm.device(),
                {grid.data().rank(), grid.data().size()}),
        updater((optimizer.setup(model), batches), make_step(optimizer, score())) {}

  Score score() {
    return [this](const datasets::Batch& batch) -> Variables {
      return {F::softmax_cross_entropy(model(Variable::constant(batch.x())), batch.t())};
    };
  }
  TrainerOptions options(const std::string& out, int64_t iterations) {
    return {.iterations = iterations,
            .out = out,
            .metrics = {"loss"},
            .report = {.iterations = 2},
            .snapshot = {.iterations = 3},
            .checkpoints = CheckpointFolderOptions{},
            .ranks = &grid.comm(),
            .silent = true};
  }
};

struct Ended {
  std::vector<std::vector<double>> parameters;  // of each rank
  double loss = 0;
};

template <class Net = SlicedNet>
Ended run_grid(const GridShape& shape, const std::string& out, int64_t iterations,
               int64_t resumes_at = 0) {
  const int ranks = shape.data * shape.tensor;
  Ended run{.parameters = std::vector<std::vector<double>>(size_t(ranks))};
  comm::run_threads(ranks, [&](Communicator& comm) {
    const DeviceScope scope(comm.device());
    GridRank<Net> one(comm, shape);
    Trainer trainer(one.updater, one.model, one.optimizer, one.options(out, iterations));
    EXPECT_EQ(trainer.has_checkpoint(), resumes_at > 0);
    if (resumes_at > 0) trainer.resume();
    EXPECT_EQ(trainer.iteration(), resumes_at);
    trainer.run();
    run.parameters[size_t(comm.rank())] = numbers_of(one.model);
    if (comm.rank() == 0) run.loss = trainer.value("train_loss");
  });
  return run;
}

TEST(TrainerSlices, ARunOverAGridGoesOnWithTheSameBits) {
  for (const GridShape& shape : {GridShape{.data = 1, .tensor = 2}, {.data = 2, .tensor = 2}}) {
    const TempFolder whole, parts;
    const Ended expected = run_grid(shape, whole.path(), 10);
    run_grid(shape, parts.path(), 5);
    EXPECT_FALSE(std::filesystem::exists(parts / "checkpoint.npz"));
    const Ended got = run_grid(shape, parts.path(), 10, 5);
    EXPECT_EQ(got.parameters, expected.parameters);
    EXPECT_NE(got.parameters[0], got.parameters[1]);
    EXPECT_EQ(got.loss, expected.loss);
  }
}

TEST(TrainerSlices, ARunGoesOnWithoutTheSlices) {
  const TempFolder whole, parts;
  const Ended expected = run_grid<WholeNet>({.data = 2}, whole.path(), 10);
  run_grid({.data = 2, .tensor = 2}, parts.path(), 5);
  expect_near(run_grid<WholeNet>({.data = 2}, parts.path(), 10, 5).parameters[0],
              expected.parameters[0]);
}

std::string error_of_options(const std::function<void(TrainerOptions&)>& change) {
  const TempFolder folder;
  const auto errors =
      testing::errors_of_ranks(testing::AfterError::kGoOn, 2, [&](Communicator& comm) {
        const DeviceScope scope(comm.device());
        GridRank<SlicedNet> one(comm, {.tensor = 2});
        TrainerOptions options = one.options(folder.path(), 2);
        change(options);
        Trainer(one.updater, one.model, one.optimizer, options).run();
      });
  EXPECT_EQ(errors[0], errors[1]);
  return errors[0];
}

TEST(TrainerSlices, FilesOfOneRankAreAnErrorBeforeTraining) {
  const std::string no_ranks = error_of_options([](auto& options) { options.ranks = nullptr; });
  expect_contains(no_ranks, {"slices of its tensors over 2 ranks", ".ranks", "&grid.comm()"});
  expect_contains(error_of_options([](auto& options) { options.checkpoints.reset(); }),
                  {"checkpoint.npz", "set .checkpoints = training::CheckpointFolderOptions{}"});
  const auto no_files = [](TrainerOptions& options) {
    options.out.clear();
    options.ranks = nullptr;
  };
  EXPECT_EQ(error_of_options(no_files), "no error");
}

TEST(TrainerSlices, AFileOfTheModelOfOneRankIsAnError) {
  const TempFolder folder;
  comm::run_threads(2, [&](Communicator& comm) {
    const DeviceScope scope(comm.device());
    GridRank<SlicedNet> one(comm, {.tensor = 2});
    Trainer trainer(one.updater, one.model, one.optimizer, one.options(folder.path(), 2));
    expect_contains(error_of<ValueError>([&] { trainer.save_model("model.npz"); }),
                    {"Trainer::save_model", "slices"});
    expect_contains(error_of<ValueError>([&] { trainer.keep_best("train_loss", Best::kLowest); }),
                    {"Trainer::keep_best", "slices"});
    comm.barrier();
    if (comm.rank() == 0) std::ofstream(folder / "checkpoint.npz") << "of an earlier version";
    comm.barrier();
    expect_contains(error_of<IoError>([&] { trainer.resume(); }),
                    {"Trainer::resume", "checkpoint.npz", "slices over 2 ranks"});
  });
}

}  // namespace
}  // namespace catena::training
