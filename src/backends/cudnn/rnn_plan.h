// Plan by which cuDNN runs a sequence of an LSTM: descriptors, sizes, and where its weights are.
#pragma once

#include <cudnn_adv.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/common/plan_key.h"
#include "backends/cudnn/handle.h"
#include "catena/core/config.h"
#include "catena/core/dtype.h"

namespace catena::cudnn {

struct RnnProblem {
  Dtype dtype;
  Precision precision;
  int device;
  int64_t steps, sequences, inputs, cells, layers;

  bool fits_32_bits() const;
  void describe(PlanKey& key) const;
};

// The arrays of a layer, in the order of their declaration.
enum class RnnArray : uint8_t { kWx, kWh, kB, kNone };

// Adjacent elements of the weight space that are adjacent in ours: `gates` blocks from `first_gate`
// on, in our order a, i, f, o. Of no array: room between them.
struct RnnPiece {
  int64_t layer;
  RnnArray array;
  int first_gate, gates;
  int64_t offset, count;  // elements
};

// Made once for a problem and not changed afterwards.
class RnnPlan {
 public:
  // NotSupported if cuDNN cannot do it.
  RnnPlan(const RnnProblem& problem, cudnnHandle_t handle);
  ~RnnPlan();
  RnnPlan(const RnnPlan&) = delete;
  RnnPlan& operator=(const RnnPlan&) = delete;

  cudnnRNNDescriptor_t rnn = nullptr;
  cudnnRNNDataDescriptor_t x = nullptr, y = nullptr;
  cudnnTensorDescriptor_t states = nullptr;  // of h and c
  size_t weight_bytes = 0, reserve_bytes = 0;
  size_t inference_workspace = 0, training_workspace = 0;
  std::vector<RnnPiece> pieces;  // in the order of the weight space, from its begin, without gaps

 private:
  void describe_data(const RnnProblem& problem);
  void describe_network(const RnnProblem& problem, cudnnHandle_t handle);
  void find_pieces(const RnnProblem& problem, cudnnHandle_t handle);
  void destroy();

  cudnnDropoutDescriptor_t no_dropout_ = nullptr;
};

// The plan of the problem, made at the first call by any thread. Null if cuDNN cannot do it. The
// GPU is the thread's current device.
std::shared_ptr<const RnnPlan> rnn_plan_of(const RnnProblem& problem, Handle& handle);

}  // namespace catena::cudnn
