// The kernels of sampled losses, compiled for the host: see loss_kernels_test.cpp.
#include "backends/cuda/loss/sampled_logistic.cu"
