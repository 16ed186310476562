// Trains replicas of one network on several devices of one process: the master accumulates the
// replicas' gradients, updates, and hands its parameters back.
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/comm/run_main.h"
#include "catena/parallel/data_parallel.h"
#include "models.h"
#include "trainer.h"

namespace {

namespace parallel = catena::parallel;
using catena::Array;
using catena::Variable;
using catena::datasets::Batch;

std::vector<catena::Device> several_devices(const mnist::Options& options) {
  std::vector<catena::Device> devices = examples::devices_of(options.run);
  if (!devices.empty()) return devices;
  for (int i = 0; i < catena::device_count(catena::DeviceType::kCuda); ++i)
    devices.push_back(catena::cuda_device(i));
  return devices.empty() ? std::vector<catena::Device>{catena::cpu(0), catena::cpu(1)} : devices;
}

// Forward and backward of every replica on its part of the batch; the numbers are means over the
// whole batch, on the master's device.
catena::Arrays all_replicas(parallel::Replicas<mnist::Network>& replicas,
                            const std::vector<catena::Device>& devices, const Batch& batch) {
  const auto x = parallel::scatter_batch(batch.x(), devices),
             t = parallel::scatter_batch(batch.t(), devices);
  catena::Arrays total;
  for (size_t i = 0; i < replicas.size(); ++i) {
    const double weight = parallel::shard_weight(batch.size(), replicas.size(), i);
    if (weight == 0) continue;  // fewer samples than devices
    const auto numbers = mnist::score(replicas[i](x[i]), t[i]);
    parallel::backward(numbers[0], weight);
    for (size_t k = 0; k < numbers.size(); ++k) {
      const Array part = (numbers[k].data() * weight).to(devices[0]);
      if (k < total.size())
        total[k] = total[k] + part;
      else
        total.push_back(part);
    }
  }
  return total;
}

int body(int argc, char** argv) {
  const mnist::Options options = mnist::parse_options(
      argc, argv, "Trains replicas of a network on several devices of one process.",
      mnist::Devices::kSeveral);
  const auto devices = several_devices(options);
  catena::random::seed(options.run.seed);
  mnist::Network model(options.network);
  model.to(devices[0]);
  const auto optimizer = mnist::make_optimizer(options);
  optimizer->setup(model);
  parallel::Replicas<mnist::Network> replicas(model, devices);

  bool replicas_follow = false;  // a resumed master has other parameters than its copies
  bool statistics_agree = true;  // each replica collects those of its own batches
  const auto step = [&](const Batch& batch) {
    statistics_agree = false;
    if (!std::exchange(replicas_follow, true)) replicas.copy_from(*optimizer);
    replicas.zero_grads();
    catena::Arrays numbers = all_replicas(replicas, devices, batch);
    replicas.accumulate_into(*optimizer);
    optimizer->update();
    replicas.copy_from(*optimizer);
    return numbers;
  };
  const auto score = [&](const Batch& batch) {  // of test passes
    if (!std::exchange(statistics_agree, true)) replicas.average_persistents();
    return mnist::score(model(batch.x()), batch.t());
  };
  mnist::train(options, {model, *optimizer, devices[0], score, step});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
