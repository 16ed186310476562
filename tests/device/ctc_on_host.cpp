// The kernels of connectionist temporal classification, compiled for the host: see
// loss_kernels_test.cpp.
#include "backends/cuda/loss/ctc.cu"
