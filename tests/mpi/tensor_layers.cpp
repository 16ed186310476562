// Tensor-parallel layers over processes, in the job of suite_main.cpp, against one process.
#include <gtest/gtest.h>

#include "catena/array/random.h"
#include "catena/comm/factory.h"
#include "catena/functions/activation.h"
#include "catena/functions/loss/softmax_cross_entropy.h"
#include "catena/optimizers/adam.h"
#include "catena/parallel/tensor/embed_id.h"
#include "catena/parallel/tensor/linear.h"
#include "catena/parallel/tensor/normalization.h"
#include "catena/parallel/tensor/softmax_cross_entropy.h"

namespace catena {
namespace {

namespace F = catena::functions;

constexpr int64_t kIds = 24, kWidth = 12, kTokens = 24;
constexpr int kSteps = 5;

// The layers of one process, and those of the ranks, drawn in the same order.
struct WholeLayers : FunctionSet {
  F::EmbedID embed{kIds, kWidth};
  F::LayerNormalization norm{kWidth};
  F::Linear up{kWidth, 48}, down{48, kWidth}, head{kWidth, kIds};
  CATENA_FUNCTIONS(embed, norm, up, down, head)
  Variable operator()(const Array& ids) const {
    const Variable h = embed(ids);
    return head(h + down(F::gelu(up(norm(h)))));
  }
};

struct SplitLayers : FunctionSet {
  parallel::VocabParallelEmbedID embed;
  parallel::SequenceParallelLayerNormalization norm;
  parallel::ColumnParallelLinear up;
  parallel::RowParallelLinear down;
  parallel::ColumnParallelLinear head;
  explicit SplitLayers(Communicator& comm)
      : embed(kIds, kWidth, comm, {}, {.sequence_parallel = true}),
        norm(kWidth, comm),
        up(kWidth, 48, comm, {}, {.sequence_parallel = true}),
        down(48, kWidth, comm, {}, {.sequence_parallel = true}),
        head(kWidth, kIds, comm, {}, {.sequence_parallel = true}) {}
  CATENA_FUNCTIONS(embed, norm, up, down, head)
  Variable operator()(const Array& ids) const {
    const Variable h = embed(ids);
    return head(h + down(F::gelu(up(norm(h)))));
  }
};

template <class Model, class LossOf>
std::vector<double> losses_of(Model& model, Device device, LossOf loss_of) {
  optimizers::Adam optimizer(0.01);
  optimizer.setup(model);
  const Array ids = arange(kTokens, {dtype::int32, device});
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grads();
    const Variable loss = loss_of(model(ids), ids);
    loss.backward();
    optimizer.update();
    losses.push_back(loss.template item<double>());
  }
  return losses;
}

TEST(ProcessTensorLayers, TrainAsOneProcess) {
  const CommunicatorPtr comm = create_communicator();
  const DeviceScope scope(comm->device());
  random::default_state(comm->device()).seed(3);
  WholeLayers whole;
  random::default_state(comm->device()).seed(3);
  SplitLayers split(*comm);
  const auto expected = losses_of(whole, comm->device(), [](const Variable& y, const Array& t) {
    return F::softmax_cross_entropy(y, t);
  });
  const auto got = losses_of(split, comm->device(), [&](const Variable& y, const Array& t) {
    return F::vocab_parallel_softmax_cross_entropy(y, t, *comm);
  });
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-4 * expected[i]) << "step " << i;
  EXPECT_LT(expected.back(), 0.9 * expected.front());
  // What is whole has the same bits on all ranks.
  for (const Parameter& p : {Parameter(split.norm.gamma), Parameter(split.down.b)})
    for (const auto& other : comm->all_gather_object(p.data().to_vector<float>()))
      EXPECT_EQ(other, p.data().to_vector<float>());
}

}  // namespace
}  // namespace catena
