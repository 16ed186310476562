// Trains a network on one device.
#include <iostream>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/comm/communicator.h"
#include "catena/comm/run_main.h"
#include "catena/training/model_summary.h"
#include "models.h"
#include "trainer.h"

namespace {

int body(int argc, char** argv) {
  const mnist::Options options = mnist::parse_options(
      argc, argv, "Trains a network on MNIST-format images on one device.", mnist::Devices::kOne);
  const catena::Device device = mnist::one_device(options);
  catena::random::seed(options.run.seed);
  mnist::Network model(options.network);
  model.to(device);
  const auto optimizer = mnist::make_optimizer(options);
  optimizer->setup(model);

  if (options.summary)
    std::cout << catena::training::summary(
        model, catena::zeros({options.run.batch, 784},
                             catena::ArrayOptions(catena::Dtype::kFloat32, device)));
  const auto score = [&](const catena::datasets::Batch& batch) {
    return mnist::score(model(batch.x()), batch.t());
  };
  mnist::train(options, {model, *optimizer, device, score,
                         catena::training::make_step(
                             *optimizer, examples::drawing_the_first(score, options.drawing))});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
