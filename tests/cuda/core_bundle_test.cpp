// Training takes all of its kernels from the bundle: nothing is looked for in the cache or
// compiled. (tests/device/core_programs_test.cpp shows the same for every layer, without a GPU.)
#include "../examples/mnist/parallel_mlp.h"
#include "catena/array/creation.h"
#include "catena/array/kernel.h"
#include "catena/array/random.h"
#include "catena/functions/evaluation.h"
#include "catena/functions/loss.h"
#include "catena/optimizers/adam.h"
#include "catena/optimizers/hooks.h"
#include "catena/optimizers/momentum_sgd.h"
#include "catena/optimizers/sgd.h"
#include "cuda/gpu.h"

namespace catena {
namespace {

void train(Optimizer&& rule, Device device) {
  const DeviceScope scope(device);
  mnist::ParallelMlp model{mnist::NetworkOptions()};
  model.place(device, device);
  rule.setup(model);
  rule.add_hook("decay", optimizers::weight_decay(1e-4));
  rule.add_hook("clip", optimizers::gradient_clipping(1.0));
  for (int step = 0; step < 4; ++step) {  // mixed dtypes would be compiled at the fourth use
    const Array x = random::normal({20, 784}, 0, 1, dtype::float32);
    const Variable y = model(x);
    rule.zero_grads();
    const Variable loss = functions::softmax_cross_entropy(y, zeros({20}, dtype::int32));
    loss.backward();
    rule.update();
    functions::accuracy(y, zeros({20}, dtype::int32)).data().item<double>();
  }
}

TEST(CudaCoreBundle, HoldsWhatTrainingRequests) {
  CATENA_NEEDS_GPUS(1);
  const Device device = cuda_device(0);
  const KernelCacheStatistics before = kernel_cache_statistics();
  if (before.description.find(" is missing") != std::string::npos)
    GTEST_SKIP() << "SKIPPED: this build has no bundle for the GPU: " << before.description;
  train(optimizers::SGD(0.01), device);
  train(optimizers::MomentumSGD(0.01, 0.9), device);
  train(optimizers::Adam(), device);
  const KernelCacheStatistics after = kernel_cache_statistics();
  EXPECT_EQ(after.missing, before.missing) << after.description;
  EXPECT_EQ(after.disk_hits, before.disk_hits) << "a kernel came from the disk cache";
  EXPECT_EQ(after.compiled, before.compiled);
}

}  // namespace
}  // namespace catena
