// Reductions over any set of axes.
//
// The work is cut into segments of a fixed number of elements, whose results are combined in order.
// A result depends neither on the number of threads nor on timing. There are three forms. If a
// reduced axis is the fastest in memory, whole rows are reduced. If a kept axis is the fastest,
// rows of kept columns are accumulated. If kept axes are between reduced ones, the results of short
// rows are the columns, so that memory is read in its order. Sums of doubles are combined pairwise.
// Sums of narrower floats run in double, after a few elements have been added in float
// (loops/reduce.cpp).
#include <cmath>
#include <cstdlib>
#include <vector>

#include "backends/common/family.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/copy/copy.h"
#include "backends/cpu/loops/extreme_rows.h"
#include "backends/cpu/reduce/reduce.h"
#include "backends/cpu/reduce/reduce_job.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/copy.h"

namespace catena::host {

// Writes accumulators, which it overwrites, to output elements: divided, added to the old value on
// request, rounded once.
void store_results(const ReduceJob& job, char* accumulators, char* output, int64_t stride,
                   int64_t n) {
  const auto sums = reinterpret_cast<double*>(accumulators);
  if (job.factor != 1) {
    for (int64_t i = 0; i < n; ++i) sums[i] *= job.factor;
  }
  if (job.divisor != 1) {
    for (int64_t i = 0; i < n; ++i) sums[i] /= job.divisor;
  }
  if (!job.accumulate) {
    cast_of(job.accumulator, job.output_dtype)(accumulators, job.accumulator_size, output, stride,
                                               n);
    return;
  }
  visit_dtype(job.output_dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < n; ++i) {
      T* out = reinterpret_cast<T*>(output + i * stride);
      if (job.accumulator == Dtype::kFloat64)
        *out = T(double(compute_t<T>(*out)) + sums[i]);
      else if (job.accumulator == Dtype::kFloat32)
        *out =
            T(double(compute_t<T>(*out)) + double(reinterpret_cast<const float*>(accumulators)[i]));
      else if constexpr (std::is_integral_v<T>)
        *out = T(*out + reinterpret_cast<const T*>(accumulators)[i]);
    }
  });
}

void reduce_block(const ReduceJob& job, const char* source, int64_t stride, int64_t n, char* buffer,
                  char* result) {
  if (job.unconverted_row && (stride == job.input_item || n == 1))
    return job.unconverted_row(source, n, result);
  if (!job.convert && (stride == job.item || n == 1)) return job.loops->row(source, n, result);
  alignas(8) char partial[8];
  for (int64_t at = 0; at < n; at += kRowBlock) {
    const int64_t count = std::min(kRowBlock, n - at);
    job.read(source + at * stride, stride, buffer, count);
    job.loops->row(buffer, count, at == 0 ? result : partial);
    if (at > 0) job.loops->combine(result, partial, 1);
  }
}

namespace {

ReduceLoopOp loop_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum: return kLoopSum;
    case ReduceOp::kProd: return kLoopProd;
    case ReduceOp::kMax: return kLoopMax;
    case ReduceOp::kMin: return kLoopMin;
    case ReduceOp::kAll: return kLoopAnd;
    case ReduceOp::kAny: return kLoopOr;
    case ReduceOp::kSumOfSquares: return kLoopSumOfSquares;
  }
  fail<ValueError>("reduce: unknown operation ", static_cast<int>(op));
}
bool is_sum(ReduceOp op) { return op == ReduceOp::kSum || op == ReduceOp::kSumOfSquares; }

// Whether no further element can change the result: a false in kAll, a true in kAny.
bool decided(const ReduceJob& job, const char* partial) {
  return (job.op == ReduceOp::kAll && *partial == 0) || (job.op == ReduceOp::kAny && *partial != 0);
}

// Pieces [begin, end) of a reduction of whole rows; a piece is at most row_block elements of a row.
void reduce_pieces(const ReduceJob& job, const char* base, int64_t begin, int64_t end,
                   char* result) {
  const LoopPlan& plan = job.reduced;
  const int64_t inner = plan.inner(), stride = plan.inner_stride(0), block = job.row_block;
  const int64_t per_row = (inner + block - 1) / block;
  alignas(64) char buffer[kRowBlock * 8];
  alignas(8) char partial[8];
  Combiner combiner(job, 1);
  LoopCursor cursor(plan, begin / per_row);
  for (int64_t piece = begin; piece < end; ++piece) {
    const int64_t at = piece % per_row * block, n = std::min(block, inner - at);
    const char* source = base + cursor.offset(0) + at * stride;
    reduce_block(job, source, stride, n, buffer, end - begin == 1 ? result : partial);
    if (end - begin == 1) return;
    combiner.add(partial);
    if (decided(job, partial)) break;
    if (piece % per_row == per_row - 1) cursor.next_row();
  }
  combiner.finish(result);
}

// Calls body(kept index, input address, output address) for every kept element, over threads.
template <class F>
void for_each_kept(const ReduceJob& job, int threads, const F& body) {
  parallel_ranges(job.kept.size, 1, threads, [&](int64_t begin, int64_t end) {
    const int64_t inner = job.kept.inner();
    LoopCursor cursor(job.kept, begin / inner);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % inner;
      body(i, job.input + cursor.offset(0) + column * job.kept.inner_stride(0),
           job.output + cursor.offset(1) + column * job.kept.inner_stride(1));
      if (column == inner - 1) cursor.next_row();
    }
  });
}

// Rows of one piece that need no buffer. Many results are stored together.
void reduce_short_rows(const ReduceJob& job) {
  constexpr int64_t kRows = 256;
  const LoopPlan& kept = job.kept;
  const int64_t n = job.reduced.size, inner = kept.inner();
  const int64_t in = kept.inner_stride(0), out = kept.inner_stride(1), size = job.accumulator_size;
  const auto row_loop = job.convert ? job.unconverted_row : job.loops->row;
  parallel_ranges(
      kept.size, 16, threads_for(kept.size * (n + 16) / 2), [&](int64_t begin, int64_t end) {
        alignas(64) char results[kRows * 8];
        LoopCursor cursor(kept, begin / inner);
        for (int64_t at = begin; at < end;) {
          const int64_t column = at % inner;
          const int64_t count = std::min({kRows, inner - column, end - at});
          const char* source = job.input + cursor.offset(0) + column * in;
          for (int64_t i = 0; i < count; ++i) row_loop(source + i * in, n, results + i * size);
          store_results(job, results, job.output + cursor.offset(1) + column * out, out, count);
          at += count;
          if (column + count == inner) cursor.next_row();
        }
      });
}

// Maxima and minima of adjacent short rows of floats, many rows in one call, where results are
// adjacent and of the input's dtype. Returns false for anything else.
bool reduce_short_extremes(const ReduceJob& job, Dtype input) {
  const LoopPlan& kept = job.kept;
  const int64_t n = job.reduced.size, item = job.input_item;
  const int64_t most = input == Dtype::kFloat64 ? kShortExtremeRow / 2 : kShortExtremeRow;
  const bool extreme = job.op == ReduceOp::kMax || job.op == ReduceOp::kMin;
  if (!extreme || !is_float(input) || input != job.output_dtype || job.computed != nullptr ||
      job.accumulate || n > most || job.reduced.ndim != 1 || kept.ndim != 1 ||
      job.reduced.inner_stride(0) != item || kept.inner_stride(0) != n * item ||
      kept.inner_stride(1) != item)
    return false;
  const auto rows = loops_of<ExtremeTables>(input).short_rows[job.op == ReduceOp::kMax];
  parallel_ranges(kept.size, 64, threads_for(kept.size * n / 2), [&](int64_t begin, int64_t end) {
    rows(job.input + begin * n * item, end - begin, n, job.output + begin * item);
  });
  return true;
}

void reduce_rows(const ReduceJob& job) {
  if (job.reduced.ndim == 1 && job.reduced.size <= job.row_block && job.kept.size > 1 &&
      (!job.convert || job.unconverted_row) && job.reduced.inner_stride(0) == job.input_item) {
    return reduce_short_rows(job);
  }
  const int64_t inner = job.reduced.inner(), rows = job.reduced.size / inner;
  const int64_t block = job.row_block, pieces = rows * ((inner + block - 1) / block);
  const int64_t per_segment = std::max<int64_t>(1, kSegment / std::min(inner, block));
  const int64_t segments = (pieces + per_segment - 1) / per_segment;
  const int threads = threads_for(job.kept.size * job.reduced.size / 2 + job.kept.size * 4);
  const int64_t size = job.accumulator_size;
  if (segments == 1) {
    for_each_kept(job, threads, [&](int64_t, const char* input, char* output) {
      alignas(8) char result[8];
      reduce_pieces(job, input, 0, pieces, result);
      store_results(job, result, output, 0, 1);
    });
    return;
  }
  std::vector<char> partials(size_t(job.kept.size * segments * size));
  std::vector<const char*> inputs(size_t(job.kept.size));
  for_each_kept(job, 1, [&](int64_t i, const char* input, char*) { inputs[size_t(i)] = input; });
  parallel_for(job.kept.size * segments, threads, [&](int64_t unit) {
    const int64_t begin = unit % segments * per_segment;
    alignas(8) char result[8];
    reduce_pieces(job, inputs[size_t(unit / segments)], begin,
                  std::min(pieces, begin + per_segment), result);
    std::memcpy(partials.data() + unit * size, result, size_t(size));
  });
  for_each_kept(job, 1, [&](int64_t i, const char*, char* output) {
    Combiner combiner(job, 1);
    for (int64_t s = 0; s < segments; ++s)
      combiner.add(partials.data() + (i * segments + s) * size);
    alignas(8) char result[8];
    combiner.finish(result);
    store_results(job, result, output, 0, 1);
  });
}

// Stores the identity of the operation, for an input without elements.
void reduce_nothing(const ReduceJob& job, const ReduceCall& call) {
  if (call.accumulate) return;
  fill({*call.output, Scalar(job.op == ReduceOp::kProd || job.op == ReduceOp::kAll ? 1 : 0)});
}

// A product with 1 / n is faster. It is the quotient if n is a power of two, and narrower floats
// are rounded from a double that is off by one bit at most.
void set_divisor(ReduceJob& job, double divisor) {
  int exponent = 0;
  const bool multiplies =
      job.output_dtype != Dtype::kFloat64 || std::frexp(divisor, &exponent) == 0.5;
  (multiplies ? job.factor : job.divisor) = multiplies ? 1 / divisor : divisor;
}

ReduceJob make_job(const ReduceCall& call, Dtype input) {
  const Array& output = *call.output;
  ReduceJob job;
  job.op = call.op;
  job.loop_dtype = reduce_loop_dtype(call.op, output.dtype());
  job.loops = &tables().reductions[loop_op(call.op)][static_cast<int>(job.loop_dtype)];
  job.item = static_cast<int64_t>(itemsize(job.loop_dtype));
  const bool arithmetic = is_sum(call.op) || call.op == ReduceOp::kProd;
  job.accumulator = arithmetic && is_float(job.loop_dtype) ? Dtype::kFloat64 : job.loop_dtype;
  job.accumulator_size = static_cast<int64_t>(itemsize(job.accumulator));
  job.pairwise = arithmetic && job.loop_dtype == Dtype::kFloat64;
  job.cast = cast_of(input, job.loop_dtype);
  job.convert = input != job.loop_dtype;
  if (is_narrow_float(input) && job.loop_dtype == Dtype::kFloat32)
    job.unconverted_row = tables().reductions[loop_op(call.op)][static_cast<int>(input)].row;
  job.input_item = static_cast<int64_t>(itemsize(input));
  job.output = static_cast<char*>(output.raw_data());
  job.output_dtype = output.dtype();
  if (call.op == ReduceOp::kSum && is_float(output.dtype())) set_divisor(job, call.divisor);
  job.accumulate = call.accumulate;
  return job;
}

// For kept axes between reduced ones. The innermost reduced dimension is removed from the plan and
// becomes the rows whose results are columns. Not for long rows, which are read fast enough one by
// one, nor for all and any, which may stop early in a row.
bool take_rows_as_columns(ReduceJob& job, int64_t kept_step) {
  constexpr int64_t kLongRow = 16384;
  LoopPlan& plan = job.reduced;
  if (job.kept.size == 1 || plan.ndim < 2 || plan.inner() > kLongRow) return false;
  if (job.op == ReduceOp::kAll || job.op == ReduceOp::kAny) return false;
  if (kept_step >= std::abs(plan.strides[0][plan.ndim - 2])) return false;
  job.row_size = plan.inner();
  job.row_stride = plan.inner_stride(0);
  plan.size /= plan.inner();
  --plan.ndim;
  return true;
}

// Plans the kept and the reduced loops over an input of this shape, then runs the reduction.
void run(ReduceJob& job, const ReduceCall& call, const Shape& shape, const Strides& strides) {
  Shape kept_shape, reduced_shape;
  Strides kept_in, kept_out, reduced_in;
  for (int d = 0; d < shape.ndim(); ++d) {
    const size_t k = size_t(d);
    const bool reduced = (call.axes >> d) & 1;
    (reduced ? reduced_shape : kept_shape).push_back(shape[k]);
    (reduced ? reduced_in : kept_in).push_back(strides[k]);
    if (!reduced) kept_out.push_back(call.output->strides()[k]);
  }
  const LoopOperand kept[] = {{&kept_shape, &kept_in}, {&kept_shape, &kept_out}};
  const LoopOperand reduced[] = {{&reduced_shape, &reduced_in}};
  constexpr int64_t kCached = 512 << 10;  // bytes
  job.kept = plan_loop(kept);
  job.reduced = plan_loop(reduced);
  job.cached = job.kept.size * job.reduced.size * job.input_item <= kCached;
  const int64_t kept_step = std::abs(job.kept.inner_stride(0));
  const bool columns = job.kept.size > 1 &&
                       (job.reduced.size == 1 || kept_step < std::abs(job.reduced.inner_stride(0)));
  if (!job.pairwise) job.row_block = kLongRowBlock;
  if (columns || take_rows_as_columns(job, kept_step))
    reduce_columns(job);
  else if (!reduce_short_extremes(job, call.input ? call.input->dtype() : job.loop_dtype))
    reduce_rows(job);
}

}  // namespace

Dtype reduce_loop_dtype(ReduceOp op, Dtype output) {
  const Dtype wanted = op == ReduceOp::kAll || op == ReduceOp::kAny ? Dtype::kBool : output;
  return is_float(wanted) && wanted != Dtype::kFloat64 ? Dtype::kFloat32 : wanted;
}

void reduce(const ReduceCall& call) {
  ReduceJob job = make_job(call, call.input->dtype());
  if (call.output->size() == 0) return;
  if (call.input->size() == 0) return reduce_nothing(job, call);
  job.input = static_cast<const char*>(call.input->raw_data());
  run(job, call, call.input->shape(), call.input->strides());
}

void reduce_computed(const ReduceCall& call, const Shape& shape, ReduceSource& source) {
  ReduceJob job = make_job(call, reduce_loop_dtype(call.op, call.output->dtype()));
  job.computed = &source;
  job.convert = true;
  source.item = job.item;
  // Addresses of an array that does not exist. Only their differences are used.
  job.input = reinterpret_cast<const char*>(uintptr_t{1} << 32);
  run(job, call, shape, contiguous_strides(shape, job.item));
}

}  // namespace catena::host

CATENA_FAMILY(cpu, reduce) { kernels::reduce.provide<&host::reduce>(DeviceType::kCpu, "cpu"); }
