// The kernels of the cross entropy in place, compiled for the host: see loss_kernels_test.cpp.
#include "backends/cuda/common/early_launch.cuh"

#include "backends/cuda/loss/cross_entropy_in_place.cu"
