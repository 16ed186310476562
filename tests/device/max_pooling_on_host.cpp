// The kernels of max pooling, compiled for the host: see max_pooling_test.cpp.
#include "backends/cuda/pooling/max_pooling.cu"
