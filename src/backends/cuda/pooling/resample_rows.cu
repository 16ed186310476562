// Resampling of images of one channel, as of all arrays with channels first. A few lanes of a warp
// make a row of y: they sum the rows of x that give it into one row of shared memory, each lane
// some columns, and then make the elements of y from parts of that row. So x is read along its
// rows, whatever the extents are. Ranges and weights are computed once for all images of a block.
#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/pooling/resample.h"
#include "backends/cuda/pooling/resample_axis.cuh"
#include "backends/cuda/pooling/resample_sums.cuh"

namespace catena::gpu {
namespace {

#ifndef CATENA_ROW_THREADS
#define CATENA_ROW_THREADS 128
#endif
constexpr int kRowThreads = CATENA_ROW_THREADS;
constexpr int kRowMemory = 16 << 10;  // bytes: 14 blocks run on a multiprocessor at a time
constexpr int kColumnsAtOnce = 4;     // of a lane

struct RowPlan {
  int images, x_rows, x_columns, y_rows, y_columns;
  int lanes;                                 // that make a row: a power of two, at most 32
  int most_rows, most_columns;               // weights of a range; 0 where all are 1
  int weights, row_weights, sums, elements;  // places in memory, in numbers of the sums' type
};

int lanes_for(int64_t columns) {
  int lanes = 4;
  while (lanes < 32 && lanes * 3 / 2 < columns) lanes *= 2;
  return lanes;
}

// In shared memory: the ranges of all columns of y, their weights, the weights of the row, and a
// row of sums for each row in work.
RowPlan plan_rows(const ResampleArgs& a, size_t number_size) {
  const AxisRanges &rows = a.rows, &columns = a.columns;
  const bool weighted = is_weighted(columns);
  const int64_t widest = columns.limit > columns.count ? columns.limit : columns.count;
  RowPlan p{};
  constexpr int64_t kTooMany = kRowMemory;  // would not fit in any case
  if (widest > kTooMany || longest(rows) > kTooMany) return p;
  p.images = int(a.images), p.x_rows = int(rows.limit), p.x_columns = int(columns.limit);
  p.y_rows = int(rows.count), p.y_columns = int(columns.count);
  p.lanes = lanes_for(widest);
  p.most_rows = weighted ? int(longest(rows)) : 0;
  p.most_columns = weighted ? int(longest(columns)) : 0;
  const int64_t ranges = (columns.count * int64_t(sizeof(AxisSpan<int>)) + 7) / int(number_size);
  const int64_t weights = ranges + 1, row_weights = weights + columns.count * p.most_columns;
  const int64_t sums = row_weights + p.most_rows;
  const int64_t elements = sums + kRowThreads / p.lanes * columns.limit;
  if (elements > kRowMemory / int64_t(number_size)) return p;
  p.weights = int(weights), p.row_weights = int(row_weights), p.sums = int(sums);
  p.elements = int(elements);
  return p;
}

// Sums the rows of x of one column after the other: `x` is the first of these rows.
template <class T>
__device__ void sum_rows(const T* x, const RowPlan& p, int count, int lane,
                         const Compute<T>* weights, Compute<T>* sums) {
  for (int first = lane; first < p.x_columns; first += p.lanes * kColumnsAtOnce) {
    Compute<T> of[kColumnsAtOnce] = {};
    const T* at = x + first;
    for (int h = 0; h < count; ++h, at += p.x_columns) {
      const Compute<T> weight = p.most_rows > 0 ? weights[h] : Compute<T>(1);
#pragma unroll
      for (int k = 0; k < kColumnsAtOnce; ++k)
        if (first + k * p.lanes < p.x_columns) of[k] += widen(at[k * p.lanes]) * weight;
    }
#pragma unroll
    for (int k = 0; k < kColumnsAtOnce; ++k)
      if (first + k * p.lanes < p.x_columns) sums[first + k * p.lanes] = of[k];
  }
}

// The row of y that begins at `at`.
template <class T>
__device__ void give_row(const ResampleArgs& args, const RowPlan& p, int64_t at, int lane,
                         const AxisSpan<int>* ranges, const Compute<T>* weights,
                         const Compute<T>* sums, int rows_of_mean) {
  for (int w = lane; w < p.y_columns; w += p.lanes) {
    const AxisSpan<int> range = ranges[w];
    Compute<T> sum[1] = {};
    for (int i = range.begin; i < range.end; ++i) {
      const Compute<T> weight =
          p.most_columns > 0 ? weights[w * p.most_columns + i - range.begin] : Compute<T>(1);
      sum[0] += sums[i] * weight;
    }
    Compute<T> divisor = Compute<T>(args.divisor);
    if (rows_of_mean > 0) divisor *= Compute<T>(rows_of_mean * (range.end - range.begin));
    give_sums<T, 1>(args, at + w, sum, divisor);
  }
}

template <class T>
__global__ void __launch_bounds__(kRowThreads, 12)
    resample_rows_kernel(ResampleArgs args, RowPlan p, Axis<uint32_t> rows,
                         Axis<uint32_t> columns) {
  wait_for_previous_kernel();
  using C = Compute<T>;
  __shared__ __align__(16) C memory[kRowMemory / sizeof(C)];
  AxisSpan<int>* const ranges = reinterpret_cast<AxisSpan<int>*>(memory);
  C *const weights = memory + p.weights, *const row_weights = memory + p.row_weights;
  const int y_row = int(blockIdx.x);
  const AxisSpan<int> down = rows.span(y_row);
  for (int w = int(threadIdx.x); w < p.y_columns; w += kRowThreads) {
    const AxisSpan<int> range = ranges[w] = columns.span(w);
    if (p.most_columns == 0) continue;
    for (int i = range.begin; i < range.end; ++i)
      weights[w * p.most_columns + i - range.begin] = columns.weight<C>(w, i);
  }
  if (p.most_rows > 0)
    for (int h = down.begin + int(threadIdx.x); h < down.end; h += kRowThreads)
      row_weights[h - down.begin] = rows.weight<C>(y_row, h);
  __syncthreads();
  const int lane = int(threadIdx.x) % p.lanes, group = int(threadIdx.x) / p.lanes;
  const int groups = kRowThreads / p.lanes, step = int(gridDim.y) * groups;
  const int rows_of_mean = rows.weights == AxisWeights::kMean ? down.end - down.begin : 0;
  C* const sums = memory + p.sums + group * p.x_columns;
  const T* const x = static_cast<const T*>(args.x);
  // The lanes of a warp stay together: their groups have images of the same round.
  for (int first = int(blockIdx.y) * groups; first < p.images; first += step) {
    const int64_t image = first + group;
    if (image < p.images)
      sum_rows(x + (image * p.x_rows + down.begin) * p.x_columns, p, down.end - down.begin, lane,
               row_weights, sums);
    __syncwarp();
    if (image < p.images)
      give_row<T>(args, p, (image * p.y_rows + y_row) * p.y_columns, lane, ranges, weights, sums,
                  rows_of_mean);
    __syncwarp();
  }
}

template <class T>
bool try_rows(const ResampleArgs& args, const Launch& launch) {
  const RowPlan p = plan_rows(args, sizeof(Compute<T>));
  if (p.elements == 0) return false;
  const int64_t groups = kRowThreads / p.lanes, rounds = (args.images + groups - 1) / groups;
  const int64_t busy = int64_t(launch.multiprocessors) * kPoolingBlocks;
  const int64_t wanted = (busy + p.y_rows - 1) / p.y_rows;
  const int64_t most = rounds < 65535 ? rounds : 65535;
  launch_kernel<&resample_rows_kernel<T>>(
      dim3(unsigned(p.y_rows), unsigned(wanted < most ? wanted : most)), kRowThreads, launch, args,
      p, Axis<uint32_t>(args.rows), Axis<uint32_t>(args.columns));
  return true;
}

}  // namespace

bool launch_resample_rows(Float type, const ResampleArgs& args, const Launch& launch) {
  if (args.channels != 1) return false;
  CATENA_FLOAT_SWITCH(type, return try_rows<T>(args, launch));
  return false;
}

}  // namespace catena::gpu
