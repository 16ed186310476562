// The kernels of the gradient of max pooling, compiled for the host: see max_pooling_test.cpp.
#include "backends/cuda/pooling/max_pooling_grad.cu"
