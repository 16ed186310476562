// Started by the tests under catena-run: trains three steps. The last rank misbehaves as the first
// argument says: "throw" and "terminate" fail in step 2, "kill" ends by SIGKILL.
#include <csignal>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include "catena/comm/run_main.h"
#include "catena/core/profiler_range.h"
#include "catena/datasets/prefetch.h"
#include "parallel/network.h"

using namespace catena;
using namespace catena::testing;

namespace {

constexpr int kSteps = 3, kRowsOfRank = 4;

void misbehave(const std::string& fault) {
  if (fault == "throw") throw std::runtime_error("the rank was asked to fail");
  if (fault == "terminate") std::terminate();
  if (fault == "kill") std::raise(SIGKILL);
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

}  // namespace

int main(int argc, char** argv) { return run_main(argc, argv, train); }
