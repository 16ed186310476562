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

std::vector<catena::Device> several_devices(const mnist::Options& options) {
  if (!options.devices.empty()) return options.devices;
  std::vector<catena::Device> devices;
  for (int i = 0; i < catena::device_count(catena::DeviceType::kCuda); ++i)
    devices.push_back(catena::cuda_device(i));
  return devices.empty() ? std::vector<catena::Device>{catena::cpu(0), catena::cpu(1)} : devices;
}

// Forward and backward of every replica on its part of the batch; the scores are means over the
// whole batch, on the master's device.
mnist::Scores all_replicas(parallel::Replicas<mnist::Network>& replicas,
                           const std::vector<catena::Device>& devices,
                           const catena::datasets::Batch& batch) {
  const auto x = parallel::scatter_batch(batch.x(), devices),
             t = parallel::scatter_batch(batch.t(), devices);
  mnist::Scores total;
  for (size_t i = 0; i < replicas.size(); ++i) {
    const double weight = parallel::shard_weight(batch.size(), replicas.size(), i);
    if (weight == 0) continue;  // fewer samples than devices
    const auto [loss, accuracy] = mnist::score(replicas[i](x[i]), t[i]);
    parallel::backward(loss, weight);
    const Array part = (loss.data() * weight).to(devices[0]),
                hits = (accuracy * weight).to(devices[0]);
    total.loss = total.loss.defined() ? total.loss + part : part;
    total.accuracy = total.accuracy.defined() ? total.accuracy + hits : hits;
  }
  return total;
}

int body(int argc, char** argv) {
  const mnist::Options options = mnist::parse_options(
      argc, argv, "Trains replicas of a network on several devices of one process.",
      mnist::Devices::kSeveral);
  CATENA_CHECK(ValueError, !options.graph,
               "--graph: a graph holds one device's work; these replicas have several");
  const auto devices = several_devices(options);
  catena::random::seed(options.seed);
  mnist::Network model(options.model);
  model.to(devices[0]);
  const auto optimizer = mnist::make_optimizer(options);
  optimizer->setup(model);
  parallel::Replicas<mnist::Network> replicas(model, devices);

  bool replicas_follow = false;  // a resumed master has other parameters than its copies
  bool statistics_agree = true;  // each replica collects those of its own batches
  mnist::Program program{&model, optimizer.get(), devices[0],
                         [&](const Variable& x) {
                           if (!std::exchange(statistics_agree, true))
                             replicas.average_persistents();
                           return model(x);
                         },
                         [&](const catena::datasets::Batch& batch) {
                           statistics_agree = false;
                           if (!std::exchange(replicas_follow, true))
                             replicas.copy_from(*optimizer);
                           replicas.zero_grads();
                           const mnist::Scores scores = all_replicas(replicas, devices, batch);
                           replicas.accumulate_into(*optimizer);
                           optimizer->update();
                           replicas.copy_from(*optimizer);
                           return scores;
                         }};
  mnist::train(options, program);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return catena::run_main(argc, argv, body); }
