// The kernels of resampling by small windows, compiled for the host: see resample_test.cpp.
#include "backends/cuda/pooling/window_sums.cu"
