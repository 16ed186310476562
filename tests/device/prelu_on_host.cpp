// The kernels of the gradients of prelu, compiled for the host: see prelu_kernels_test.cpp.
#include "backends/cuda/common/early_launch.cuh"

#include "backends/cuda/activation/prelu.cu"
