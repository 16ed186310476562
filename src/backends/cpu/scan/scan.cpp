// Running sums and products.
#include <vector>

#include "backends/common/family.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/scan.h"

namespace catena::host {

namespace {

constexpr int64_t kColumns = 512;  // accumulated together

// The type in which elements of T accumulate. float32 uses double, rounded for each element: see
// cumsum.
template <class T>
struct RunningType {
  using type = compute_t<T>;
};
template <>
struct RunningType<float> {
  using type = double;
};

template <class A>
A combine(bool product, A a, A b) {
  if constexpr (std::is_same_v<A, bool>)
    return product ? a && b : a || b;
  else
    return static_cast<A>(product ? a * b : a + b);
}

// One column or row: n elements, `step` apart.
template <bool kProduct, class I, class O>
void scan_line(const I* in, O* out, int64_t n) {
  using A = typename RunningType<O>::type;
  A sum = A(in[0]);
  out[0] = O(sum);
  for (int64_t i = 1; i < n; ++i) {
    sum = combine(kProduct, sum, A(in[i]));
    out[i] = O(sum);
  }
}

// Columns begin .. end of (n, inner), a block of accumulators at a time.
template <bool kProduct, class I, class O>
void scan_columns(const I* in, O* out, int64_t n, int64_t inner, int64_t begin, int64_t end) {
  using A = typename RunningType<O>::type;
  A sums[kColumns];
  for (int64_t first = begin; first < end; first += kColumns) {
    const int64_t m = std::min(kColumns, end - first);
    for (int64_t i = 0; i < n; ++i) {
      const I* x = in + i * inner + first;
      O* y = out + i * inner + first;
      for (int64_t j = 0; j < m; ++j) {
        sums[j] = i ? combine(kProduct, sums[j], A(x[j])) : A(x[j]);
        y[j] = O(sums[j]);
      }
    }
  }
}

template <bool kProduct, class I, class O>
void scan_typed(const Array& input, const Array& output) {
  const int64_t outer = input.shape()[0], n = input.shape()[1], inner = input.shape()[2];
  const I* in = input.data<I>();
  O* out = output.data<O>();
  const int threads = threads_for(input.size());
  if (inner == 1) {
    parallel_for(outer, threads,
                 [&](int64_t r) { scan_line<kProduct>(in + r * n, out + r * n, n); });
    return;
  }
  const int64_t blocks = (inner + kColumns - 1) / kColumns;
  parallel_for(outer * blocks, threads, [&](int64_t unit) {
    const int64_t r = unit / blocks, begin = unit % blocks * kColumns;
    scan_columns<kProduct>(in + r * n * inner, out + r * n * inner, n, inner, begin,
                           std::min(inner, begin + kColumns));
  });
}

template <class I, class O>
void scan_either(const ScanCall& call) {
  if (call.product)
    scan_typed<true, I, O>(*call.input, *call.output);
  else
    scan_typed<false, I, O>(*call.input, *call.output);
}

void scan(const ScanCall& call) {
  const Dtype to = call.output->dtype();
  visit_dtype(call.input->dtype(), [&]<class I>(TypeTag<I>) {
    if (to == dtype_of<I>) return scan_either<I, I>(call);
    if constexpr (std::is_integral_v<I>) {
      if (to == Dtype::kInt64) return scan_either<I, int64_t>(call);
      return scan_either<I, uint64_t>(call);
    }
  });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, scan) { kernels::scan.provide<&host::scan>(DeviceType::kCpu, "cpu"); }
