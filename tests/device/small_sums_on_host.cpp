// The kernels of the forward pass and of the gradient of x of small convolutions, compiled for the
// host: see small_convolution_test.cpp.
#include "backends/cuda/convolution/small_sums.cu"
