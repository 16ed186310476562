// Trains one network on the ranks of a communicator: start it with
//   catena-run -n 4 train_mnist_distributed --epoch 5
#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "catena/core/config.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "models.h"
#include "trainer.h"

namespace {

int body(int argc, char** argv) {
  const mnist::Options options = mnist::parse_options(
      argc, argv, "Trains a network on all ranks that catena-run started.", mnist::Devices::kRanks);
  const auto comm = examples::begin(options.run);
  const catena::Device device = comm->device();
  catena::random::seed(options.run.seed);
  mnist::Network model(options.network);
  model.to(device);
  if (options.slices > 0) catena::config().deterministic = true;
  auto optimizer = catena::create_multi_node_optimizer(
      mnist::make_optimizer(options), *comm, {.slices = static_cast<int>(options.slices)});
  optimizer.setup(model);

  const auto score = [&](const catena::datasets::Batch& batch) {
    return mnist::score(model(batch.x()), batch.t());
  };
  mnist::train(options, {model, optimizer.actual_optimizer(), device, score,
                         catena::training::make_step(optimizer, score), &optimizer});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
