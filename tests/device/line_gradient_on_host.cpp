// The kernels of gradients by lines of sums, compiled for the host: see group_rows_test.cpp.
#define CATENA_SUM_THREADS 64
#include "backends/cuda/normalization/line_gradient.cu"
