// The elementwise slot. It finds the loop of an operation and walks the collapsed dimensions. Where
// dtypes or layouts do not fit the loop it converts block by block, and large calls run on several
// threads.
#include <cstdlib>

#include "array/iteration.h"
#include "backends/common/family.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/common/past_caches.h"
#include "backends/cpu/copy/copy.h"
#include "backends/cpu/elementwise/loop_dtype.h"
#include "backends/cpu/elementwise/transposed.h"
#include "backends/cpu/loops/narrow.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/elementwise.h"

namespace catena::host {

Loop narrow_loop(ElementwiseOp op, Dtype dtype) {
  return is_narrow_float(dtype) ? loops_of_processor<NarrowTables>().loops[static_cast<int>(op)]
                                : nullptr;
}

namespace {

constexpr int kOperands = kMaxElementwiseInputs + 1;
static_assert(kOperands <= kMaxLoopOperands);

constexpr int64_t kBlock = 512;      // elements a conversion buffer holds
constexpr int64_t kHeavyWeight = 8;  // ns an element of an approximated function, estimated

int index_of(Dtype d) { return static_cast<int>(d); }

const LoopEntry& find_loop(ElementwiseOp op, Dtype dtype) {
  const LoopEntry& entry = tables().loops[static_cast<int>(op)][index_of(loop_dtype(dtype))];
  CATENA_CHECK(DtypeError, entry.loop != nullptr, info(op).name, " does not compute in ", dtype,
               " on the CPU");
  return entry;
}

// The loop for operands of `bytes` bytes in total.
Loop loop_for(const LoopEntry& entry, int64_t bytes) {
  return bytes >= kPastCoreCaches && entry.streaming != nullptr ? entry.streaming : entry.loop;
}

// The scalar in dtype d, as 8 bytes.
struct ScalarBits {
  alignas(8) char bytes[8];
};
void store_scalar(const Scalar& value, Dtype d, ScalarBits& bits) {
  visit_dtype(d, [&]<class T>(TypeTag<T>) {
    const T converted = value.to<T>();
    std::memcpy(bits.bytes, &converted, sizeof(T));
  });
}

// How one operand gets from memory to the loop (inputs) or back (output).
struct Conversion {
  bool direct = false;       // used in memory: right dtype and, below, a stride that the loop takes
  bool constant = false;     // one element for the whole call, converted once
  CastLoop first = nullptr;  // memory -> loop (inputs), loop -> memory (output) ...
  CastLoop second = nullptr;  // ... if it needs two steps, through a 16-bit float
  int64_t item = 0;           // bytes of an element in the loop
  int64_t middle = 0;         // bytes of the element between two steps
};

struct Job {
  Loop loop;
  LoopPlan plan;
  int operands;
  char* base[kOperands];
  Conversion conversions[kOperands];
  int64_t loop_strides[kOperands];  // what the loop gets
  bool direct = true;               // no operand needs a buffer
  bool past_caches = false;         // the output gets a buffer all the same: see past_caches.h
  ScalarBits scalars[kOperands];
};

// Inputs of another dtype are rounded to the operation's dtype first, then widened.
Conversion input_conversion(Dtype from, Dtype operand) {
  const Dtype loop = loop_dtype(operand);
  Conversion c;
  c.item = static_cast<int64_t>(itemsize(loop));
  c.first = cast_of(from, loop);
  if (from != operand && operand != loop && from != Dtype::kBool) {
    c.first = cast_of(from, operand);
    c.second = cast_of(operand, loop);
    c.middle = static_cast<int64_t>(itemsize(operand));
  }
  c.direct = from == loop && c.second == nullptr;
  return c;
}
Conversion output_conversion(Dtype natural, Dtype to) {
  const Dtype loop = loop_dtype(natural);
  Conversion c;
  c.item = static_cast<int64_t>(itemsize(loop));
  c.first = cast_of(loop, to);
  if (natural != loop && to != natural) {
    c.first = cast_of(loop, natural);
    c.second = cast_of(natural, to);
    c.middle = static_cast<int64_t>(itemsize(natural));
  }
  c.direct = to == loop && c.second == nullptr;
  return c;
}

struct Buffers {
  alignas(64) char data[kOperands][kBlock * 8];
  alignas(64) char middle[kBlock * 8];
};

void load(const Conversion& c, const char* source, int64_t stride, char* buffer, Buffers& buffers,
          int64_t n) {
  if (c.second == nullptr) {
    c.first(source, stride, buffer, c.item, n);
  } else {
    c.first(source, stride, buffers.middle, c.middle, n);
    c.second(buffers.middle, c.middle, buffer, c.item, n);
  }
}
void store(const Conversion& c, const char* buffer, char* destination, int64_t stride,
           Buffers& buffers, int64_t n) {
  if (c.second == nullptr) {
    c.first(buffer, c.item, destination, stride, n);
  } else {
    c.first(buffer, c.item, buffers.middle, c.middle, n);
    c.second(buffers.middle, c.middle, destination, stride, n);
  }
}

// Elements [begin, end) of one row, block by block. `row` holds the operands' addresses at the
// row's first element. `filled` counts the valid elements in the buffers of constants.
void run_row(const Job& job, char* const* row, int64_t begin, int64_t end, Buffers& buffers,
             int64_t& filled) {
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = std::min(kBlock, end - at);
    char* block[kOperands];
    for (int k = 0; k < job.operands; ++k) {
      const Conversion& c = job.conversions[k];
      const int64_t stride = job.plan.inner_stride(k);
      const bool in_memory = c.direct && !(k == 0 && job.past_caches);
      block[k] = in_memory ? row[k] + at * stride : buffers.data[k];
      if (c.direct || k == 0 || (c.constant && filled >= n)) continue;
      if (stride == 0 && at > begin && !c.constant) continue;  // filled by the row's first block
      load(c, row[k] + at * stride, stride, block[k], buffers, n);
    }
    filled = std::max(filled, n);
    job.loop(block, job.loop_strides, n);
    const Conversion& out = job.conversions[0];
    char* to = row[0] + at * job.plan.inner_stride(0);
    if (job.past_caches)
      store_past_caches(to, block[0], n * out.item);
    else if (!out.direct)
      store(out, block[0], to, job.plan.inner_stride(0), buffers, n);
  }
}

// `rows` whole rows at equal distances, starting at `first`; no operand needs a buffer. The
// addresses stay in registers: storing them and loading them again with another width would take
// longer than a short row.
template <int kCount>
void run_even_rows(const Job& job, char* const* first, int64_t rows) {
  const int64_t inner = job.plan.inner();
  char* at[kCount];
  int64_t steps[kCount];
  for (int k = 0; k < kCount; ++k) {
    at[k] = first[k];
    steps[k] = job.plan.ndim < 2 ? 0 : job.plan.strides[k][job.plan.ndim - 2];
  }
  const Loop loop = job.loop;
  for (int64_t row = 0; row < rows; ++row) {
    char* pointers[kCount];
    for (int k = 0; k < kCount; ++k) pointers[k] = at[k];
    loop(pointers, job.loop_strides, inner);
    for (int k = 0; k < kCount; ++k) at[k] += steps[k];
  }
}
void run_even_rows(const Job& job, char* const* first, int64_t rows) {
  static_assert(kOperands == 5);
  switch (job.operands) {
    case 1: return run_even_rows<1>(job, first, rows);
    case 2: return run_even_rows<2>(job, first, rows);
    case 3: return run_even_rows<3>(job, first, rows);
    case 4: return run_even_rows<4>(job, first, rows);
    default: return run_even_rows<5>(job, first, rows);
  }
}

// Flat elements [begin, end) of the plan.
void run_range(const Job& job, int64_t begin, int64_t end) {
  Buffers buffers;
  int64_t filled = 0;
  const int64_t inner = job.plan.inner();
  int64_t first = begin % inner;
  LoopCursor cursor(job.plan, begin / inner);
  for (int64_t at = begin; at < end;) {
    const int64_t last = std::min(inner, first + end - at);
    char* bases[kOperands];
    for (int k = 0; k < job.operands; ++k) bases[k] = job.base[k] + cursor.offset(k);
    int64_t rows = 1;
    if (job.direct && last - first == inner) {
      rows = std::min(cursor.even_rows(), (end - at) / inner);
      run_even_rows(job, bases, rows);
    } else if (job.direct) {
      for (int k = 0; k < job.operands; ++k) bases[k] += first * job.plan.inner_stride(k);
      job.loop(bases, job.loop_strides, last - first);
    } else {
      run_row(job, bases, first, last, buffers, filled);
    }
    at += rows * (last - first);
    first = 0;
    cursor.next_rows(rows);
  }
  if (job.past_caches) finish_past_caches();
}

bool in_place(char* const* pointers, int inputs) {
  return std::find(pointers + 1, pointers + 1 + inputs, pointers[0]) != pointers + 1 + inputs;
}

// Elements [begin, end) of contiguous operands, with non-temporal stores.
void run_past_caches(Loop loop, char* const* pointers, const int64_t* strides, int operands,
                     int64_t begin, int64_t end) {
  compute_past_caches(pointers[0], strides[0], begin, end,
                      [&](char* buffer, int64_t at, int64_t n) {
                        char* part[kOperands] = {buffer};
                        for (int k = 1; k < operands; ++k) part[k] = pointers[k] + at * strides[k];
                        loop(part, strides, n);
                      });
}

// Calls the loop once if every operand is contiguous (or a scalar that the loop takes) and of the
// right dtype. Returns false otherwise.
bool run_directly(const ElementwiseCall& call) {
  const Array& output = *call.output;
  const ElementwiseInfo& row = info(call.op);
  const LoopEntry& entry = tables().loops[static_cast<int>(call.op)][index_of(call.dtype)];
  if (entry.loop == nullptr || !output.is_contiguous() ||
      output.dtype() != row.natural_result(call.dtype)) {
    return false;
  }
  const int64_t n = output.size();
  char* pointers[kOperands] = {static_cast<char*>(output.raw_data())};
  int64_t strides[kOperands] = {output.itemsize()}, bytes = n * output.itemsize();
  ScalarBits scalars[kMaxElementwiseInputs];
  for (int k = 0; k < call.input_count; ++k) {
    const Array* input = call.arrays[k];
    const Dtype dtype = row.operand_dtype(k, call.dtype);
    if (input == nullptr) {
      if (!entry.takes_scalars) return false;
      store_scalar(call.scalars[k], dtype, scalars[k]);
      pointers[k + 1] = scalars[k].bytes;
      strides[k + 1] = 0;
    } else {
      if (input->dtype() != dtype || !input->is_contiguous() || input->size() != n) return false;
      pointers[k + 1] = static_cast<char*>(input->raw_data());
      strides[k + 1] = input->itemsize();
      bytes += n * input->itemsize();
    }
  }
  const Loop loop_of_size = loop_for(entry, bytes);
  const int threads = threads_for(entry.heavy ? n * kHeavyWeight : n);
  if (!entry.heavy && n * output.itemsize() >= kPastCaches &&
      !in_place(pointers, call.input_count)) {
    parallel_ranges(n, 1024, threads, [&](int64_t begin, int64_t end) {
      run_past_caches(loop_of_size, pointers, strides, call.input_count + 1, begin, end);
    });
    return true;
  }
  if (threads <= 1) {
    loop_of_size(pointers, strides, n);
    return true;
  }
  parallel_ranges(n, 1024, threads, [&](int64_t begin, int64_t end) {
    char* part[kOperands];
    for (int k = 0; k <= call.input_count; ++k) part[k] = pointers[k] + begin * strides[k];
    loop_of_size(part, strides, end - begin);
  });
  return true;
}

void run_planned(const ElementwiseCall& call, const LoopEntry& entry) {
  static const Shape no_shape;
  const ElementwiseInfo& row = info(call.op);
  Job job;
  job.operands = call.input_count + 1;
  LoopOperand operands[kOperands];
  operands[0] = {&call.output->shape(), &call.output->strides()};
  job.base[0] = static_cast<char*>(call.output->raw_data());
  job.conversions[0] = output_conversion(row.natural_result(call.dtype), call.output->dtype());
  for (int k = 1; k < job.operands; ++k) {
    const Array* input = call.arrays[k - 1];
    const Dtype dtype = row.operand_dtype(k - 1, call.dtype);
    if (input == nullptr) {
      store_scalar(call.scalars[k - 1], dtype, job.scalars[k]);
      job.base[k] = job.scalars[k].bytes;
      operands[k] = {&no_shape, &no_shape};
    } else {
      job.base[k] = static_cast<char*>(input->raw_data());
      operands[k] = {&input->shape(), &input->strides()};
    }
    job.conversions[k] = input_conversion(input == nullptr ? dtype : input->dtype(), dtype);
  }
  job.plan = plan_loop({operands, static_cast<size_t>(job.operands)});
  for (int k = 0; k < job.operands; ++k) {
    Conversion& c = job.conversions[k];
    const int64_t stride = job.plan.inner_stride(k);
    c.constant = k > 0 && std::all_of(job.plan.strides[k], job.plan.strides[k] + job.plan.ndim,
                                      [](int64_t s) { return s == 0; });
    c.direct = c.direct && (stride == c.item || job.plan.inner() == 1 ||
                            (k > 0 && stride == 0 && entry.takes_scalars));
    job.loop_strides[k] = c.direct && job.plan.inner() > 1 ? stride : c.item;
    job.direct = job.direct && c.direct;
  }
  const int64_t n = job.plan.size;
  job.loop = narrow_loop(call.op, call.dtype);
  if (job.loop == nullptr) job.loop = loop_for(entry, n * call.output->itemsize() * job.operands);
  // Not for whole rows without buffers, for example a row added to each row: they became slower.
  const bool plain_rows =
      job.direct && std::none_of(job.loop_strides, job.loop_strides + job.operands,
                                 [](int64_t s) { return s == 0; });
  job.past_caches = !entry.heavy && !plain_rows && job.conversions[0].direct &&
                    n * call.output->itemsize() >= kPastCaches && job.plan.inner() >= kBlock &&
                    !in_place(job.base, call.input_count);
  job.direct = job.direct && !job.past_caches;
  parallel_ranges(n, 1024, threads_for(n * (entry.heavy ? kHeavyWeight : 2)),
                  [&](int64_t begin, int64_t end) { run_range(job, begin, end); });
}

}  // namespace

namespace {

void elementwise(const ElementwiseCall& call);

constexpr int64_t kTransposedSize =
    65536;  // elements from which a transposed input is worth a copy

// Large transposed inputs are first copied to the layout of the output, tile by tile.
bool run_with_copies(const ElementwiseCall& call) {
  if (call.output->size() < kTransposedSize || !call.output->is_contiguous()) return false;
  ElementwiseCall changed = call;
  Array copies[kMaxElementwiseInputs];
  bool any = false;
  for (int k = 0; k < call.input_count; ++k) {
    const Array* input = call.arrays[k];
    if (input == nullptr || input->shape() != call.output->shape() || !is_transposed(*input))
      continue;
    copies[k] = Array::uninitialized(input->shape(), input->dtype(), input->device());
    copy({*input, copies[k]});
    changed.arrays[k] = &copies[k];
    any = true;
  }
  if (any) elementwise(changed);
  return any;
}

}  // namespace

bool is_transposed(const Array& input) {
  if (input.ndim() < 2 || input.is_contiguous()) return false;
  const Strides c_order = contiguous_strides(input.shape(), 1);
  const LoopOperand operands[] = {{&input.shape(), &c_order}, {&input.shape(), &input.strides()}};
  const LoopPlan plan = plan_loop(operands);
  const int64_t inner = std::abs(plan.inner_stride(1));
  bool faster = false;
  for (int d = 0; d < plan.ndim - 1; ++d) {
    const int64_t stride = std::abs(plan.strides[1][d]);
    faster = faster || (stride != 0 && stride < inner && plan.shape[d] >= 16);
  }
  return faster && inner >= 64 && plan.inner() >= 16;
}

namespace {

void elementwise(const ElementwiseCall& call) {
  if (!run_directly(call) && !run_with_copies(call))
    run_planned(call, find_loop(call.op, call.dtype));
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, elementwise) {
  kernels::elementwise.provide<&host::elementwise>(DeviceType::kCpu, "cpu");
}
