// The kernel of rows that shared memory holds, compiled for the host: see group_rows_test.cpp.
#define CATENA_KEPT_THREADS 128
#include "backends/cuda/common/early_launch.cuh"

#include "backends/cuda/normalization/kept_rows.cu"
