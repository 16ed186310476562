// The element-wise kernel for operands with different fastest axes. Tiles of the operands that
// differ from the output go through shared memory, so that every access to global memory is
// coalesced. Follows map.cuh.
#pragma once

namespace catena {
namespace jit {

// The edge of a square tile, from the widest operand and the number of inputs (48 KiB of shared
// memory).
CATENA_FN constexpr int tile_edge() {
  if (CATENA_N - CATENA_OUTPUTS > 5) return 16;
  if (CATENA_N - CATENA_OUTPUTS > 2 || largest_operand() == 8) return 32;
  return largest_operand() == 1 && CATENA_N - CATENA_OUTPUTS == 1 ? 128 : 64;
}
constexpr int kEdge = tile_edge();
constexpr int kTileRows = kTileThreads / kEdge;  // rows that a block accesses at a time
constexpr int kTileSteps = kEdge / kTileRows;
constexpr int kTileBatch = kTileSteps < 8 ? kTileSteps : 8;
template <class T>
CATENA_FN constexpr int tile_pitch() {
  return kEdge + (sizeof(T) < 4 ? 4 / int(sizeof(T)) : 1);
}

// Copies the tile at (row0, column0) with threads along the rows; tile[column][row].
template <class T>
CATENA_FN void stage_tile(T* tile, const char* p, int64_t row_stride, int64_t column_stride,
                          int rows, int columns) {
  const int r = threadIdx.x % kEdge, c0 = threadIdx.x / kEdge;
  p += r * row_stride + c0 * column_stride;
  T batch[kTileBatch];
#pragma unroll 1
  for (int step = 0; step < kTileSteps; step += kTileBatch) {
#pragma unroll
    for (int b = 0; b < kTileBatch; ++b) {
      const int c = c0 + (step + b) * kTileRows;
      if (r < rows && c < columns)
        batch[b] = *reinterpret_cast<const T*>(p + b * (kTileRows * column_stride));
    }
#pragma unroll
    for (int b = 0; b < kTileBatch; ++b)
      tile[(c0 + (step + b) * kTileRows) * tile_pitch<T>() + r] = batch[b];
    p += kTileBatch * kTileRows * column_stride;
  }
}

CATENA_KERNEL __launch_bounds__(kTileThreads)
    catena_tiled(const __grid_constant__ TiledArgs<CATENA_N> a) {
  wait_for_previous_kernel();
  uint32_t column_tile, row_tile;
  uint32_t outer = divide(blockIdx.x, a.column_tiles, column_tile);
  outer = divide(outer, a.row_tiles, row_tile);
  const int64_t column0 = int64_t(column_tile) * kEdge, row0 = int64_t(row_tile) * kEdge;
  const int columns = a.columns - column0 < kEdge ? int(a.columns - column0) : kEdge;
  const int rows = a.rows - row0 < kEdge ? int(a.rows - row0) : kEdge;
#define CATENA_POINTER(k) \
  char* pointer##k =      \
      static_cast<char*>(a.op.pointer[k]) + column0 * a.column_stride[k] + row0 * a.row_stride[k];
  CATENA_EACH_OUTPUT(CATENA_POINTER)
  CATENA_EACH_INPUT(CATENA_POINTER)
#undef CATENA_POINTER
#pragma unroll 1
  for (int d = 0; d < a.outer_dims; ++d) {
    uint32_t at;
    outer = divide(outer, a.outer[d], at);
#define CATENA_ADVANCE(k) pointer##k += at * a.outer_stride[d][k];
    CATENA_EACH_OUTPUT(CATENA_ADVANCE)
    CATENA_EACH_INPUT(CATENA_ADVANCE)
#undef CATENA_ADVANCE
  }
#define CATENA_STAGE(k)                                            \
  __shared__ Operand##k tile##k[kEdge * tile_pitch<Operand##k>()]; \
  if ((a.staged >> k) & 1)                                         \
    stage_tile(tile##k, pointer##k, a.row_stride[k], a.column_stride[k], rows, columns);
  CATENA_EACH_INPUT(CATENA_STAGE)
#undef CATENA_STAGE
  __syncthreads();

  constexpr int kBatch = kTileSteps < 4 ? kTileSteps : 4;
  const int c = threadIdx.x % kEdge, r0 = threadIdx.x / kEdge;
  if (c >= columns) return;
#pragma unroll 1
  for (int step = 0; step < kTileSteps; step += kBatch) {
#define CATENA_BATCH(k) Operand##k batch##k[kBatch];
    CATENA_EACH_OUTPUT(CATENA_BATCH)
    CATENA_EACH_INPUT(CATENA_BATCH)
#undef CATENA_BATCH
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      const int r = r0 + (step + u) * kTileRows;
      if (r >= rows) continue;
#define CATENA_LOAD(k)                                                                       \
  if ((a.op.immediate >> k) & 1)                                                             \
    batch##k[u] = from_bits<Operand##k>(a.op.value[k]);                                      \
  else if ((a.staged >> k) & 1)                                                              \
    batch##k[u] = tile##k[c * tile_pitch<Operand##k>() + r];                                 \
  else                                                                                       \
    batch##k[u] = *reinterpret_cast<const Operand##k*>(pointer##k + c * a.column_stride[k] + \
                                                       r * a.row_stride[k]);
      CATENA_EACH_INPUT(CATENA_LOAD)
#undef CATENA_LOAD
    }
#pragma unroll
    for (int u = 0; u < kBatch; ++u) {
      const int r = r0 + (step + u) * kTileRows;
      if (r >= rows) continue;
#define CATENA_VALUE(k) batch##k[u]
      CATENA_ELEMENT(CATENA_VALUE)
#undef CATENA_VALUE
#define CATENA_STORE(k)                                                                       \
  *reinterpret_cast<Operand##k*>(pointer##k + c * a.column_stride[k] + r * a.row_stride[k]) = \
      batch##k[u];
      CATENA_EACH_OUTPUT(CATENA_STORE)
#undef CATENA_STORE
    }
  }
}

}  // namespace jit
}  // namespace catena
