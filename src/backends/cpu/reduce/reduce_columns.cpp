// Reductions that accumulate rows of kept columns; see reduce.cpp.
#include <memory>
#include <vector>

#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/reduce/reduce_job.h"
#include "backends/cpu/runtime/parallel.h"

namespace catena::host {

namespace {

constexpr int64_t kColumnBlock = 2048;  // columns accumulated together
constexpr int64_t kColumnRows = 128;  // rows accumulated in order before sums are combined pairwise

// The address of element `index` (C order) of the reduced dimensions.
class ReducedRows {
 public:
  ReducedRows(const LoopPlan& plan, int64_t index)
      : plan_(plan), cursor_(plan, index / plan.inner()), column_(index % plan.inner()) {}
  int64_t offset() const { return cursor_.offset(0) + column_ * plan_.inner_stride(0); }
  // How many elements from here on are at equal distances; advance() takes at most so many.
  int64_t even() const { return plan_.inner() - column_; }
  void advance(int64_t count) {
    column_ += count;
    if (column_ < plan_.inner()) return;
    column_ = 0;
    cursor_.next_row();
  }

 private:
  const LoopPlan& plan_;
  LoopCursor cursor_;
  int64_t column_;
};

void set_identity(const ReduceJob& job, char* accumulators, int64_t n) {
  const bool one = job.op == ReduceOp::kProd || job.op == ReduceOp::kAll;
  const uint8_t value = one;
  cast_of(Dtype::kUInt8, job.accumulator)(reinterpret_cast<const char*>(&value), 0, accumulators,
                                          job.accumulator_size, n);
}

// Reduces one inner row, in the form whose columns are results of rows.
void reduce_inner_row(const ReduceJob& job, const char* source, char* result) {
  alignas(64) char buffer[kRowBlock * 8];
  if (job.row_size <= job.row_block)
    return reduce_block(job, source, job.row_stride, job.row_size, buffer, result);
  alignas(8) char partial[8];
  Combiner combiner(job, 1);
  for (int64_t at = 0; at < job.row_size; at += job.row_block) {
    const int64_t n = std::min(job.row_block, job.row_size - at);
    reduce_block(job, source + at * job.row_stride, job.row_stride, n, buffer, partial);
    combiner.add(partial);
  }
  combiner.finish(result);
}

// Accumulates rows [begin, end) of n columns, where each element is the result of an inner row.
void reduce_rows_of_rows(const ReduceJob& job, const char* base, int64_t n, int64_t begin,
                         int64_t end, char* accumulators) {
  const int64_t stride = job.kept.inner_stride(0), size = job.accumulator_size;
  alignas(64) char results[kColumnBlock * 8];
  ReducedRows rows(job.reduced, begin);
  for (int64_t row = begin; row < end; ++row, rows.advance(1)) {
    char* target = row == begin ? accumulators : results;
    for (int64_t i = 0; i < n; ++i)
      reduce_inner_row(job, base + rows.offset() + i * stride, target + i * size);
    if (row != begin) job.loops->combine(accumulators, results, n);
  }
}

// Eight rows, because the loops add eight rows together and round differently than one by one.
constexpr int64_t kBufferRows = 8;

// Of this thread: too large for the stacks of small threads.
char* row_buffer() {
  struct alignas(64) Buffer {
    char bytes[kBufferRows * kColumnBlock * 8];
  };
  thread_local const std::unique_ptr<Buffer> buffer(new Buffer);
  return buffer->bytes;
}

// Accumulates rows [begin, end) of n columns.
void reduce_column_rows(const ReduceJob& job, const char* base, int64_t n, int64_t begin,
                        int64_t end, char* accumulators) {
  if (job.row_size > 1) return reduce_rows_of_rows(job, base, n, begin, end, accumulators);
  const int64_t stride = job.kept.inner_stride(0);
  const bool direct = !job.convert && (stride == job.item || n == 1);
  char* const buffer = direct ? nullptr : row_buffer();
  ReducedRows rows(job.reduced, begin);
  if (job.op == ReduceOp::kMax || job.op == ReduceOp::kMin) {
    job.read(base + rows.offset(), stride, accumulators, n);
  } else {
    set_identity(job, accumulators, n);
  }
  for (int64_t row = begin; row < end;) {
    const char* source = base + rows.offset();
    int64_t count = std::min(end - row, rows.even()), distance = job.reduced.inner_stride(0);
    if (!direct) {
      count = std::min(count, kBufferRows);
      for (int64_t k = 0; k < count; ++k)
        job.read(source + k * distance, stride, buffer + k * n * job.item, n);
      source = buffer;
      distance = n * job.item;
    }
    job.loops->columns(source, distance, count, n, accumulators, job.cached || !direct);
    row += count;
    rows.advance(count);
  }
}

void reduce_column_segment(const ReduceJob& job, const char* base, int64_t n, int64_t begin,
                           int64_t end, char* result) {
  if (!job.pairwise || end - begin <= kColumnRows) {
    reduce_column_rows(job, base, n, begin, end, result);
    return;
  }
  alignas(64) char partial[kColumnBlock * 8];
  Combiner combiner(job, n);
  for (int64_t at = begin; at < end; at += kColumnRows) {
    reduce_column_rows(job, base, n, at, std::min(end, at + kColumnRows), partial);
    combiner.add(partial);
  }
  combiner.finish(result);
}

}  // namespace

void reduce_columns(const ReduceJob& job) {
  const int64_t columns = job.kept.inner(), outer = job.kept.size / columns,
                rows = job.reduced.size;
  const int64_t most = std::clamp(kSegment / job.row_size, int64_t{16}, kColumnBlock);
  const int64_t blocks = (columns + most - 1) / most;
  const int64_t per_segment =
      std::max(kColumnRows, kSegment / (std::min(columns, most) * job.row_size));
  const int64_t segments = (rows + per_segment - 1) / per_segment;
  const int threads = threads_for(job.kept.size * rows * job.row_size);
  const int64_t size = job.accumulator_size;
  std::vector<char> partials(segments > 1 ? size_t(job.kept.size * segments * size) : 0);
  const auto width = [&](int64_t block) { return std::min(most, columns - block * most); };
  const auto address = [&](const char* base, int operand, int64_t row, int64_t block) {
    return base + LoopCursor(job.kept, row).offset(operand) +
           block * most * job.kept.inner_stride(operand);
  };
  const auto output = [&](int64_t row, int64_t block) {
    return const_cast<char*>(address(job.output, 1, row, block));
  };
  // Partial results are stored in the order (row, block, segment).
  const auto partial = [&](int64_t row, int64_t block, int64_t segment) {
    return partials.data() +
           ((row * columns + block * most) * segments + segment * width(block)) * size;
  };
  parallel_for(outer * blocks * segments, threads, [&](int64_t unit) {
    const int64_t segment = unit % segments, block = unit / segments % blocks,
                  row = unit / segments / blocks;
    const int64_t begin = segment * per_segment, n = width(block);
    alignas(64) char result[kColumnBlock * 8];
    reduce_column_segment(job, address(job.input, 0, row, block), n, begin,
                          std::min(rows, begin + per_segment), result);
    if (segments == 1)
      store_results(job, result, output(row, block), job.kept.inner_stride(1), n);
    else
      std::memcpy(partial(row, block, segment), result, size_t(n * size));
  });
  if (segments == 1) return;
  parallel_for(outer * blocks, threads, [&](int64_t unit) {
    const int64_t block = unit % blocks, row = unit / blocks;
    Combiner combiner(job, width(block));
    for (int64_t s = 0; s < segments; ++s) combiner.add(partial(row, block, s));
    alignas(64) char result[kColumnBlock * 8];
    combiner.finish(result);
    store_results(job, result, output(row, block), job.kept.inner_stride(1), width(block));
  });
}

}  // namespace catena::host
