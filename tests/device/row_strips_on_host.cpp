// The kernels of strips of channels, compiled for the host: see group_rows_test.cpp.
#define CATENA_SUM_THREADS 64
#include "backends/cuda/common/early_launch.cuh"

#include "backends/cuda/normalization/row_strips.cu"
