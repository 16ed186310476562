// Started by the tests under catena-run: trains three steps. The last rank misbehaves as the first
// argument says: "throw" and "terminate" fail in step 2, "kill" ends by SIGKILL, "throw-first"
// fails unless the job was started again. With "pipeline" the ranks are a pipeline whose stages
// sleep; each says what part of its time it should be idle.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "catena/autograd/function.h"
#include "catena/comm/run_main.h"
#include "catena/core/profiler_range.h"
#include "catena/datasets/prefetch.h"
#include "catena/functions/loss/mean_squared_error.h"
#include "catena/parallel/pipeline/pipeline.h"
#include "catena/parallel/pipeline/schedules.h"
#include "catena/parallel/pipeline/simulate.h"
#include "parallel/network.h"

using namespace catena;
using namespace catena::testing;

namespace {

constexpr int kSteps = 3, kRowsOfRank = 4;

void misbehave(const std::string& fault) {
  if (fault == "throw") throw std::runtime_error("the rank was asked to fail");
  if (fault == "terminate") std::terminate();
  if (fault == "kill") std::raise(SIGKILL);
  const char* const restart = std::getenv("CATENA_RESTART");
  if (fault == "throw-first" && restart && std::string(restart) == "0") misbehave("throw");
}

int train(int argc, char** argv) {
  const std::string fault = argc > 1 ? argv[1] : "";
  const CommunicatorPtr comm = create_communicator();
  Net net(Dtype::kFloat32);
  net.to(comm->device());
  auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm);
  optimizer.setup(net);
  const int64_t rows = int64_t(kRowsOfRank) * comm->size();
  const auto samples = batch_of(0, rows, Dtype::kFloat32);
  const auto data =
      std::make_shared<datasets::TupleDataset>(std::vector<Array>{samples.x, samples.t});
  datasets::PrefetchIterator batches(data, datasets::SerialIterator(rows, rows, true),
                                     comm->device(), {comm->rank(), comm->size()});
  for (int step = 0; step < kSteps; ++step) {
    const ProfilerRange range("my step");
    const auto batch = batches.next();
    if (step == 1 && comm->rank() == comm->size() - 1) misbehave(fault);
    optimizer.zero_grads();
    F::softmax_cross_entropy(net(Variable(batch->x())), batch->t()).backward();
    optimizer.update();
  }
  return 0;
}

constexpr int kForwardMs = 25, kBackwardMs = 50, kMicroBatches = 4, kPipelineSteps = 6;

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Takes a time that does not depend on what else the machine does.
class Sleep : public Function {
 public:
  Arrays forward(const Arrays& inputs) override {
    sleep_ms(kForwardMs);
    return inputs;
  }
  Arrays backward(const Arrays&, const Arrays& grads) override {
    sleep_ms(kBackwardMs);
    return grads;
  }
};

int train_pipeline() {
  namespace pl = parallel::pipeline;
  const CommunicatorPtr comm = create_communicator("mpi", {.device = cpu(0)});
  const int ranks = comm->size();
  const pl::Schedule schedule = pl::one_forward_one_backward(ranks, kMicroBatches);
  pl::Sequence model;
  pl::Cut cut;
  for (int s = 0; s < ranks; ++s) {
    cut.first.push_back(static_cast<int>(model.size()));
    model.add(F::Linear(8, 8));
    model.add([](const Variable& x) { return call(Sleep{}, x); });
  }
  pl::Pipeline pipeline(model, cut, schedule, comm);
  pipeline.setup([] { return optimizers::SGD(0.01); });
  const Array x = ones({2 * kMicroBatches, 8}, dtype::float32);
  for (int i = 0; i < kPipelineSteps; ++i)
    pipeline.step(x, x, [](const Variable& y, const Array& t) {
      return F::mean_squared_error(y, Variable(t));
    });
  pl::Costs costs;
  costs.stages = {{.forward = kForwardMs, .backward = kBackwardMs}};
  const pl::Simulation expected = pl::simulate(pl::with_updates(schedule), costs, {.steps = 40});
  std::printf("rank %d should be idle for %.3f\n", comm->rank(), expected.bubble(comm->rank()));
  return 0;
}

int run(int argc, char** argv) {
  return argc > 1 && std::string(argv[1]) == "pipeline" ? train_pipeline() : train(argc, argv);
}

}  // namespace

int main(int argc, char** argv) { return run_main(argc, argv, run); }
