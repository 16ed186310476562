// A graph and the parameters that its step uses. Runs without a GPU;
// tests/optimizers/graph_test.cpp has what needs one.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "catena/autograd/parameter.h"
#include "catena/core/graph.h"
#include "catena/functions/array/reshape.h"
#include "catena/optimizers/sgd.h"
#include "error_text.h"
#include "pretended_gpu.h"

namespace catena {
namespace {

Array on_gpu(int64_t n) {
  const auto memory = std::make_shared<std::vector<float>>(size_t(n));
  return Array::from_storage(borrow(cuda_device(0), memory->data(), size_t(n) * 4, memory), 0, {n},
                             {4}, Dtype::kFloat32);
}

TEST(CapturedParameters, ThatHaveMovedAreRefused) {
  testing::pretended_gpu();
  const std::vector<std::pair<const char*, std::function<void(const Parameter&)>>> moves = {
      {"to", [](const Parameter& p) { p.to(cpu(0)); }},
      {"rebind", [](const Parameter& p) { p.rebind(on_gpu(6), Array()); }},
      {"set_data", [](const Parameter& p) { p.variable().set_data(on_gpu(6)); }},
  };
  for (const auto& [name, move] : moves) {
    SCOPED_TRACE(name);
    const Parameter p(on_gpu(6), "/l1/W"), other(on_gpu(6));
    cuda::Graph graph = cuda::Graph::capture(cuda_device(0), [&] {
      for (int i = 0; i < 2; ++i) functions::reshape(p, {2, 3});
    });
    p.rebind_data(on_gpu(6));  // as its arena does, within its memory
    move(other);
    graph.launch();
    move(p);
    expect_contains(error_of<Error>([&] { graph.launch(); }),
                    {"Graph::launch: parameter '/l1/W'", "capture the step again"});
    graph = cuda::Graph::capture(cuda_device(0), [&] { functions::reshape(other, {2, 3}); });
    graph.launch();
  }
}

TEST(CapturedParameters, MoveToAnotherArenaButNotWithinOne) {
  const Parameter p(zeros({64}, dtype::float32));
  const uint64_t& moves = p.state()->data->moves;
  uint64_t before = moves;
  optimizers::SGD sgd(0.1);
  sgd.setup({p});
  EXPECT_NE(moves, before);
  before = moves;
  optimizers::ParameterArena& arena = sgd.arena(0);
  arena.make_states({}, {0, 0});
  arena.keep_own_data(true);
  arena.take_whole_data(arena.memory_for_data());
  EXPECT_EQ(moves, before);
}

}  // namespace
}  // namespace catena
