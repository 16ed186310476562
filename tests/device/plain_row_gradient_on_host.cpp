// The kernels of the gradients of plain rows, compiled for the host: see plain_rows_test.cpp.
#define CATENA_PLAIN_THREADS 64
#define CATENA_SUM_THREADS 64
#include "backends/cuda/normalization/plain_row_gradient.cu"
