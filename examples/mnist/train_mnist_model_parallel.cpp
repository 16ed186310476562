// Trains a network that is split over two devices of one process: functions::copy moves activations
// forward and gradients back.
#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "models.h"
#include "trainer.h"

namespace {

std::vector<catena::Device> two_devices(const mnist::Options& options) {
  if (options.devices.empty()) {
    if (catena::device_count(catena::DeviceType::kCuda) >= 2)
      return {catena::cuda_device(0), catena::cuda_device(1)};
    return {catena::cpu(0), catena::cpu(1)};
  }
  CATENA_CHECK(ValueError, options.devices.size() == 2, "--devices: expected two devices, got ",
               options.devices.size());
  return options.devices;
}

int body(int argc, char** argv) {
  const mnist::Options options = mnist::parse_options(
      argc, argv, "Trains a six-layer network split over two devices of one process.",
      mnist::Devices::kSeveral);
  CATENA_CHECK(ValueError, !options.graph,
               "--graph: a graph holds one device's work; this network has two");
  CATENA_CHECK(ValueError, options.model == "mlp",
               "--model: this program splits a network of its "
               "own over two devices; use train_mnist for '",
               options.model, "'");
  const auto devices = two_devices(options);
  catena::random::seed(options.seed);
  CATENA_CHECK(ValueError, options.dtype == catena::Dtype::kFloat32 && !options.autocast,
               "--dtype, --autocast: this program trains in float32, got ", options.dtype,
               options.autocast ? " with --autocast" : "");
  mnist::ParallelMlp model(options.dropout);
  model.place(devices[0], devices[1]);
  const auto optimizer = mnist::make_optimizer(options);
  optimizer->setup(model);

  const auto score = [&](const catena::datasets::Batch& batch) {
    return mnist::score(model(batch.x()), batch.t());
  };
  mnist::train(options, {model, *optimizer, devices[0], score,
                         catena::training::make_step(*optimizer, score)});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
