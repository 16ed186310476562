// Fills the arguments of element-wise kernels and launches them. See map_launch.h.
#include "backends/cuda/jit/map_launch.h"

#include <algorithm>
#include <bit>

#include "backends/cuda/jit/host_args.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/streams.h"

namespace catena::jit {

namespace {

// A loop and the addresses of its operands. A loop too large for one launch is divided into loops
// of the same kind.
struct Loop {
  LoopPlan plan;
  char* pointer[kMaxMapOperands];
};

struct Shared {
  const MapLaunch& call;
  const Device device = call.operand[0].array->device();
  const cudaStream_t stream = gpu::launch_stream(device);
  uint32_t immediate = 0;
  int largest = 1;  // bytes of the widest operand
  int itemsize[kMaxMapOperands];
  int vector() const { return 16 / largest; }
  int unroll() const { return vector() >= 16 ? 1 : 2; }  // as in map.cuh

  explicit Shared(const MapLaunch& launch) : call(launch) {
    for (int k = 0; k < call.operands; ++k) {
      itemsize[k] = call.operand[k].itemsize;
      largest = std::max(largest, call.operand[k].itemsize);
      if (call.operand[k].array == nullptr) immediate |= 1u << k;
    }
  }
  template <class Args>
  void launch(MapKernel kernel, int64_t blocks, int threads, const Args& args) const {
    jit::launch(*call.program, kernel, device.index(), uint64_t(blocks), 1, threads, args, stream);
  }
};

template <int N>
void fill_operands(MapOperands<N>& op, const Shared& shared, char* const* pointers) {
  for (int k = 0; k < N; ++k) {
    op.pointer[k] = pointers[k];
    op.value[k] = shared.call.operand[k].bits;
  }
  op.immediate = shared.immediate;
  op.uniform = 0;
}

// The number of elements before the first one at which every array is aligned to a vector; -1 if
// there is none.
int64_t aligned_head(const Shared& shared, char* const* pointers, uint32_t repeated, int64_t size) {
  const int vector = shared.vector();
  int64_t head = -1;
  for (int k = 0; k < shared.call.operands; ++k) {
    if (((shared.immediate | repeated) >> k) & 1) continue;
    const int item = shared.itemsize[k];
    const uintptr_t misaligned =
        reinterpret_cast<uintptr_t>(pointers[k]) % uintptr_t(vector * item);
    if (misaligned % uintptr_t(item) != 0) return -1;
    const int64_t needed = misaligned == 0 ? 0 : vector - int64_t(misaligned) / item;
    if (head >= 0 && head != needed) return -1;
    head = needed;
  }
  return head < size ? head : -1;
}

template <int N>
void launch_flat(const Shared& shared, char* const* pointers, uint32_t repeated, int64_t size) {
  FlatArgs<N> args;
  fill_operands(args.op, shared, pointers);
  args.op.uniform = repeated;
  args.size = size;
  const int64_t head = aligned_head(shared, pointers, repeated, size);
  args.head = std::max<int64_t>(head, 0);
  args.vectors = head >= 0;
  args.unused = 0;
  const int64_t tile = int64_t(kMapThreads) * shared.vector() * shared.unroll();
  const int64_t blocks = (size - args.head + tile - 1) / tile + (args.head > 0);
  shared.launch(kFlatKernel, blocks, kMapThreads, args);
}

// The dimensions below `dims`, innermost first, but one of them; returns their size.
template <int N, class Args>
int64_t fill_outer(Args& args, const LoopPlan& plan, int dims, int but = -1) {
  int64_t size = 1;
  for (int d = dims - 1; d >= 0; --d) {
    if (d == but) continue;
    args.outer[args.outer_dims] = make_divider(uint32_t(plan.shape[d]));
    for (int k = 0; k < N; ++k) args.outer_stride[args.outer_dims][k] = plan.strides[k][d];
    ++args.outer_dims;
    size *= plan.shape[d];
  }
  return size;
}

template <int N>
bool rows_aligned(const Shared& shared, const Loop& loop) {
  const LoopPlan& plan = loop.plan;
  if (plan.inner() % shared.vector() != 0) return false;
  for (int k = 0; k < N; ++k) {
    if (((shared.immediate >> k) & 1) || plan.inner_stride(k) == 0) continue;
    const int64_t bytes = int64_t(shared.vector()) * shared.itemsize[k];
    if (reinterpret_cast<uintptr_t>(loop.pointer[k]) % uintptr_t(bytes) != 0) return false;
    for (int d = 0; d < plan.ndim - 1; ++d) {
      if (plan.strides[k][d] % bytes != 0) return false;
    }
  }
  return true;
}

template <int N>
void launch_rows(const Shared& shared, const Loop& loop) {
  const LoopPlan& plan = loop.plan;
  RowsArgs<N> args{};
  fill_operands(args.op, shared, loop.pointer);
  const int row_dim = plan.ndim - 2;
  args.columns = plan.inner();
  args.rows = plan.shape[row_dim];
  const int64_t outer = fill_outer<N>(args, plan, row_dim);
  for (int k = 0; k < N; ++k) {
    args.row_stride[k] = plan.strides[k][row_dim];
    if (plan.inner_stride(k) == 0) args.splat |= 1u << k;
  }
  args.vectors = rows_aligned<N>(shared, loop);
  const int64_t lanes = (args.columns + shared.vector() - 1) / shared.vector();
  while (args.width_shift < 7 && (int64_t(1) << args.width_shift) < lanes) ++args.width_shift;
  const int64_t segments = (lanes + (int64_t(1) << args.width_shift) - 1) >> args.width_shift;
  const int64_t block_rows = (kMapThreads >> args.width_shift) * shared.unroll();
  const int64_t groups = (args.rows + block_rows - 1) / block_rows;
  args.segments = make_divider(uint32_t(segments));
  args.groups = make_divider(uint32_t(groups));
  shared.launch(kRowsKernel, segments * groups * outer, kMapThreads, args);
}

template <int N>
void launch_tiled(const Shared& shared, const Loop& loop, const MapLayout& layout) {
  const LoopPlan& plan = loop.plan;
  TiledArgs<N> args{};
  fill_operands(args.op, shared, loop.pointer);
  args.columns = plan.inner();
  args.rows = plan.shape[layout.staged_dim];
  args.staged = layout.staged;
  const int64_t outer = fill_outer<N>(args, plan, plan.ndim - 1, layout.staged_dim);
  for (int k = 0; k < N; ++k) {
    args.column_stride[k] = plan.inner_stride(k);
    args.row_stride[k] = plan.strides[k][layout.staged_dim];
  }
  // As tile_edge() in tiled.cuh.
  const int inputs = N - shared.call.outputs;
  const int edge = inputs > 5                           ? 16
                   : inputs > 2 || shared.largest == 8  ? 32
                   : shared.largest == 1 && inputs == 1 ? 128
                                                        : 64;
  const int64_t column_tiles = (args.columns + edge - 1) / edge,
                row_tiles = (args.rows + edge - 1) / edge;
  args.column_tiles = make_divider(uint32_t(column_tiles));
  args.row_tiles = make_divider(uint32_t(row_tiles));
  shared.launch(kTiledKernel, column_tiles * row_tiles * outer, kTileThreads, args);
}

template <int N>
void launch_strided(const Shared& shared, const Loop& loop) {
  const LoopPlan& plan = loop.plan;
  StridedArgs<N> args{};
  fill_operands(args.op, shared, loop.pointer);
  args.size = static_cast<uint32_t>(plan.size);
  args.ndim = plan.ndim;
  for (int d = 0; d < plan.ndim; ++d) {
    const int from = plan.ndim - 1 - d;
    args.extent[d] = make_divider(uint32_t(plan.shape[from]));
    for (int k = 0; k < N; ++k) args.stride[d][k] = plan.strides[k][from];
  }
  const int64_t most = int64_t(gpu::device_info(shared.device.index()).multiprocessors) * 128;
  constexpr int kTile = kMapThreads * kStridedUnroll;
  const int64_t blocks = std::min<int64_t>((plan.size + kTile - 1) / kTile, most);
  shared.launch(kStridedKernel, blocks, kMapThreads, args);
}

// Halves the outermost dimension, or takes its indices one by one, until the parts fit one launch.
template <int N>
void run_loop(const Shared& shared, const Loop& loop);
template <int N>
void split_loop(const Shared& shared, const Loop& loop) {
  const bool peel = loop.plan.ndim > kMapDims;  // too many dimensions: one launch for each index
  int64_t at = 0;
  const int64_t extent = loop.plan.shape[0], step = peel ? 1 : (extent + 1) / 2;
  const int64_t part_size = loop.plan.size / extent;
  for (; at < extent; at += step) {
    Loop part = loop;
    const int64_t count = std::min(step, extent - at);
    for (int k = 0; k < N; ++k) {
      if (part.pointer[k]) part.pointer[k] += at * loop.plan.strides[k][0];
    }
    part.plan.size = part_size * count;
    part.plan.shape[0] = count;
    if (count == 1 && part.plan.ndim > 1) {
      --part.plan.ndim;
      std::copy(part.plan.shape + 1, part.plan.shape + 1 + part.plan.ndim, part.plan.shape);
      for (int k = 0; k < N; ++k) {
        std::copy(part.plan.strides[k] + 1, part.plan.strides[k] + 1 + part.plan.ndim,
                  part.plan.strides[k]);
      }
    }
    run_loop<N>(shared, part);
  }
}

template <int N>
void run_loop(const Shared& shared, const Loop& loop) {
  const LoopPlan& plan = loop.plan;
  const uint32_t arrays = ((1u << N) - 1) & ~shared.immediate;
  const MapLayout layout = choose_layout(plan, shared.itemsize, arrays);
  if (layout.kernel == kFlatKernel) {
    uint32_t repeated = 0;
    for (int k = 1; k < N; ++k) {
      if (plan.strides[k][0] == 0) repeated |= 1u << k;
    }
    return launch_flat<N>(shared, loop.pointer, repeated & arrays, plan.size);
  }
  // All extents but the two that are walked with 64 bits use 32-bit division.
  if (plan.ndim > kMapDims || plan.size >= (int64_t(1) << 31)) return split_loop<N>(shared, loop);
  if (layout.kernel == kRowsKernel) return launch_rows<N>(shared, loop);
  if (layout.kernel == kTiledKernel) return launch_tiled<N>(shared, loop, layout);
  launch_strided<N>(shared, loop);
}

template <int N>
void run(const MapLaunch& call) {
  const Shared shared(call);
  Loop loop;
  uint32_t repeated = 0;
  bool flat = true;
  const Array& output = *call.operand[0].array;
  for (int k = 0; k < N; ++k) {
    const Array* a = call.operand[k].array;
    loop.pointer[k] = a ? static_cast<char*>(a->raw_data()) : nullptr;
    if (a == nullptr || a->is_contiguous()) continue;
    // One element for the whole call: every stride is 0.
    const bool single = k > 0 && std::all_of(a->strides().begin(), a->strides().end(),
                                             [](int64_t s) { return s == 0; });
    if (single) repeated |= 1u << k;
    flat = flat && single;
  }
  if (flat) [[likely]]
    return launch_flat<N>(shared, loop.pointer, repeated, output.size());
  const Shape scalar_shape;
  const Strides no_strides;
  LoopOperand operands[N];
  for (int k = 0; k < N; ++k) {
    const Array* a = call.operand[k].array;
    operands[k] =
        a ? LoopOperand{&a->shape(), &a->strides()} : LoopOperand{&scalar_shape, &no_strides};
  }
  loop.plan = plan_loop(std::span<const LoopOperand>(operands, N));
  run_loop<N>(shared, loop);
}

}  // namespace

void launch_map(const MapLaunch& call) {
  switch (call.operands) {
    case 2: return run<2>(call);
    case 3: return run<3>(call);
    case 4: return run<4>(call);
    case 5: return run<5>(call);
    case 6: return run<6>(call);
    case 7: return run<7>(call);
    case 8: return run<8>(call);
    case 9: return run<9>(call);
    case 10: return run<10>(call);
    default: fail<Error>(call.program->what, ": ", call.operands, " operands; expected 2 to 10");
  }
}

}  // namespace catena::jit
