// Two replicas of a pipeline, under catena-run with an even number of ranks.
#include <cstdio>

#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "catena/optimizers/adam.h"
#include "catena/parallel/data_parallel.h"
#include "task.h"

namespace pp = catena::parallel::pipeline;

namespace {

constexpr int kReplicas = 2;

int body(int argc, char** argv) {
  const task::Options options = task::parse(
      argc, argv, "Trains two replicas of a pipeline over half of the ranks each.", 250);
  const catena::CommunicatorPtr comm = examples::make_communicator(options.run);
  CATENA_CHECK(ValueError, comm->size() % kReplicas == 0,
               "grid: expected an even number of ranks, got ", comm->size());
  const catena::parallel::Grid grid(*comm,
                                    {.data = kReplicas, .pipeline = comm->size() / kReplicas});
  const pp::Schedule schedule = task::schedule_of(options.schedule, grid.shape().pipeline, 8);

  catena::random::seed(options.run.seed);
  pp::Sequence model;
  task::fill(model);
  pp::Pipeline pipeline(model, pp::partition(model, schedule.stages()), schedule, grid,
                        {.clip_norm = 5});
  pipeline.setup([] { return catena::optimizers::Adam(0.003); });

  const int64_t samples = options.run.batch;
  // Each replica takes its share of the batch, the first one more where it does not divide.
  const auto replica = static_cast<size_t>(grid.replica());
  const int64_t mine = catena::parallel::shard_size(samples, kReplicas, replica);
  const int64_t begin = replica == 0 ? 0 : samples - mine;
  pipeline.set_batch_weight(mine, samples);
  for (int64_t i = 0; i < options.steps; ++i) {
    const task::Batch batch = task::batch_of(i, samples);
    pipeline.step(batch.x(catena::Slice(begin, begin + mine)),
                  batch.t(catena::Slice(begin, begin + mine)), task::loss);
    if (i % 100 > 0) continue;
    const double loss = pipeline.loss();  // the mean over the replicas
    if (comm->rank() == 0) std::printf("step %3lld  loss %.4f\n", static_cast<long long>(i), loss);
  }
  pipeline.average_persistents();  // of batch normalization, before test passes
  const task::Batch test = task::batch_of(1000000, 999);
  const catena::Arrays y = pipeline.predict(test.x);
  if (!y.empty() && grid.replica() == 0)
    std::printf("test accuracy %.4f\n", task::accuracy(y[0], test.t));
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
