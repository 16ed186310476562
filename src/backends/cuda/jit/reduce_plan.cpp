// Plans reductions. See reduce_plan.h.
#include "backends/cuda/jit/reduce_plan.h"

#include <algorithm>
#include <cstdlib>

namespace catena::jit {

namespace {

struct Dim {
  int64_t extent, input, output;
};

// A list of dimensions, innermost first, adjacent ones merged.
struct DimList {
  Dim dim[kMaxDims];
  int count = 0;
  int64_t size = 1;

  void add(const Dim& d) {
    int at = count++;
    while (at > 0 && std::abs(dim[at - 1].input) > std::abs(d.input)) {
      dim[at] = dim[at - 1];
      --at;
    }
    dim[at] = d;
    size *= d.extent;
  }
  void merge() {
    int last = 0;
    for (int i = 1; i < count; ++i) {
      Dim& below = dim[last];
      if (dim[i].input == below.input * below.extent &&
          dim[i].output == below.output * below.extent) {
        below.extent *= dim[i].extent;
      } else {
        dim[++last] = dim[i];
      }
    }
    if (count > 0) count = last + 1;
  }
};

int log2_ceil(int64_t n, int most) {
  int shift = 0;
  while (shift < most && (int64_t(1) << shift) < n) ++shift;
  return shift;
}
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Whether blocks that end make room for others, or all run at once.
enum class Waves { kSeveral, kOne };

struct Planner {
  const ReduceShape& shape;
  DimList kept, reduced;
  ReducePlan plan{};
  int vector;  // elements in 16 bytes of the input

  explicit Planner(const ReduceShape& s) : shape(s), vector(16 / s.input_itemsize) {
    for (int d = s.shape.ndim() - 1; d >= 0; --d) {
      const int64_t extent = s.shape[size_t(d)];
      if (extent == 1) continue;
      if ((s.axes >> d) & 1)
        reduced.add({extent, s.input[size_t(d)], 0});
      else
        kept.add({extent, s.input[size_t(d)], s.output[size_t(d)]});
    }
    kept.merge();
    reduced.merge();
    plan.fits = kept.count <= kReduceDims && reduced.count <= kReduceDims &&
                kept.size < (int64_t(1) << 31) &&
                (reduced.count <= 1 || reduced.size < (int64_t(1) << 31));
  }

  bool aligned(const DimList& list, int from) const {
    for (int i = from; i < list.count; ++i) {
      if (list.dim[i].input % 16 != 0) return false;
    }
    return shape.address % 16 == 0;
  }

  void fill_args() {
    ReduceArgs& a = plan.args;
    a.outputs = kept.size;
    a.reduced = reduced.size;
    a.kept_dims = kept.count;
    a.reduced_dims = reduced.size == 0 ? 0 : reduced.count;
    for (int i = 0; i < kept.count; ++i) {
      a.kept_stride[i] = kept.dim[i].input;
      a.result_stride[i] = kept.dim[i].output;
      a.kept[i] = make_divider(uint32_t(kept.dim[i].extent));
    }
    for (int i = 0; i < a.reduced_dims; ++i) {
      a.reduced_stride[i] = reduced.dim[i].input;
      // A single dimension is walked with 64 bits and never divided.
      a.reduced_extent[i] = make_divider(reduced.count == 1 ? 1u : uint32_t(reduced.dim[i].extent));
    }
    a.blocks = make_divider(1);
    if (a.reduced_dims == 0) a.reduced_dims = 1;  // one element (or none) at offset 0
  }

  // Splits the reduced elements over gridDim.y. There are as many splits as fill the device,
  // with at least `least` elements each.
  void split(int64_t blocks, int64_t least, int64_t multiple, Waves waves = Waves::kSeveral) {
    const bool one = waves == Waves::kOne;
    const int64_t places = int64_t(shape.multiprocessors) * (one ? kReduceBlocks : 16);
    const int64_t wanted = one && blocks < places ? places / blocks : ceil_div(places, blocks);
    const int64_t possible = plan.args.reduced / least;
    int64_t splits = std::min(wanted, possible);
    // If that gives few waves of blocks, long ranges are divided further, so that the last wave is
    // a small part of the whole.
    if (wanted > 1 && blocks >= shape.multiprocessors)
      splits = std::max(splits, std::min(4 * wanted, possible / 4));
    splits = std::clamp<int64_t>(splits, 1, 32768);
    plan.args.per_split =
        std::max<int64_t>(ceil_div(ceil_div(plan.args.reduced, splits), multiple) * multiple, 1);
    plan.args.splits = static_cast<int32_t>(
        std::max<int64_t>(ceil_div(plan.args.reduced, plan.args.per_split), 1));
    if (plan.args.splits == 1) return;
    plan.partial_bytes = uint64_t(plan.args.splits) * uint64_t(plan.args.outputs) *
                         uint64_t(shape.accumulator_bytes);
    // Threads of 16 outputs read 64 bytes at once.
    const int most = plan.args.outputs >= 4096 ? 0 : plan.args.outputs >= 16 ? 4 : 8;
    plan.finish_shift = log2_ceil(ceil_div(plan.args.splits, 4), most);
    plan.finish_blocks = uint64_t(ceil_div(plan.args.outputs, kReduceThreads >> plan.finish_shift));
  }

  bool columns_in_vectors() const {
    return kept.dim[0].extent % vector == 0 && aligned(kept, 1) && aligned(reduced, 0);
  }

  void columns() {
    plan.kernel = kReduceColumns;
    const int64_t extent = kept.dim[0].extent, outer = kept.size / extent;
    plan.args.vectors = columns_in_vectors();
    const int64_t lanes = ceil_div(extent, vector);
    int shift = log2_ceil(lanes, 5);
    const auto blocks = [&] { return ceil_div(lanes, int64_t(1) << shift) * outer; };
    // Narrower blocks, down to 128 bytes, if a small array has too few wide ones.
    while (shift > 3 && blocks() < 2 * shape.multiprocessors && reduced.size < 4096) --shift;
    plan.args.group_shift = shift;
    plan.args.blocks = make_divider(uint32_t(ceil_div(lanes, int64_t(1) << shift)));
    plan.blocks = uint64_t(blocks());
    const int64_t height = kReduceThreads >> shift;
    split(blocks(), height * 16, 1, Waves::kOne);
  }

  // Few elements for each output, and so many outputs that one thread for each fills the device.
  bool is_short() const {
    return reduced.size <= 64 && kept.size / vector >= int64_t(shape.multiprocessors) * 512;
  }

  // One column or a vector of adjacent columns, for kernels whose threads compute their own
  // columns.
  int64_t columns_of_a_thread() {
    const int64_t extent = kept.dim[0].extent;
    plan.args.vectors = columns_in_vectors();
    const int64_t each = plan.args.vectors ? vector : 1;
    plan.args.blocks = make_divider(uint32_t(extent / each));
    return each;
  }

  // Every thread computes its own columns, also across the end of a row.
  void position_columns() {
    plan.kernel = kReduceColumns;
    const int64_t each = columns_of_a_thread();
    const auto blocks = [&](int shift) { return ceil_div(kept.size / each, int64_t(1) << shift); };
    int shift = is_short() ? 8 : 5;
    while (shift > 3 && blocks(shift) < 2 * shape.multiprocessors && reduced.size < 4096) --shift;
    plan.args.group_shift = shift;
    plan.blocks = uint64_t(blocks(shift));
    split(blocks(shift), (kReduceThreads >> shift) * 16, 1);
  }

  void short_columns() {
    plan.kernel = kReduceShort;
    const int64_t each = columns_of_a_thread();
    plan.blocks = uint64_t(ceil_div(kept.size / each, kReduceThreads));
    plan.args.splits = 1;
  }

  // Whether the elements of an output can be read 16 bytes at a time. With several reduced
  // dimensions the innermost one must consist of whole vectors; a single dimension may leave a
  // remainder.
  bool in_vectors() const {
    if (reduced.count == 0 || reduced.dim[0].input != shape.input_itemsize) return false;
    if (reduced.size < vector || !aligned(kept, 0)) return false;
    if (reduced.count == 1) return true;
    return !shape.positions && reduced.dim[0].extent % vector == 0 && aligned(reduced, 1);
  }

  void rows() {
    plan.kernel = kReduceRows;
    plan.args.vectors = in_vectors();
    const int64_t per_step = plan.args.vectors ? vector : 1;
    const int64_t steps = ceil_div(reduced.size, per_step);
    if (plan.args.vectors && !shape.positions) {
      plan.args.reduced_stride[0] = 16;
      if (reduced.count > 1)
        plan.args.reduced_extent[0] = make_divider(uint32_t(reduced.dim[0].extent / vector));
    }
    // One thread for each output, if adjacent outputs are closer in memory than adjacent elements.
    const bool across = kept.count > 0 && reduced.count > 0 &&
                        std::abs(kept.dim[0].input) < std::abs(reduced.dim[0].input);
    // Four steps for each thread, or eight if one warp then suffices.
    const int64_t each = steps > 128 ? 8 : 4;
    int shift = across && kept.size >= 32 ? 0 : log2_ceil(ceil_div(steps, each), 8);
    // Few outputs: more threads for each.
    while (shift < 8 && (int64_t(1) << shift) < steps &&
           (kept.size << shift) < int64_t(shape.multiprocessors) * 512)
      ++shift;
    plan.args.group_shift = shift;
    plan.blocks = uint64_t(ceil_div(kept.size, kReduceThreads >> shift));
    // Splits that take tiles in turn all run at once and end together. With four blocks a
    // multiprocessor none of them waits for a second wave, which would begin when most of them are
    // done.
    const bool in_turn =
        plan.args.vectors && !shape.positions && int64_t(plan.blocks) * 8 <= shape.multiprocessors;
    split(int64_t(plan.blocks), (int64_t(1) << shift) * per_step * 16, per_step,
          in_turn ? Waves::kOne : Waves::kSeveral);
  }

  ReducePlan run() {
    if (!plan.fits) return plan;
    fill_args();
    const bool column = kept.count > 0 && kept.dim[0].input == shape.input_itemsize &&
                        kept.dim[0].extent * shape.input_itemsize >= 32 && reduced.size > 1;
    if (column && shape.positions)
      position_columns();
    else if (column && is_short())
      short_columns();
    else if (column)
      columns();
    else
      rows();
    // Positions within a split have 32 bits, including the step past its end.
    constexpr int64_t kMost = (int64_t(1) << 31) - 4 * kReduceThreads;
    if (shape.positions && plan.args.per_split > kMost) plan.fits = false;
    return plan;
  }
};

}  // namespace

ReducePlan plan_reduce(const ReduceShape& shape) { return Planner(shape).run(); }

}  // namespace catena::jit
