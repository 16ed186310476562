// The kernels of resampling, compiled for the host: see resample_test.cpp.
#include "backends/cuda/pooling/resample.cu"
