// The same pipeline with one rank for each stage (or two), under catena-run.
#include <cstdio>

#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "catena/optimizers/adam.h"
#include "catena/serializers/npz.h"
#include "task.h"

namespace pp = catena::parallel::pipeline;

namespace {

int body(int argc, char** argv) {
  const task::Options options = task::parse(
      argc, argv, "Trains a network with one stage, or two, on each rank of catena-run.", 256);
  const catena::CommunicatorPtr comm = examples::make_communicator(options.run);
  const pp::Schedule schedule = task::schedule_of(options.schedule, comm->size(), 8);

  // Every rank makes the whole model alike, in host memory, and trains its stages of it.
  catena::random::seed(options.run.seed);
  pp::Sequence model;
  task::fill(model);
  const task::Batch sample = task::batch_of(0, 32);
  const pp::Cut cut = pp::partition(model, schedule.stages(), sample.x, comm.get());
  if (comm->rank() == 0) std::printf("%s\n", cut.text.c_str());

  pp::Pipeline pipeline(model, cut, schedule, comm);
  pipeline.setup([] { return catena::optimizers::Adam(0.003); });
  for (int64_t i = 0; i < options.steps; ++i) {
    const task::Batch batch = task::batch_of(i, options.run.batch);
    pipeline.step(batch.x, batch.t, task::loss);
    if (i % 100 > 0) continue;
    const double loss = pipeline.loss();  // on all ranks, so all call it
    if (comm->rank() == 0) std::printf("step %3lld  loss %.4f\n", static_cast<long long>(i), loss);
  }
  const task::Batch test = task::batch_of(1000000, 999);
  const catena::Arrays y = pipeline.predict(test.x);
  if (!y.empty()) std::printf("test accuracy %.4f\n", task::accuracy(y[0], test.t));
  pipeline.collect();  // rank 0 has the whole model now, and could save it
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
