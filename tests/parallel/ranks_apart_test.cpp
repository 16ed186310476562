// A plain optimizer in a job of several ranks, which train apart.
#include <gtest/gtest.h>

#include "core/ranks_in_use.h"
#include "parallel/network.h"

namespace catena {
namespace {

// What two ranks print that make two updates each.
std::string printed(const std::function<void(Communicator&, testing::Net&)>& train) {
  ranks_in_use().exchanges = false;
  ranks_in_use().warned = false;
  ::testing::internal::CaptureStderr();
  comm::run_threads(2, [&](Communicator& comm) {
    testing::Net net(Dtype::kFloat32);
    net.to(comm.device());
    train(comm, net);
    comm.barrier();  // the other rank's communicator lives until both have updated
  });
  return ::testing::internal::GetCapturedStderr();
}

template <class AnyOptimizer>
void make_updates(Communicator& comm, const testing::Net& net, AnyOptimizer& optimizer) {
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grads();
    for (const Parameter& p : net.parameters()) p.set_grad(ones_like(p.data()));
    optimizer.update();
  }
  EXPECT_GT(ranks_in_use().communicators, 0) << comm.rank();
}

constexpr char kWarning[] = "the job has several ranks, but no gradients were exchanged";

TEST(RanksApart, AreWarnedOfOnce) {
  const std::string text = printed([](Communicator& comm, testing::Net& net) {
    optimizers::SGD optimizer(0.1);
    optimizer.setup(net);
    make_updates(comm, net, optimizer);
  });
  const size_t first = text.find(kWarning);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find("use create_multi_node_optimizer(optimizer, comm)"), std::string::npos);
  EXPECT_EQ(text.find(kWarning, first + 1), std::string::npos) << text;
}

TEST(RanksApart, AreNoneWithAMultiNodeOptimizer) {
  const std::string text = printed([](Communicator& comm, testing::Net& net) {
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm);
    optimizer.setup(net);
    make_updates(comm, net, optimizer);
  });
  EXPECT_EQ(text.find(kWarning), std::string::npos) << text;
}

TEST(RanksApart, AreNoneWhereGradientsAreSummedByHand) {
  const std::string text = printed([](Communicator& comm, testing::Net& net) {
    optimizers::SGD optimizer(0.1);
    optimizer.setup(net);
    const Array gradient = ones({4}, {Dtype::kFloat32, comm.device()});
    comm.all_reduce(gradient, comm::Reduction::kMean, gradient);
    make_updates(comm, net, optimizer);
  });
  EXPECT_EQ(text.find(kWarning), std::string::npos) << text;
}

}  // namespace
}  // namespace catena
