// The kernels of resampling planes of one value, compiled for the host: see resample_test.cpp.
#include "backends/cuda/pooling/resample_planes.cu"
