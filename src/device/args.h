// Arguments of generated kernels: plain structs passed by value, with the same layout in g++, nvcc
// and NVRTC. Strides are in bytes. Operand 0 (and further outputs) come before the inputs.
#pragma once

#include "device/index.h"

namespace catena {
namespace jit {

constexpr int kMapDims = 8;       // collapsed dimensions of a kernel; the host splits off more
constexpr int kReduceDims = 12;   // kept, and reduced: an array of alternating axes has the most
constexpr int kMapThreads = 128;  // threads of a block of flat, rows and strided kernels
constexpr int kTileThreads = 256;
constexpr int kReduceThreads = 256;
constexpr int kReduceBlocks = 4;  // of a multiprocessor, where all of a reduction run at once

// The operands of an element-wise kernel.
template <int N>
struct MapOperands {
  void* pointer[N];    // first element
  uint64_t value[N];   // storage bits of an operand that is a host number
  uint32_t immediate;  // bit k: operand k is value[k]
  uint32_t uniform;    // bit k: operand k is one element in device memory
};

// Every array is contiguous in the same order.
template <int N>
struct FlatArgs {
  MapOperands<N> op;
  int64_t size;
  int64_t head;     // elements before the first one that is aligned for vectors in every array
  int32_t vectors;  // 0: no common alignment
  int32_t unused;
};

// The innermost dimension has stride itemsize, or 0, in every input; itemsize in the outputs.
template <int N>
struct RowsArgs {
  MapOperands<N> op;
  int64_t columns, rows;
  int64_t row_stride[N];
  int64_t outer_stride[kMapDims - 2][N];
  Divider outer[kMapDims - 2];  // extents other than `rows`, innermost first
  Divider segments;             // blocks along a row
  Divider groups;               // blocks along the rows
  int32_t outer_dims;
  int32_t width_shift;  // log2 of the threads along a row
  int32_t vectors;      // every row of every operand is aligned, in whole vectors
  uint32_t splat;       // bit k: stride 0 along the columns
};

// Outputs are contiguous along `columns`, inputs in `staged` along `rows`.
template <int N>
struct TiledArgs {
  MapOperands<N> op;
  int64_t columns, rows;
  int64_t column_stride[N];
  int64_t row_stride[N];
  int64_t outer_stride[kMapDims - 2][N];
  Divider outer[kMapDims - 2];
  Divider column_tiles, row_tiles;
  int32_t outer_dims;
  uint32_t staged;
};

// Elements of a strided loop that a thread processes together, one block apart.
constexpr int kStridedUnroll = 2;

// Any layout; fewer than 2^31 elements.
template <int N>
struct StridedArgs {
  MapOperands<N> op;
  int64_t stride[kMapDims][N];  // innermost first
  Divider extent[kMapDims];
  uint32_t size;
  int32_t ndim;
};

// A reduction: output o = reduce over r of input(o, r). If splits > 1, partial results are written
// to `partial` [split][output] and combined by the finishing kernel.
// Of a reduction, or of the search for the positions of extreme elements: vectors of 16 bytes then
// hold adjacent elements of an output, or of columns.
struct ReduceArgs {
  const void* input;
  void* output;
  void* partial;      // [split][output]; of positions pairs of position (int64) and value
  int64_t outputs;    // number of results
  int64_t reduced;    // elements of each output
  int64_t per_split;  // of these, in one split
  int64_t kept_stride[kReduceDims];     // input, innermost first
  int64_t result_stride[kReduceDims];   // output
  int64_t reduced_stride[kReduceDims];  // row kernel with vectors: [0] counts vectors
  Divider kept[kReduceDims];
  Divider reduced_extent[kReduceDims];
  double divisor;
  int32_t kept_dims, reduced_dims;
  int32_t splits;
  int32_t group_shift;  // rows: log2 of the threads that share an output; columns: width
  int32_t vectors;
  int32_t accumulate;
  int32_t maximum;  // positions: of the largest elements
  Divider blocks;   // columns: blocks along the innermost kept dimension; short: threads
};

struct ArangeArgs {
  void* output;
  int64_t size;
  int64_t integer_start, integer_step;
  double start, step;
};

// A user's element-wise kernel: the operands that take part in broadcasting.
constexpr int kUserDims = 24;
// D: the most dimensions of the loop. It is kUserDims, or 1, because fewer bytes make the launch
// faster.
template <int N, int D = kUserDims>
struct UserArgs {
  void* pointer[N];
  uint64_t value[N];  // storage bits of an operand that is a host number
  int64_t size;
  int64_t stride[D][N];  // bytes, innermost first; those of [0] are always set
  int64_t extent[D];
  Divider divider[D];  // the same extents, used below 2^31 elements
  uint32_t immediate;  // bit k: operand k is value[k]
  int32_t ndim;
};
// An argument that the user's code indexes.
struct UserRaw {
  void* data;
  int64_t size;
  int64_t shape[kUserDims];   // outermost first
  int64_t stride[kUserDims];  // bytes
  int32_t ndim;
  int32_t contiguous;
};
template <int N>
struct UserRaws {
  UserRaw array[N];
};

constexpr int kConcatInputs = 16;

// Inputs are (rows, width[k]) words, joined along the second axis.
struct ConcatArgs {
  const void* input[kConcatInputs];
  void* output;
  int64_t width[kConcatInputs];   // words of one row of the input
  int64_t column[kConcatInputs];  // where it starts in a row of the output
  int64_t output_width;
  int64_t rows;
  uint32_t first_block[kConcatInputs + 1];
  int32_t count;
};

static_assert(sizeof(Divider) == 12, "Divider must have no padding");
static_assert(sizeof(FlatArgs<3>) == 80, "FlatArgs is laid out alike everywhere");
static_assert(sizeof(RowsArgs<3>) == 352, "RowsArgs is laid out alike everywhere");
static_assert(sizeof(TiledArgs<3>) == 368, "TiledArgs is laid out alike everywhere");
static_assert(sizeof(StridedArgs<3>) == 352, "StridedArgs is laid out alike everywhere");
static_assert(sizeof(ReduceArgs) == 672, "ReduceArgs is laid out alike everywhere");
static_assert(sizeof(ArangeArgs) == 48, "ArangeArgs is laid out alike everywhere");
static_assert(sizeof(UserArgs<2, 1>) == 88, "UserArgs is laid out alike everywhere");
static_assert(sizeof(UserArgs<2>) == 912, "UserArgs is laid out alike everywhere");
static_assert(sizeof(UserRaw) == 408, "UserRaw is laid out alike everywhere");
static_assert(sizeof(ConcatArgs) == 480, "ConcatArgs is laid out alike everywhere");

}  // namespace jit
}  // namespace catena
