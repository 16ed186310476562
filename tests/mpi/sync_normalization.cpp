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

// Rank r has r samples, so rank 0 has none.
TEST(ProcessSyncBatchNormalization, EqualsOneProcess) {
  const CommunicatorPtr comm = create_communicator();
  const int64_t r = comm->rank(), begin = r * (r - 1) / 2;
  const int64_t all = comm->size() * (comm->size() - 1) / 2;
  const DeviceScope scope(comm->device());
  const auto draw = [&](uint64_t seed) {
    return testing::random_array({all, 3, 4}, -1, 1, Dtype::kFloat64, comm->device(), seed);
  };
  const Array whole = draw(1), gy = draw(2);
  const functions::BatchNormalizationOptions options{.dtype = Dtype::kFloat64};
  functions::BatchNormalization alone(3, options);
  parallel::SyncBatchNormalization sync(3, comm, options, parallel::LossOverRanks::kSum);
  const auto run = [](const functions::BatchNormalization& bn, const Array& x, const Array& g) {
    const Variable in(x), y = bn.relu(in);
    y.set_grad(g);
    y.backward();
    return Arrays{y.data(), in.grad()};
  };
  const Slice own(begin, begin + r);
  const Arrays expected = run(alone, whole, gy), got = run(sync, whole(own).copy(), gy(own).copy());
  for (size_t k = 0; k < 2; ++k)
    EXPECT_EQ(testing::difference(got[k], expected[k](own), 1e-12, 1e-10), "");
  EXPECT_EQ(testing::difference(sync.avg_mean.data(), alone.avg_mean.data(), 1e-13, 1e-12), "");
  EXPECT_EQ(testing::difference(sync.avg_var.data(), alone.avg_var.data(), 1e-13, 1e-12), "");
}

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
