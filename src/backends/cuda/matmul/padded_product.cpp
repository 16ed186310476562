// Products of odd extents, computed from copies in columns of whole packs.
#include <algorithm>
#include <utility>
#include <vector>

#include "backends/cuda/matmul/line_copies.h"
#include "backends/cuda/matmul/padding.h"
#include "backends/cuda/runtime/cuda_check.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/memory_pools.h"

namespace catena::gpu {
namespace {

// How numbers are multiplied, and where.
struct Setting {
  Dtype dtype;
  Precision precision;
  int device;
  cudaStream_t stream;
};

bool compute(const LibraryProduct& p, const Setting& setting) {
  return direct_matmul(setting.dtype, setting.precision, p, setting.device, setting.stream);
}

// Numbers along a column in memory, and columns.
struct Extent {
  int64_t length, lines;
};

// Scratch memory with matrices.
struct Scratch {
  StoragePtr memory;
  LibraryMatrix matrix{};
};

class PaddedProduct {
 public:
  PaddedProduct(const LibraryProduct& p, const Padding& padding, const Packs& packs,
                const Setting& setting)
      : p_(p),
        padding_(padding),
        packs_(packs),
        setting_(setting),
        size_(16 / packs.operand),
        result_size_(16 / packs.result) {}

  // False, with no result changed, if the library has no algorithm.
  bool run() {
    if (padding_.bias) copy_bias();
    for (int64_t i = 0; i < p_.batch; i += padding_.batch_of_part) {
      const int64_t batch = std::min(padding_.batch_of_part, p_.batch - i);
      a_ = {};  // before the next one takes memory
      if (padding_.a) a_ = copied_a(part(i, batch, 0, p_.columns));
      for (int64_t j = 0; j < padding_.columns; j += padding_.columns_of_part)
        if (!run_part(part(i, batch, j, std::min(padding_.columns_of_part, padding_.columns - j))))
          return false;
    }
    const int64_t rest = p_.columns - padding_.columns;
    return rest == 0 || run_rest(part(0, p_.batch, padding_.columns, rest));
  }

 private:
  // Matrices [i, i + batch), columns [j, j + columns) of b and of the result.
  LibraryProduct part(int64_t i, int64_t batch, int64_t j, int64_t columns) const {
    LibraryProduct part = p_;
    part.batch = batch, part.columns = columns;
    const auto move = [&](LibraryMatrix& m, int64_t column_step, int64_t size) {
      m.data = static_cast<char*>(m.data) + (i * m.batch_step + j * column_step) * size;
    };
    move(part.a, 0, size_);
    move(part.b, part.b.transposed ? 1 : part.b.leading, size_);
    move(part.c, part.c.leading, result_size_);
    return part;
  }

  // The product of the copies of a part.
  bool run_part(const LibraryProduct& part) {
    LibraryProduct whole = part;
    whole.rows = padding_.rows, whole.depth = padding_.depth;
    if (padding_.pads_columns) whole.columns = up_to(packs_.operand, part.columns);
    if (padding_.a) whole.a = a_.matrix;
    if (padding_.bias) whole.bias = bias_->data;
    Scratch b, c;
    if (padding_.b) whole.b = (b = copied_b(part, whole)).matrix;
    if (padding_.c) whole.c = (c = room_for_c(part, whole)).matrix;
    launch_copies();
    if (!compute(whole, setting_)) return run_rest(part);
    is_begun_ = true;
    if (!padding_.c) return true;
    const Extent extent{part.rows, part.columns};
    add_copy(c.matrix, extent, part.c, extent, part.batch, result_size_);
    launch_copies();
    return true;
  }

  // What is not computed from copies.
  bool run_rest(const LibraryProduct& part) {
    const bool done = compute(part, setting_);
    CATENA_CHECK(DeviceError, done || !is_begun_, "cuBLASLt computes only a part of a product");
    is_begun_ = true;
    return done;
  }

  Scratch scratch_of(const Extent& extent, int64_t batch, bool transposed, int64_t size) const {
    const int64_t step = up_to(16 / size, extent.length);
    Scratch scratch;
    scratch.memory = allocate_device(setting_.device, size_t(batch * step * extent.lines * size));
    scratch.matrix = {scratch.memory->data, step, step * extent.lines, transposed};
    return scratch;
  }
  void add_copy(const LibraryMatrix& from, const Extent& has, const LibraryMatrix& to,
                const Extent& gets, int64_t batch, int64_t size) {
    const auto place = [&](const LibraryMatrix& m, const Extent& e) {
      return LineCopy::Place{static_cast<char*>(m.data), e.length * size, e.lines, m.leading * size,
                             m.batch_step * size};
    };
    copies_.push_back({place(from, has), place(to, gets), batch});
  }
  void launch_copies() {
    if (copies_.empty()) return;
    const DeviceInfo& info = device_info(setting_.device);
    launch_line_copies(
        copies_.data(), int(copies_.size()),
        {setting_.stream, info.multiprocessors, setting_.device, info.early_launches});
    check_launch("matmul (copies)");
    copies_.clear();
  }

  // A copy of op(m), which has `rows` by `columns`, with zeros up to `more_rows` by `more_columns`.
  Scratch copied(const LibraryMatrix& m, int64_t rows, int64_t columns, int64_t more_rows,
                 int64_t more_columns, int64_t batch) {
    if (m.transposed) std::swap(rows, columns), std::swap(more_rows, more_columns);
    const bool is_one = m.batch_step == 0;  // for the whole batch
    const Extent gets{more_rows, more_columns};
    Scratch copy = scratch_of(gets, is_one ? 1 : batch, m.transposed, size_);
    if (is_one) copy.matrix.batch_step = 0;
    add_copy(m, {rows, columns}, copy.matrix, gets, is_one ? 1 : batch, size_);
    return copy;
  }
  Scratch copied_a(const LibraryProduct& part) {
    return copied(part.a, part.rows, part.depth, padding_.rows, padding_.depth, part.batch);
  }
  Scratch copied_b(const LibraryProduct& part, const LibraryProduct& whole) {
    return copied(part.b, part.depth, part.columns, whole.depth, whole.columns, part.batch);
  }
  Scratch room_for_c(const LibraryProduct& part, const LibraryProduct& whole) {
    const Extent gets{whole.rows, whole.columns};
    const Scratch room = scratch_of(gets, part.batch, false, result_size_);
    if (part.accumulate)
      add_copy(part.c, {part.rows, part.columns}, room.matrix, gets, part.batch, result_size_);
    return room;
  }
  void copy_bias() {
    const LibraryMatrix bias{const_cast<void*>(p_.bias), p_.rows, 0, false};
    const Extent gets{padding_.rows, 1};
    const Scratch copy = scratch_of(gets, 1, false, size_);
    add_copy(bias, {p_.rows, 1}, copy.matrix, gets, 1, size_);
    bias_ = copy.memory;
  }

  const LibraryProduct& p_;
  const Padding& padding_;
  const Packs packs_;
  const Setting& setting_;
  const int64_t size_, result_size_;  // bytes of a number
  Scratch a_;                         // of the matrices that are computed
  StoragePtr bias_;
  std::vector<LineCopy> copies_;  // to be launched together
  bool is_begun_ = false;         // whether a part of the result is enqueued
};

// What was measured: from compute capability 9.0 on. Kernels of exact float32 are about as fast for
// odd extents.
bool has_faster_whole_packs(const Setting& s) {
  const bool uses_tensor_cores = is_narrow_float(s.dtype) ||
                                 (s.dtype == Dtype::kFloat32 && s.precision != Precision::kFloat32);
  return uses_tensor_cores && device_info(s.device).major >= 9;
}

int64_t most_scratch() {
  return int64_t(std::min<uint64_t>(kMostScratch, config().max_workspace_size));
}

}  // namespace

bool library_matmul(Dtype dtype, Precision precision, const LibraryProduct& p, int device,
                    cudaStream_t stream) {
  const Setting setting{dtype, precision, device, stream};
  if (has_faster_whole_packs(setting)) {
    const Packs packs = packs_of(dtype, p.wide);
    if (const auto padding = padding_of(p, packs, most_scratch()))
      return PaddedProduct(p, *padding, packs, setting).run();
  }
  return compute(p, setting);
}

}  // namespace catena::gpu
