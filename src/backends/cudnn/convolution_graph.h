// The operation graph of a convolution: one node, or two with a bias.
#pragma once

#include <cstdint>

#include "backends/cudnn/plan_request.h"
#include "backends/cudnn/problem.h"

namespace catena::cudnn {

// Ids of the tensors of a call: x or gx, W or gW, the bias, y or gy.
enum TensorId : int64_t { kX = 1, kW = 2, kB = 3, kY = 4 };

// Throws NotSupported if cuDNN has no such convolution.
Graph make_graph(const Problem& problem, cudnnHandle_t handle);

}  // namespace catena::cudnn
