// Trains a network that is split over two devices of one process: functions::copy moves activations
// forward and gradients back.
#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "parallel_mlp.h"
#include "trainer.h"

namespace {

std::vector<catena::Device> two_devices(const mnist::Options& options) {
  const auto named = examples::devices_of(options.run);
  CATENA_CHECK(ValueError, named.empty() || named.size() == 2,
               "--device: expected two devices, got ", named.size());
  if (!named.empty()) return named;
  if (catena::device_count(catena::DeviceType::kCuda) >= 2)
    return {catena::cuda_device(0), catena::cuda_device(1)};
  return {catena::cpu(0), catena::cpu(1)};
}

void check_network(const mnist::NetworkOptions& network) {
  CATENA_CHECK(ValueError, network.name == "mlp",
               "--model: this program splits a network of its own over two devices; use "
               "train_mnist for '",
               network.name, "'");
  CATENA_CHECK(ValueError, network.dtype == catena::Dtype::kFloat32 && !network.autocast,
               "--dtype, --autocast: this program trains in float32, got ", network.dtype,
               network.autocast ? " with --autocast" : "");
}

int body(int argc, char** argv) {
  const mnist::Options options = mnist::parse_options(
      argc, argv, "Trains a six-layer network split over two devices of one process.",
      mnist::Devices::kSeveral);
  check_network(options.network);
  const auto devices = two_devices(options);
  catena::random::seed(options.run.seed);
  mnist::ParallelMlp model(options.network);
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
