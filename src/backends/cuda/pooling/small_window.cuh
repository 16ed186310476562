// Windows of two axes whose size is known when they are compiled: 2 x 2 and 3 x 3. A thread takes a
// tile of neighbours, so that it reads what they share once, and coordinates outside of the image
// are moved to its edge, so that no read has a condition.
#pragma once

#include "backends/cuda/pooling/pooling_index.cuh"

namespace catena::gpu {

// The height and width of such a window, or 0.
inline int small_window(const PoolingSizes& s) {
  const bool plane = s.in[0] == 1 && s.out[0] == 1 && s.kernel[0] == 1 && s.pad[0] == 0;
  const bool square = s.kernel[1] == s.kernel[2] && (s.kernel[1] == 2 || s.kernel[1] == 3);
  return plane && square && is_small(s) ? int(s.kernel[1]) : 0;
}
// Its step along both axes, or 0 where they differ or are larger than 2.
inline int small_stride(const PoolingSizes& s) {
  return s.stride[1] == s.stride[2] && s.stride[1] <= 2 ? int(s.stride[1]) : 0;
}

// How the number of a thread is taken apart: a pack of channels, tile column, tile row and image.
struct Tiles {
  Quotient<uint32_t> packs, columns, rows;
  uint32_t count;
  // At most as many as the array has packs, which are fewer than 2^31.
  Tiles(int64_t images, int64_t packs, int64_t rows, int64_t columns)
      : packs(packs),
        columns(columns),
        rows(rows),
        count(uint32_t(images * packs * rows * columns)) {}
  unsigned blocks() const { return (count + kPoolingThreads - 1) / kPoolingThreads; }
};
struct Tile {
  int pack, column, row, image;
  __device__ Tile(uint32_t n, const Tiles& tiles)
      : pack(int(tiles.packs.split(n))),
        column(int(tiles.columns.split(n))),
        row(int(tiles.rows.split(n))),
        image(int(n)) {}
};

// The next coordinate in [0, extent).
__device__ inline int clamped(int coordinate, int extent) {
  const int low = coordinate < 0 ? 0 : coordinate;
  return low < extent ? low : extent - 1;
}
__device__ inline bool is_inside(int coordinate, int extent) {
  return uint32_t(coordinate) < uint32_t(extent);
}

}  // namespace catena::gpu
