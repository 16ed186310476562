// Batch normalization over processes, in the job of suite_main.cpp.
#include <gtest/gtest.h>

#include "catena/comm/factory.h"
#include "catena/core/graph.h"
#include "catena/functions/normalization.h"
#include "catena/optimizers/sgd.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/parallel/sync_batch_normalization.h"
#include "catena/testing.h"

namespace catena {
namespace {

// Replays give what eager steps give, with buckets of gradients between the layer's messages.
TEST(ProcessSyncBatchNormalization, IsCaptured) {
  const CommunicatorPtr comm = create_communicator();
  if (comm->name() != "nccl") GTEST_SKIP() << "SKIPPED over " << comm->name() << ": no graphs";
  const DeviceScope scope(comm->device());
  const auto draw = [&](uint64_t seed) {
    return testing::random_array({4 + comm->rank(), 8, 4}, -1, 1, Dtype::kFloat32, comm->device(),
                                 seed + 10 * uint64_t(comm->rank()));
  };
  const Array x = draw(1), gy = draw(2);
  const auto run = [&](bool captured) {
    parallel::SyncBatchNormalization bn(8, comm);
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm);
    optimizer.setup(bn);
    optimizer.set_batch_weight(x.length(),
                               4 * comm->size() + comm->size() * (comm->size() - 1) / 2);
    const Array gx = zeros_like(x);
    const auto step = [&] {
      optimizer.zero_grads();
      const Variable in(x), y = bn.relu(in);
      y.set_grad(gy);
      y.backward();
      gx.assign(in.grad());
      optimizer.update();
    };
    for (int i = 0; i < 3; ++i) step();
    if (!captured) {
      for (int i = 0; i < 4; ++i) step();
    } else {
      cuda::Graph graph = cuda::Graph::capture(comm->device(), step);
      for (int i = 0; i < 4; ++i) graph.launch();
    }
    return Arrays{gx, bn.gamma.data().copy(), bn.avg_mean.data(), bn.avg_var.data()};
  };
  const Arrays eager = run(false), replayed = run(true);
  for (size_t k = 0; k < eager.size(); ++k)
    EXPECT_EQ(testing::difference(replayed[k], eager[k], 1e-6, 1e-6), "") << k;
}

}  // namespace
}  // namespace catena
