// The kernels of resampling by rows, compiled for the host: see resample_test.cpp. Blocks are
// small, for each of their threads is one of the host.
#define CATENA_ROW_THREADS 32
#include "backends/cuda/pooling/resample_rows.cu"
