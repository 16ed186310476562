// The kernels of the gradient of W of small convolutions, compiled for the host: see
// small_convolution_test.cpp.
#include "backends/cuda/convolution/small_grad_w.cu"
