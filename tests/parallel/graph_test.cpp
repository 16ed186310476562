// Replayed data-parallel steps equal eager ones bit for bit. Needs two GPUs.
#include "catena/core/graph.h"

#include "parallel/network.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // the network

constexpr int kSteps = 50, kSamples = 8;

// Two ranks with weights that change from step to step, as uneven shards do.
std::vector<Values> train(const std::string& rule, bool weighted, bool replay) {
  comm::ThreadsOptions options;
  options.implementation = "nccl";
  options.devices = {cuda_device(0), cuda_device(1)};
  std::vector<Values> results(2);
  comm::run_threads(
      2,
      [&](Communicator& comm) {
        const Device gpu = comm.device();
        Net net(dtype::float32, comm.rank());
        net.to(gpu);
        auto optimizer = create_multi_node_optimizer(make_rule(rule), comm, {128, 256, 128});
        optimizer.setup(net);
        optimizer->add_hook("clip", optimizers::gradient_clipping(0.3));
        Batch batch = part(batch_of(0, kSamples, dtype::float32), 0, kSamples, gpu);
        const auto step = [&] {
          optimizer.zero_grads();
          loss_of(net, batch).backward();
          optimizer.update();
        };
        cuda::Graph graph;
        for (int i = 0; i < kSteps; ++i) {
          const Batch next =
              part(batch_of(2 * i + comm.rank(), kSamples, dtype::float32), 0, kSamples, gpu);
          batch.x.assign(next.x);
          batch.t.assign(next.t);
          if (i == 20) optimizer->set_lr(optimizer->lr() / 2);
          if (weighted) optimizer.set_batch_weight(comm.rank() == 0 ? 5 + i % 3 : 11 - i % 3, 16);
          if (replay && i == 3) {
            optimizer->prepare_for_capture();
            graph = cuda::Graph::capture(gpu, step);
          }
          if (graph.defined())
            graph.launch();
          else
            step();
        }
        results[size_t(comm.rank())] = values_of(net);
      },
      options);
  return results;
}

TEST(MultiNodeGraph, ReplaysEqualEagerStepsBitForBit) {
  if (device_count(DeviceType::kCuda) < 2) GTEST_SKIP() << "needs two GPUs";
  for (const char* rule : {"SGD", "Adam"}) {
    for (const bool weighted : {false, true}) {
      const std::vector<Values> eager = train(rule, weighted, false),
                                replayed = train(rule, weighted, true);
      EXPECT_EQ(eager, replayed) << rule << (weighted ? " weighted" : "");
      EXPECT_EQ(eager[0], eager[1]);
    }
  }
}

}  // namespace
}  // namespace catena::parallel
