#include "catena/comm/reduction.h"

#include <algorithm>
#include <array>

#include "catena/comm/transport.h"

namespace catena::comm {

namespace {

// Values in flight at once: inputs are read in order, the accumulators stay in the cache.
constexpr int64_t kBlock = 2048;

template <class C>
struct Combine {
  static C sum(C a, C b) { return static_cast<C>(a + b); }
  static C product(C a, C b) { return static_cast<C>(a * b); }
  // NaN wins, as in NumPy.
  static C min(C a, C b) { return b != b || b < a ? b : a; }
  static C max(C a, C b) { return b != b || b > a ? b : a; }
};

template <class T, class C, class F>
void accumulate(C* sum, const T* x, int64_t n, F combine) {
  for (int64_t i = 0; i < n; ++i) sum[i] = combine(sum[i], static_cast<C>(x[i]));
}

template <class C, class T>
void reduce_block(Reduction reduction, std::span<const void* const> inputs, int64_t offset,
                  std::span<const double> weights, int64_t n, T* output) {
  std::array<C, kBlock> sum;
  const bool weighted = reduction == Reduction::kWeighted;
  for (size_t r = 0; r < inputs.size(); ++r) {
    const T* x = static_cast<const T*>(inputs[r]) + offset;
    if (r == 0) {
      const C weight = weighted ? static_cast<C>(weights[0]) : C(1);
      if (weighted)
        for (int64_t i = 0; i < n; ++i)
          sum[size_t(i)] = static_cast<C>(weight * static_cast<C>(x[i]));
      else
        for (int64_t i = 0; i < n; ++i) sum[size_t(i)] = static_cast<C>(x[i]);
      continue;
    }
    switch (reduction) {
      case Reduction::kSum:
      case Reduction::kMean: accumulate(sum.data(), x, n, Combine<C>::sum); break;
      case Reduction::kMin: accumulate(sum.data(), x, n, Combine<C>::min); break;
      case Reduction::kMax: accumulate(sum.data(), x, n, Combine<C>::max); break;
      case Reduction::kProduct: accumulate(sum.data(), x, n, Combine<C>::product); break;
      case Reduction::kWeighted: {
        const C weight = static_cast<C>(weights[r]);
        accumulate(sum.data(), x, n, [weight](C a, C b) { return static_cast<C>(a + weight * b); });
        break;
      }
    }
  }
  if (reduction == Reduction::kMean) {
    const C ranks = static_cast<C>(inputs.size());
    for (int64_t i = 0; i < n; ++i) sum[size_t(i)] = static_cast<C>(sum[size_t(i)] / ranks);
  }
  for (int64_t i = 0; i < n; ++i) output[i] = static_cast<T>(sum[size_t(i)]);
}

}  // namespace

void ordered_reduce(Dtype dtype, Reduction reduction, std::span<const void* const> inputs,
                    std::span<const double> weights, int64_t count, void* output) {
  // Bool reductions are min and max, for which its bytes 0 and 1 are as good as integers.
  if (dtype == Dtype::kBool) dtype = Dtype::kUInt8;
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = static_cast<T*>(output);
    for (int64_t at = 0; at < count; at += kBlock)
      reduce_block<compute_t<T>>(reduction, inputs, at, weights, std::min(kBlock, count - at),
                                 out + at);
  });
}

}  // namespace catena::comm
