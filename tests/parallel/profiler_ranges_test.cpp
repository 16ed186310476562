// The ranges of a training step on a profiler's time line, by a recorder in place of NVTX.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "error_text.h"
#include "parallel/network.h"
#include "profiler_recorder.h"

namespace catena::parallel {
namespace {

using namespace catena::testing;  // the network, the recorder

constexpr const char* kNothing = "";

std::string& seen() { return RecordedRanges::text_of_thread(); }

TEST(ProfilerRanges, OfAStepWithoutRanks) {
  Net net(Dtype::kFloat32);
  optimizers::Adam optimizer;
  optimizer.setup(net);
  const RecordedRanges recorded;
  optimizer.zero_grads();
  const Variable loss = loss_of(net, batch_of(0, 8, Dtype::kFloat32));
  EXPECT_EQ(recorded.text(), kNothing) << "forward passes have no range";
  loss.backward();
  EXPECT_EQ(recorded.text(), "Variable::backward()");
  optimizer.update();
  EXPECT_EQ(recorded.text(), "Variable::backward()Optimizer::update()");
}

// The buckets are reduced inside backward.
TEST(ProfilerRanges, OfAStepOnTwoRanks) {
  const RecordedRanges recorded;
  comm::run_threads(2, [&](Communicator& comm) {
    Net net(Dtype::kFloat32, comm.rank());
    net.to(comm.device());
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm.shared_from_this());
    optimizer.setup(net);
    const Batch batch = part(batch_of(0, 8, Dtype::kFloat32), 0, 8, comm.device());
    optimizer.zero_grads();
    loss_of(net, batch).backward();  // in which the ranks agree on what losses divide by
    optimizer.update();
    optimizer.zero_grads();
    const Variable loss = loss_of(net, batch);
    seen().clear();
    loss.backward();
    EXPECT_TRUE(seen().starts_with("Variable::backward(all_reduce_async()")) << seen();
    EXPECT_TRUE(seen().ends_with("))")) << seen();
    seen().clear();
    optimizer.update();
    EXPECT_TRUE(seen().starts_with("Optimizer::update(")) << seen();
    EXPECT_TRUE(seen().ends_with(")")) << seen();
  });
}

TEST(ProfilerRanges, OfEveryCallOfACommunicator) {
  const RecordedRanges recorded;
  comm::run_threads(2, [&](Communicator& comm) {
    const Array x = ones({4}, {Dtype::kFloat32, comm.device()});
    const auto expect = [&](const std::string& text, const auto& call) {
      seen().clear();
      call();
      EXPECT_EQ(seen(), text);
    };
    expect("all_reduce()", [&] { comm.all_reduce(x); });
    expect("reduce()", [&] { comm.reduce(x); });
    expect("reduce_scatter()", [&] { comm.reduce_scatter(x); });
    expect("all_gather()", [&] { comm.all_gather(x); });
    expect("gather()", [&] { comm.gather(x); });
    expect("broadcast()", [&] { comm.broadcast(x); });
    expect("scatter()", [&] { comm.scatter(x, x(Slice(0, 2)).copy()); });
    expect("all_to_all()", [&] { comm.all_to_all(x); });
    expect("barrier()", [&] { comm.barrier(); });
    expect("send()recv()group()", [&] {
      comm.group([&] {
        comm.send(x, 1 - comm.rank());
        comm.recv(x.copy(), 1 - comm.rank());
      });
    });
    expect("all_reduce_value()", [&] { comm.all_reduce_value(1); });
  });
}

TEST(ProfilerRanges, EndWithTheErrorOfAHook) {
  Net net(Dtype::kFloat32);
  optimizers::SGD optimizer(0.1);
  optimizer.setup(net);
  optimizer.add_hook("stop", [](optimizers::UpdateContext&) { throw std::runtime_error("stop"); });
  loss_of(net, batch_of(0, 8, Dtype::kFloat32)).backward();
  const RecordedRanges recorded;
  EXPECT_THROW(optimizer.update(), std::runtime_error);
  EXPECT_EQ(recorded.text(), "Optimizer::update()");
}

TEST(ProfilerRanges, EndWithTheErrorOfBackward) {
  const Variable x(ones({3}, dtype::float32));
  const Variable y = F::tanh(x);
  const RecordedRanges recorded;
  const std::string text = error_of<Error>([&] { y.backward(); });  // three elements, no gradient
  EXPECT_NE(text, "no error");
  EXPECT_EQ(recorded.text(), "Variable::backward()");
}

TEST(ProfilerRanges, EndWithTheErrorOfACall) {
  const RecordedRanges recorded;
  const std::string text = error_of<CommError>([&] {
    comm::run_threads(2, [&](Communicator& comm) {
      const Array x = ones({comm.rank() + 3}, {Dtype::kFloat32, comm.device()});
      seen().clear();
      try {
        comm.all_reduce(x);
      } catch (const CommError&) {
        EXPECT_EQ(seen(), "all_reduce()");
        throw;
      }
    });
  });
  expect_contains(text, {"float32[3]", "float32[4]"});
}

}  // namespace
}  // namespace catena::parallel
