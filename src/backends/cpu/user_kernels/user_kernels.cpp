// Runs users' lambdas over arrays of a CPU.
#include <atomic>
#include <cstdlib>
#include <exception>

#include "array/iteration.h"
#include "array/user_kernels/kernel_compiler.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/creation.h"

namespace catena {

namespace {

using detail::HostElementwise;
using detail::HostReduction;
using detail::HostRow;

// The first exception of a parallel loop, thrown again after the loop.
class Failure {
 public:
  template <class F>
  void guard(const F& body) noexcept {
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      body();
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (failed_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
};

// A number as an array of one element, broadcast to the shape of the loop.
Array looped_array(const KernelArgument& argument, const Shape& shape, Device device) {
  if (argument.array.defined()) return argument.array;
  return full({}, argument.scalar, {argument.dtype, device}).broadcast_to(shape);
}

std::string dtypes_of(std::span<const KernelArgument> arguments, size_t outputs) {
  std::string text;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const KernelArgument& a =
        arguments[k < arguments.size() - outputs ? k + outputs : k + outputs - arguments.size()];
    text += (k ? ", " : "") + to_string(a.dtype);
  }
  return text;
}

// The loop in C order, for lambdas that read their position. Adjacent dimensions are merged, never
// swapped.
LoopPlan c_order_plan(const Shape& shape, const std::vector<Array>& operands) {
  LoopPlan plan;
  plan.operands = static_cast<int>(operands.size());
  plan.size = element_count(shape);
  plan.ndim = 0;
  for (int d = 0; d < shape.ndim(); ++d) {
    const int64_t extent = shape[size_t(d)];
    if (extent == 1) continue;
    bool even = plan.ndim > 0;
    for (size_t k = 0; even && k < operands.size(); ++k)
      even = plan.strides[k][plan.ndim - 1] == operands[k].strides()[size_t(d)] * extent;
    if (even)
      plan.shape[plan.ndim - 1] *= extent;
    else
      plan.shape[plan.ndim++] = extent;
    for (size_t k = 0; k < operands.size(); ++k)
      plan.strides[k][plan.ndim - 1] = operands[k].strides()[size_t(d)];
  }
  if (plan.ndim == 0) {
    plan.ndim = 1;
    plan.shape[0] = 1;
    for (size_t k = 0; k < operands.size(); ++k) plan.strides[k][0] = operands[k].itemsize();
  }
  return plan;
}

LoopPlan plan_of(const Shape& shape, const std::vector<Array>& operands, bool in_order) {
  if (in_order || operands.empty()) return c_order_plan(shape, operands);
  std::vector<LoopOperand> list;
  for (const Array& a : operands) list.push_back({&a.shape(), &a.strides()});
  return plan_loop(list);
}

// Calls body(row) for the rows of flat elements [begin, end).
template <class F>
void walk(const LoopPlan& plan, const std::vector<char*>& base, int64_t begin, int64_t end,
          const F& body) {
  const int64_t inner = plan.inner();
  int64_t first = begin % inner;
  LoopCursor cursor(plan, begin / inner);
  char* pointers[kMaxLoopOperands];
  int64_t strides[kMaxLoopOperands];
  for (int k = 0; k < plan.operands; ++k) strides[k] = plan.inner_stride(k);
  for (int64_t at = begin; at < end; cursor.next_row()) {
    const int64_t n = std::min(inner - first, end - at);
    for (int k = 0; k < plan.operands; ++k)
      pointers[k] = base[size_t(k)] + cursor.offset(k) + first * strides[k];
    body(HostRow{pointers, strides, n, at, plan.size});
    at += n;
    first = 0;
  }
}

std::vector<char*> addresses(const std::vector<Array>& operands) {
  std::vector<char*> result;
  for (const Array& a : operands) result.push_back(static_cast<char*>(a.raw_data()));
  return result;
}

void check_operands(const std::string& name, size_t count) {
  CATENA_CHECK(ValueError, count <= size_t(kMaxLoopOperands), name, ": ", count,
               " arguments that are not raw; expected at most ", kMaxLoopOperands, " on a CPU");
}

}  // namespace

void run_on_host(const ElementwiseKernel::Definition& kernel,
                 std::span<const KernelArgument> arguments, const Shape& shape) {
  const size_t outputs = kernel.outputs.size(), inputs = kernel.inputs.size();
  const auto argument = [&](size_t k) -> const KernelArgument& {  // in the order of parameters
    return arguments[k < inputs ? outputs + k : k - inputs];
  };
  const HostElementwise* host = nullptr;
  for (const auto& candidate : kernel.host) {
    bool fits = true;
    for (size_t k = 0; k < candidate->parameters.size(); ++k)
      fits = fits && candidate->parameters[k].dtype == argument(k).dtype;
    if (fits) host = candidate.get();
  }
  CATENA_CHECK(DeviceError, host != nullptr, kernel.name, ": no lambda for arrays of a CPU takes ",
               dtypes_of(arguments, outputs), " (inputs, outputs); add one with on_cpu");
  const Device device = arguments.empty()              ? cpu(0)
                        : arguments[0].array.defined() ? arguments[0].array.device()
                                                       : cpu(0);
  std::vector<Array> operands, raws;
  for (size_t k = 0; k < host->parameters.size(); ++k) {
    if (host->parameters[k].raw)
      raws.push_back(argument(k).array);
    else
      operands.push_back(looped_array(argument(k), shape, device));
  }
  check_operands(kernel.name, operands.size());
  const LoopPlan plan = plan_of(shape, operands, host->indexed);
  const std::vector<char*> base = addresses(operands);
  const int64_t n = element_count(shape);
  Failure failure;
  host::parallel_ranges(n, 1024, host::threads_for(n * 4), [&](int64_t begin, int64_t end) {
    failure.guard([&] {
      walk(plan, base, begin, end, [&](const HostRow& row) { host->run(row, raws.data()); });
    });
  });
  failure.rethrow();
}

// ---- reductions ---------------------------------------------------------------------------------

namespace {

constexpr int64_t kSegment = int64_t{1} << 16;  // reduced elements of one piece
constexpr int64_t kColumns = 512;               // results accumulated together

struct HostReduceJob {
  const HostReduction& host;
  LoopPlan kept;            // inputs, then outputs
  LoopPlan reduced;         // inputs
  std::vector<char*> base;  // inputs, then outputs
  size_t inputs;

  // Addresses of kept element `at`.
  std::vector<char*> place(int64_t at) const {
    const LoopCursor cursor(kept, at / kept.inner());
    std::vector<char*> result = base;
    for (size_t k = 0; k < base.size(); ++k) {
      result[k] += cursor.offset(static_cast<int>(k)) +
                   at % kept.inner() * kept.inner_stride(static_cast<int>(k));
    }
    return result;
  }
};

// Each result is folded from segments of fixed size in order, so it does not depend on the number
// of threads.
void reduce_rows(const HostReduceJob& job) {
  const int64_t n = job.reduced.size, results = job.kept.size;
  const int64_t segments = (n + kSegment - 1) / kSegment;
  const size_t bytes = job.host.accumulator_bytes;
  const auto fold = [&](int64_t at, int64_t begin, int64_t end, char* accumulator) {
    job.host.fill(accumulator, 1);
    walk(job.reduced, job.place(at), begin, end,
         [&](const HostRow& row) { job.host.fold_row(row, accumulator); });
  };
  Failure failure;
  std::vector<char> partial(segments > 1 ? size_t(results * segments) * bytes : 0);
  host::parallel_ranges(
      results * segments, 1, host::threads_for(results * n), [&](int64_t begin, int64_t end) {
        failure.guard([&] {
          std::vector<char> accumulator(bytes);
          for (int64_t unit = begin; unit < end; ++unit) {
            const int64_t at = unit / segments, first = unit % segments * kSegment;
            char* to = segments > 1 ? &partial[size_t(unit) * bytes] : accumulator.data();
            fold(at, first, std::min(n, first + kSegment), to);
            if (segments == 1) job.host.finish(to, job.place(at).data() + job.inputs);
          }
        });
      });
  for (int64_t at = 0; segments > 1 && at < results; ++at) {
    failure.guard([&] {
      char* const first = &partial[size_t(at * segments) * bytes];
      for (int64_t s = 1; s < segments; ++s) job.host.combine(first, first + size_t(s) * bytes);
      job.host.finish(first, job.place(at).data() + job.inputs);
    });
  }
  failure.rethrow();
}

// Adjacent results are computed together, so that rows of kept elements are read in memory order.
void reduce_columns(const HostReduceJob& job) {
  const int64_t columns = job.kept.inner(), blocks = (columns + kColumns - 1) / kColumns;
  const int64_t outer = job.kept.size / columns;
  const size_t bytes = job.host.accumulator_bytes;
  int64_t strides[kMaxLoopOperands];
  for (size_t k = 0; k < job.base.size(); ++k)
    strides[k] = job.kept.inner_stride(static_cast<int>(k));
  Failure failure;
  host::parallel_ranges(
      outer * blocks, 1, host::threads_for(job.kept.size * job.reduced.size),
      [&](int64_t begin, int64_t end) {
        failure.guard([&] {
          std::vector<char> accumulators(size_t(kColumns) * bytes);
          for (int64_t unit = begin; unit < end; ++unit) {
            const int64_t column = unit % blocks * kColumns;
            const int64_t n = std::min(kColumns, columns - column);
            const std::vector<char*> place = job.place(unit / blocks * columns + column);
            job.host.fill(accumulators.data(), n);
            walk(job.reduced, place, 0, job.reduced.size, [&](const HostRow& row) {
              for (int64_t r = 0; r < row.n; ++r) {
                char* at[kMaxLoopOperands];
                for (size_t k = 0; k < job.inputs; ++k)
                  at[k] = row.pointers[k] + r * row.strides[k];
                job.host.fold_columns(HostRow{at, strides, n, 0, n}, accumulators.data());
              }
            });
            for (int64_t j = 0; j < n; ++j) {
              char* to[kMaxLoopOperands];
              for (size_t k = job.inputs; k < place.size(); ++k)
                to[k - job.inputs] = place[k] + j * strides[k];
              job.host.finish(accumulators.data() + size_t(j) * bytes, to);
            }
          }
        });
      });
  failure.rethrow();
}

}  // namespace

void run_on_host(const ReductionKernel::Definition& kernel,
                 std::span<const KernelArgument> arguments, const Shape& shape, uint32_t axes) {
  const size_t outputs = kernel.outputs.size(), inputs = kernel.inputs.size();
  const HostReduction* host = nullptr;
  for (const auto& candidate : kernel.host) {
    bool fits = true;
    for (size_t k = 0; k < inputs; ++k)
      fits = fits && candidate->inputs[k] == arguments[outputs + k].dtype;
    for (size_t k = 0; k < outputs; ++k) fits = fits && candidate->outputs[k] == arguments[k].dtype;
    if (fits) host = candidate.get();
  }
  CATENA_CHECK(DeviceError, host != nullptr, kernel.name, ": no lambdas for arrays of a CPU take ",
               dtypes_of(arguments, outputs), " (inputs, outputs); add them with on_cpu");
  check_operands(kernel.name, inputs + outputs);
  std::vector<Array> operands;
  for (size_t k = 0; k < inputs; ++k)
    operands.push_back(looped_array(arguments[outputs + k], shape, arguments[0].array.device()));
  for (size_t k = 0; k < outputs; ++k) operands.push_back(arguments[k].array);
  Shape kept_shape, reduced_shape;
  std::vector<Strides> kept(operands.size()), reduced(inputs);
  for (int d = 0; d < shape.ndim(); ++d) {
    const bool is_reduced = (axes >> d) & 1;
    (is_reduced ? reduced_shape : kept_shape).push_back(shape[size_t(d)]);
    for (size_t k = 0; k < operands.size(); ++k) {
      if (!is_reduced) kept[k].push_back(operands[k].strides()[size_t(d)]);
      if (is_reduced && k < inputs) reduced[k].push_back(operands[k].strides()[size_t(d)]);
    }
  }
  std::vector<LoopOperand> kept_list, reduced_list;
  for (const Strides& s : kept) kept_list.push_back({&kept_shape, &s});
  for (const Strides& s : reduced) reduced_list.push_back({&reduced_shape, &s});
  HostReduceJob job{*host, plan_loop(kept_list), plan_loop(reduced_list), addresses(operands),
                    inputs};
  if (element_count(reduced_shape) == 0) {  // the result is the identity
    std::vector<char> accumulator(host->accumulator_bytes);
    host->fill(accumulator.data(), 1);
    for (int64_t at = 0; at < job.kept.size; ++at)
      host->finish(accumulator.data(), job.place(at).data() + inputs);
    return;
  }
  const bool columns = job.kept.size > 1 && job.reduced.size > 1 &&
                       std::abs(job.kept.inner_stride(0)) < std::abs(job.reduced.inner_stride(0));
  columns ? reduce_columns(job) : reduce_rows(job);
}

}  // namespace catena
