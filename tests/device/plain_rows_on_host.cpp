// The kernels of plain rows, compiled for the host: see plain_rows_test.cpp. Blocks are small, for
// each of their threads is one of the host.
#define CATENA_PLAIN_THREADS 64
#include "backends/cuda/normalization/plain_rows.cu"
