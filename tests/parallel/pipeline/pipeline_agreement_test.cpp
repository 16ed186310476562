// Ranks that fail or differ end together, with an error that says which and in what.

#include "catena/parallel/sync_batch_normalization.h"
#include "error_text.h"
#include "parallel/pipeline/model.h"
#include "rank_results.h"

namespace catena::parallel::pipeline {
namespace {

using namespace test;  // NOLINT: the model

const auto kSgd = [] { return optimizers::SGD(0.1); };

// Failures ----------------------------------------------------------------------------------------

void add_unit_that_fails(Sequence& model, bool fails) {
  model.add([fails](const Variable& y) {
    if (fails) throw std::runtime_error("no disk");
    return y;
  });
}

TEST(PipelineAgreement, ARankThatCatchesItsErrorEndsTheOthers) {
  for (const bool predicts : {false, true}) {
    const auto texts = errors_of_ranks(AfterError::kGoOn, 3, [&](Communicator& comm) {
      Sequence model = filled();
      add_unit_that_fails(model, comm.rank() == 2);
      Pipeline pipeline(model, even_cut(3), all_forwards_first(3, 2), comm);
      pipeline.setup(kSgd);
      const Batch batch = batch_of(0, 8, dtype::float32);
      for (int i = 0; i < 3; ++i)
        predicts ? void(pipeline.predict(batch.x))
                 : void(pipeline.step(batch.x, batch.t, cross_entropy));
      pipeline.loss();
    });
    EXPECT_EQ(texts[2], "no disk");
    for (const size_t r : {size_t(0), size_t(1)})
      expect_contains(texts[r], {"rank 2",
                                 predicts ? "Pipeline::predict threw on rank 2"
                                          : "a pipeline step threw on rank 2",
                                 "no disk"});
  }
}

TEST(PipelineAgreement, AFailureReachesAllReplicas) {
  const auto texts = errors_of_ranks(AfterError::kGoOn, 4, [](Communicator& comm) {
    const Grid grid(comm, {2, 2});
    Sequence model = filled();
    add_unit_that_fails(model, comm.rank() == 3);
    Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), grid);
    pipeline.setup(kSgd);
    const Batch batch = batch_of(0, 8, dtype::float32);
    for (int i = 0; i < 3; ++i) pipeline.step(batch.x, batch.t, cross_entropy);
    pipeline.loss();
  });
  EXPECT_EQ(texts[3], "no disk");
  for (size_t r = 0; r < 3; ++r) expect_contains(texts[r], {"rank 3", "no disk"});
}

// All ranks can go on: none has sent anything.
TEST(PipelineAgreement, AMistakeOfAllRanksEndsNothing) {
  comm::run_threads(2, [](Communicator& comm) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 4), comm);
    pipeline.setup(kSgd);
    const Batch small = batch_of(0, 3, dtype::float32), batch = batch_of(0, 8, dtype::float32);
    expect_contains(error_of<ValueError>([&] { pipeline.step(small.x, small.t, cross_entropy); }),
                    {"a batch of 3 samples"});
    pipeline.step(batch.x, batch.t, cross_entropy);
    EXPECT_GT(pipeline.loss(), 0);
  });
}

// The ranks make as many steps that succeed, but not with the same batches.
TEST(PipelineAgreement, ARankThatRefusesABatchAloneMixesNoBatches) {
  for (const int refusing : {0, 1}) {
    const auto texts = errors_of_ranks(AfterError::kGoOn, 2, [&](Communicator& comm) {
      Sequence model = filled();
      Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 4), comm);
      pipeline.setup(kSgd);
      const int batches = comm.rank() == refusing ? 5 : 4;
      for (int i = 0; i < batches; ++i) {
        const bool refuses = i == 1 && comm.rank() == refusing;
        const Batch batch = batch_of(i, refuses ? 3 : 8, dtype::float32);
        if (refuses)
          expect_contains(
              error_of<ValueError>([&] { pipeline.step(batch.x, batch.t, cross_entropy); }),
              {"a batch of 3 samples"});
        else
          pipeline.step(batch.x, batch.t, cross_entropy);
      }
      pipeline.loss();
    });
    for (const std::string& text : texts) EXPECT_NE(text, "no error") << refusing;
  }
}

// The same where the shapes of messages are new to both.
TEST(PipelineAgreement, NumbersOfCallsThatDifferAreNamed) {
  const auto texts = errors_of_ranks(AfterError::kGoOn, 2, [&](Communicator& comm) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 4), comm);
    pipeline.setup(kSgd);
    const Batch small = batch_of(0, 3, dtype::float32), batch = batch_of(0, 8, dtype::float32);
    if (comm.rank() == 0)
      error_of<ValueError>([&] { pipeline.step(small.x, small.t, cross_entropy); });
    pipeline.step(batch.x, batch.t, cross_entropy);
  });
  for (const std::string& text : texts)
    expect_contains(text, {"rank 0 of the pipeline is in its call 2 of step or predict",
                           "rank 1 in its call 1", "only if all have it"});
}

// What ranks must share ---------------------------------------------------------------------------

TEST(PipelineAgreement, BatchesOfOtherSizesAreAnErrorThatNamesBoth) {
  // The last two have micro-batches of the same sizes.
  for (const auto& [first, second] : {std::pair<int, int>{24, 12}, {25, 20}, {25, 27}}) {
    const auto texts = errors_of_ranks(
        AfterError::kGoOn, 2, [&, sizes = std::array{first, second}](Communicator& comm) {
          Sequence model = filled();
          Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 4), comm);
          pipeline.setup(kSgd);
          const Batch batch = batch_of(0, sizes[size_t(comm.rank())], dtype::float32);
          pipeline.step(batch.x, batch.t, cross_entropy);
          pipeline.loss();
        });
    const std::string ours = message("rank 0 of the pipeline has a batch of ", first, " samples"),
                      theirs = message("rank 1 has a batch of ", second, " samples");
    for (const std::string& text : texts) expect_contains(text, {ours.c_str(), theirs.c_str()});
  }
}

TEST(PipelineAgreement, AModelInTestStateOnOneRankIsAnError) {
  const auto texts = errors_of_ranks(AfterError::kGoOn, 2, [](Communicator& comm) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), comm);
    pipeline.setup(kSgd);
    if (comm.rank() == 1) model.train(false);
    const Batch batch = batch_of(0, 8, dtype::float32);
    pipeline.step(batch.x, batch.t, cross_entropy);
    pipeline.loss();
  });
  for (const std::string& text : texts)
    expect_contains(text,
                    {"micro-batch of 4, to train, rank 1", "to train, with the model in test"});
}

std::vector<std::string> setups_with(const std::function<PipelineOptions(int rank)>& options_of) {
  return errors_of_ranks(AfterError::kGoOn, 2, [&](Communicator& comm) {
    Sequence model = filled();
    Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), comm, options_of(comm.rank()));
    pipeline.setup(kSgd);
  });
}

TEST(PipelineAgreement, OptionsThatDiffer) {
  for (const std::string& text :
       setups_with([](int rank) { return PipelineOptions{.clip_norm = double(rank)}; }))
    expect_contains(text, {".clip_norm is 0 on rank 0, 1 on rank 1"});
  for (const std::string& text : setups_with([](int rank) {
         return PipelineOptions{.buckets = {64 + rank, 128, 64}};
       }))
    expect_contains(text, {".first_bytes is 64 on rank 0, 65 on rank 1"});
}

// After failures, and after a restart -------------------------------------------------------------

TEST(PipelineAgreement, AStepThatHasThrownHasNoLossAndDoesNotCount) {
  const auto train = [](bool fails) {
    bool broken = false;
    Sequence model = filled();
    model.add([&](const Variable& y) {
      if (broken) throw std::runtime_error("no disk");
      return y;
    });
    Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), {cpu(0), cpu(1)}, {.seed = 3});
    pipeline.setup([] { return optimizers::SGD(0); });
    const Batch batch = batch_of(0, 8, dtype::float32);
    std::vector<double> losses;
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(pipeline.steps(), i);
      broken = fails && i == 2;
      if (broken) {
        EXPECT_THROW(pipeline.step(batch.x, batch.t, cross_entropy), std::runtime_error);
        expect_contains(error_of<ValueError>([&] { pipeline.loss(); }),
                        {"the last step has thrown"});
        broken = false;
      }
      pipeline.step(batch.x, batch.t, cross_entropy);
      losses.push_back(pipeline.loss());
    }
    return losses;
  };
  EXPECT_EQ(train(true), train(false));
}

TEST(PipelineAgreement, StepsAreNotNegative) {
  Sequence model = filled();
  Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), {cpu(0), cpu(1)});
  expect_contains(error_of<ValueError>([&] { pipeline.set_steps(-1); }), {"at least 0", "-1"});
}

// Layers synchronised over replicas ---------------------------------------------------------------

void train_synchronised(Communicator& comm, const GridShape& shape, int64_t samples,
                        std::vector<Named>& results, int64_t second = -1) {
  const Grid grid(comm, shape);
  Sequence model = filled();
  const CommunicatorPtr data = grid.data().shared_from_this();
  for (size_t u = 0; u < model.size(); ++u)
    if (model.layer(u)) synchronize_normalization(*model.layer(u), data);
  Pipeline pipeline(model, even_cut(shape.pipeline), all_forwards_first(shape.pipeline, 2), grid,
                    {.seed = 5});
  pipeline.setup(kSgd);
  const int64_t cut = second < 0 ? samples / 2 + 1 : samples - second;
  const Slice mine = grid.replica() == 0 ? Slice(0, cut) : Slice(cut, samples);
  pipeline.set_batch_weight(grid.replica() == 0 ? cut : samples - cut, samples);
  for (int i = 0; i < 3; ++i) {
    const Batch batch = batch_of(i, samples, dtype::float32);
    pipeline.step(batch.x(mine), batch.t(mine), cross_entropy);
  }
  pipeline.collect();
  if (grid.position() > 0) return;
  Outcome outcome;
  note_values(model, outcome);
  outcome.parameters.merge(outcome.persistents);
  results[size_t(grid.replica())] = outcome.parameters;
}

// The replicas have micro-batches of 3 and 2, and of 2 samples, then of 2 and 1, and of 1, so that
// they find out the shapes of other numbers of messages.
TEST(PipelineAgreement, SynchronisedLayersWaitForNobodyWhileShapesAreLearnt) {
  for (const int64_t samples : {9, 5}) {
    std::vector<Named> expected(2), results(2);
    comm::run_threads(2, [&](Communicator& comm) {
      train_synchronised(comm, {2, 1}, samples, expected);
    });
    comm::run_threads(4,
                      [&](Communicator& comm) {
                        train_synchronised(comm, {2, 2}, samples, results);
                      },
                      {.timeout = 20});
    for (size_t r = 0; r < 2; ++r) EXPECT_EQ(difference(results[r], expected[r]), "") << samples;
  }
}

TEST(PipelineAgreement, AReplicaWithoutSamplesAndSynchronisedLayersIsAnError) {
  std::vector<Named> results(2);
  const auto texts = errors_of_ranks(AfterError::kGoOn, 4, [&](Communicator& comm) {
    train_synchronised(comm, {2, 2}, 6, results, 0);
  });
  for (const size_t r : {size_t(2), size_t(3)})
    expect_contains(texts[r], {"this replica has no samples", "synchronised over ranks"});
  for (const size_t r : {size_t(0), size_t(1)})
    expect_contains(texts[r], {"failed", "this replica has no samples"});
}

// Over the whole job, or over the pipeline: ranks that have other stages would be waited for.
TEST(PipelineAgreement, LayersSynchronisedOverThePipelineAreAnError) {
  for (const bool over_all : {true, false}) {
    const auto texts = errors_of_ranks(AfterError::kGoOn, 4, [&](Communicator& comm) {
      const Grid grid(comm, {2, 2});
      Sequence model = filled();
      Communicator& wrong = over_all ? comm : grid.pipeline();
      synchronize_normalization(model, wrong.shared_from_this());
      Pipeline pipeline(model, even_cut(2), all_forwards_first(2, 2), grid);
      pipeline.setup(kSgd);
    });
    const std::string ranks = message("synchronised over ", over_all ? 4 : 2, " ranks");
    for (const std::string& text : texts)
      expect_contains(
          text, {"Pipeline::setup", ranks.c_str(), "ranks 0 and 1 of the pipeline", "grid.data()"});
  }
}

}  // namespace
}  // namespace catena::parallel::pipeline
