// Positions of extremes along one axis.
#include "array/iteration.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loops/tables.h"
#include "backends/cpu/parallel.h"

namespace catena::host {

namespace {

constexpr int64_t kBlock = 1024;

// Position of the first NaN, else of the first extreme, of n elements of T (stride in bytes).
template <class T>
int64_t find_extreme(const char* source, int64_t stride, int64_t n, bool maximum) {
  using C = compute_t<T>;
  const auto at = [&](int64_t i) { return C(*reinterpret_cast<const T*>(source + i * stride)); };
  C best = at(0);
  int64_t position = 0;
  for (int64_t i = 0; i < n; ++i) {
    const C value = at(i);
    if (value != value) return i;
    if (maximum ? value > best : value < best) {
      best = value;
      position = i;
    }
  }
  return position;
}

// Contiguous rows of a dtype with a vectorised extreme: that first, then where it is.
template <class T>
int64_t find_extreme_fast(const char* source, int64_t n, bool maximum) {
  const ReduceRow row =
      tables().reductions[maximum ? kLoopMax : kLoopMin][static_cast<int>(dtype_of<T>)].row;
  const T* x = reinterpret_cast<const T*>(source);
  T best = x[0];
  int64_t best_block = 0;
  for (int64_t at = 0; at < n; at += kBlock) {
    T extreme;
    row(source + at * int64_t(sizeof(T)), std::min(kBlock, n - at), &extreme);
    const bool nan = extreme != extreme;
    if (nan || at == 0 || (maximum ? extreme > best : extreme < best)) {
      best = extreme;
      best_block = at;
    }
    if (nan) break;
  }
  for (int64_t i = best_block; i < n; ++i) {
    if (x[i] == best || (x[i] != x[i] && best != best)) return i;
  }
  return best_block;
}

template <class T>
void run(const ArgReduceCall& call, const LoopPlan& plan, int64_t n, int64_t stride) {
  const char* input = static_cast<const char*>(call.input->raw_data());
  char* output = static_cast<char*>(call.output->raw_data());
  constexpr bool kFast = sizeof(T) >= 4 || std::is_integral_v<T>;
  parallel_ranges(plan.size, 1, threads_for(plan.size * n), [&](int64_t begin, int64_t end) {
    const int64_t inner = plan.inner();
    LoopCursor cursor(plan, begin / inner);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % inner;
      const char* source = input + cursor.offset(1) + column * plan.inner_stride(1);
      int64_t position;
      if (kFast && !std::is_same_v<T, bool> && stride == int64_t(sizeof(T)) && n >= 64) {
        if constexpr (kFast && !std::is_same_v<T, bool>)
          position = find_extreme_fast<T>(source, n, call.maximum);
        else
          position = 0;
      } else {
        position = find_extreme<T>(source, stride, n, call.maximum);
      }
      *reinterpret_cast<int64_t*>(output + cursor.offset(0) + column * plan.inner_stride(0)) =
          position;
      if (column == inner - 1) cursor.next_row();
    }
  });
}

}  // namespace

void arg_reduce(const ArgReduceCall& call) {
  const size_t axis = static_cast<size_t>(call.axis);
  Shape shape = call.input->shape();
  Strides in = call.input->strides(), out = call.output->strides();
  const int64_t n = shape[axis], stride = in[axis];
  shape[axis] = 1;
  const LoopOperand operands[] = {{&shape, &out}, {&shape, &in}};
  const LoopPlan plan = plan_loop(operands);
  visit_dtype(call.input->dtype(),
              [&](auto tag) { run<typename decltype(tag)::type>(call, plan, n, stride); });
}

}  // namespace catena::host
