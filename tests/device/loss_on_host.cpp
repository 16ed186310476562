// The kernels of softmax cross entropy, compiled for the host: see cross_entropy_test.cpp.
#include "backends/cuda/common/early_launch.cuh"

#include "backends/cuda/loss/loss.cu"
