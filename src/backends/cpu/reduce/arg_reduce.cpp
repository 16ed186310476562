// Positions of extremes along one axis.
//
// The axis is reduced row by row where it is the fastest in memory, or where few elements are kept.
// Otherwise the best elements of many columns, and their positions, are updated from row to row.
#include <cstdlib>

#include "array/iteration.h"
#include "backends/common/family.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/reduce/reduce.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/reduce.h"

namespace catena::host {

namespace {

constexpr int64_t kBlock = 2048;          // elements or columns that are converted together
constexpr int64_t kFewColumns = 8;        // with fewer columns a column loop does not pay
constexpr int64_t kMaxRows = 0x7fffffff;  // positions of columns are int32

struct ArgJob {
  const ArgEntry* loops;
  CastLoop cast;  // input -> dtype of the loops
  int64_t item;   // bytes of an element there
  bool convert;
  bool maximum;
  const char* input;
  char* output;
  int64_t n, stride;  // the axis
  LoopPlan kept;      // operand 0: output, 1: input
};

// Row by row through a buffer; T is what the loops read.
template <class T>
int64_t position_in_pieces(const ArgJob& job, const char* source) {
  alignas(64) T buffer[kBlock];
  T best{};
  int64_t position = 0;
  for (int64_t at = 0; at < job.n; at += kBlock) {
    const int64_t count = std::min(kBlock, job.n - at);
    job.cast(source + at * job.stride, job.stride, reinterpret_cast<char*>(buffer), job.item,
             count);
    const int64_t k = job.loops->row(reinterpret_cast<const char*>(buffer), count);
    const T value = buffer[k];
    if (at == 0 || value != value || (job.maximum ? value > best : value < best)) {
      best = value;
      position = at + k;
    }
    if (best != best) break;
  }
  return position;
}

template <class T>
void run_rows(const ArgJob& job) {
  const bool direct = !job.convert && (job.stride == job.item || job.n == 1);
  parallel_ranges(
      job.kept.size, 1, threads_for(job.kept.size * job.n / 2), [&](int64_t begin, int64_t end) {
        const int64_t inner = job.kept.inner();
        LoopCursor cursor(job.kept, begin / inner);
        for (int64_t i = begin; i < end; ++i) {
          const int64_t column = i % inner;
          const char* source = job.input + cursor.offset(1) + column * job.kept.inner_stride(1);
          char* to = job.output + cursor.offset(0) + column * job.kept.inner_stride(0);
          *reinterpret_cast<int64_t*>(to) =
              direct ? job.loops->row(source, job.n) : position_in_pieces<T>(job, source);
          if (column == inner - 1) cursor.next_row();
        }
      });
}

// At most kBlock neighbouring columns.
void run_block(const ArgJob& job, const char* source, int64_t stride, int64_t columns, char* output,
               int64_t output_stride) {
  alignas(64) char best[kBlock * 8], buffer[kBlock * 8];
  alignas(64) int32_t positions[kBlock];
  const bool direct = !job.convert && stride == job.item;
  job.cast(source, stride, best, job.item, columns);
  std::fill_n(positions, columns, 0);
  for (int64_t row = 1; row < job.n; ++row) {
    const char* from = source + row * job.stride;
    if (!direct) {
      job.cast(from, stride, buffer, job.item, columns);
      from = buffer;
    }
    job.loops->columns(from, columns, static_cast<int32_t>(row), best, positions);
  }
  for (int64_t j = 0; j < columns; ++j) {
    *reinterpret_cast<int64_t*>(output + j * output_stride) = positions[j];
  }
}

void run_columns(const ArgJob& job) {
  const int64_t inner = job.kept.inner(), outer = job.kept.size / inner;
  const int64_t blocks = (inner + kBlock - 1) / kBlock;
  parallel_for(outer * blocks, threads_for(job.kept.size * job.n), [&](int64_t unit) {
    const LoopCursor cursor(job.kept, unit / blocks);
    const int64_t begin = unit % blocks * kBlock;
    const int64_t in = job.kept.inner_stride(1), out = job.kept.inner_stride(0);
    run_block(job, job.input + cursor.offset(1) + begin * in, in, std::min(kBlock, inner - begin),
              job.output + cursor.offset(0) + begin * out, out);
  });
}

}  // namespace

void arg_reduce(const ArgReduceCall& call) {
  const size_t axis = static_cast<size_t>(call.axis);
  Shape shape = call.input->shape();
  Strides in = call.input->strides(), out = call.output->strides();
  const Dtype dtype = call.input->dtype();
  const Dtype loop = is_narrow_float(dtype) ? Dtype::kFloat32 : dtype;
  ArgJob job;
  job.loops = &tables().arg_extremes[call.maximum][static_cast<int>(loop)];
  job.cast = cast_of(dtype, loop);
  job.item = static_cast<int64_t>(itemsize(loop));
  job.convert = loop != dtype;
  job.maximum = call.maximum;
  job.input = static_cast<const char*>(call.input->raw_data());
  job.output = static_cast<char*>(call.output->raw_data());
  job.n = shape[axis];
  job.stride = in[axis];
  shape[axis] = 1;
  const LoopOperand operands[] = {{&shape, &out}, {&shape, &in}};
  job.kept = plan_loop(operands);
  const bool columns = job.kept.inner() >= kFewColumns && job.n <= kMaxRows &&
                       std::abs(job.kept.inner_stride(1)) < std::abs(job.stride);
  if (columns) return run_columns(job);
  visit_dtype(loop, [&](auto tag) { run_rows<compute_t<typename decltype(tag)::type>>(job); });
}

}  // namespace catena::host

CATENA_FAMILY(cpu, arg_reduce) {
  kernels::arg_reduce.provide<&host::arg_reduce>(DeviceType::kCpu, "cpu");
}
