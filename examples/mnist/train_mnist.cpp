// Trains a network on one device.
#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "models.h"
#include "trainer.h"

namespace {

int body(int argc, char** argv) {
  const mnist::Options options = mnist::parse_options(
      argc, argv, "Trains a network on MNIST-format images on one device.", mnist::Devices::kOne);
  const catena::Device device = options.devices.empty() ? catena::cpu() : options.devices[0];
  catena::random::seed(options.seed);
  mnist::Network model(options.model, options.dtype, options.autocast);
  model.to(device);
  const auto optimizer = mnist::make_optimizer(options);
  optimizer->setup(model);

  const auto score = [&](const catena::datasets::Batch& batch) {
    return mnist::score(model(batch.x()), batch.t());
  };
  mnist::train(options,
               {model, *optimizer, device, score, catena::training::make_step(*optimizer, score)});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
