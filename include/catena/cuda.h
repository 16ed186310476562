// Everything of namespace catena::cuda: devices and movement of arrays, memory pools, graphs,
// kernels that users write.
#pragma once

#include "catena/array/cuda.h"
#include "catena/array/kernel.h"
#include "catena/core/graph.h"
