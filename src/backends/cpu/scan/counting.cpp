// Positions of elements that are not zero, and counting of elements by value or by bin.
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/common/family.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/count.h"

namespace catena::host {

namespace {

constexpr int64_t kChunk = 1 << 16;  // elements counted together

// Calls f(mask). An element is nonzero if its bits, as a number of the mask's type, have a bit of
// the mask.
template <class F>
void visit_bits(Dtype dtype, const F& f) {
  const uint64_t mask = is_float(dtype) ? ~uint64_t{0} >> 1 : ~uint64_t{0};  // -0 is zero
  const auto call = [&]<class U>(U) { f(U(mask >> (64 - 8 * sizeof(U)))); };
  switch (itemsize(dtype)) {
    case 1: return call(uint8_t());
    case 2: return call(uint16_t());
    case 4: return call(uint32_t());
    default: return call(uint64_t());
  }
}

template <class U>
int64_t count(const U* x, U mask, int64_t n) {
  int64_t total = 0;
  for (int64_t i = 0; i < n;) {
    // Partial sums in 32 bits, because they vectorise better.
    const int64_t end = std::min(n, i + 4096);
    uint32_t part = 0;
    for (; i < end; ++i) part += (x[i] & mask) != 0;
    total += part;
  }
  return total;
}

std::vector<int64_t> counts_by_chunk(const Array& a) {
  std::vector<int64_t> counts(size_t((a.size() + kChunk - 1) / kChunk));
  visit_bits(a.dtype(), [&](auto mask) {
    const auto* x = static_cast<const decltype(mask)*>(a.raw_data());
    parallel_for(int64_t(counts.size()), threads_for(a.size() / 2), [&](int64_t c) {
      counts[size_t(c)] = count(x + c * kChunk, mask, std::min(kChunk, a.size() - c * kChunk));
    });
  });
  return counts;
}

// Flat positions of one chunk, without a branch for each element.
template <class U>
void write_positions(const U* x, U mask, int64_t first, int64_t n, int64_t* out) {
  constexpr int64_t kBlock = 512;
  int64_t found[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    int64_t k = 0;
    const int64_t end = std::min(n, i + kBlock);
    for (int64_t j = i; j < end; ++j) {
      found[k] = first + j;
      k += (x[j] & mask) != 0;
    }
    std::memcpy(out, found, size_t(k) * sizeof(int64_t));
    out += k;
  }
}

// Row 0 holds flat positions: makes row d those along axis d.
void unravel(const Shape& shape, const Array& positions) {
  const int64_t n = positions.shape()[1];
  int64_t* rows = positions.data<int64_t>();
  parallel_ranges(n, 256, threads_for(n * shape.ndim() * 4), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = rows[i];
      for (int d = shape.ndim() - 1; d > 0; --d) {
        rows[d * n + i] = rest % shape[size_t(d)];
        rest /= shape[size_t(d)];
      }
      rows[i] = rest;
    }
  });
}

// The bin of x, or -1. `edges` has bins + 1 elements.
template <class T>
int64_t bin_of(T x, const T* edges, int64_t bins, bool uniform, double scale) {
  if (!(x >= edges[0] && x <= edges[bins])) return -1;
  int64_t i;
  if (uniform) {
    const double guess = (double(x) - double(edges[0])) * scale;
    i = guess > 0 ? std::min(int64_t(guess), bins - 1) : 0;
    while (i > 0 && x < edges[i]) --i;
    while (i < bins - 1 && x >= edges[i + 1]) ++i;
  } else {
    i = std::upper_bound(edges, edges + bins, x) - edges - 1;
  }
  return i;
}

template <class T>
void count_bins(const HistogramCall& call) {
  const int64_t n = call.input->size(), bins = call.counts->size();
  const T *x = call.input->data<T>(), *edges = call.edges->data<T>();
  int64_t* counts = call.counts->data<int64_t>();
  // Bins per unit. Where this is not a usable number the edges are searched.
  const double scale = call.uniform ? double(bins) / (double(edges[bins]) - double(edges[0])) : 0;
  const bool even = call.uniform && std::isfinite(scale);
  const int threads = bins <= 4096 ? threads_for(n * 4) : 1;
  std::vector<int64_t> shares(size_t(threads) * size_t(bins));
  parallel_for(threads, threads, [&](int64_t t) {
    int64_t* mine = shares.data() + t * bins;
    for (int64_t i = n * t / threads; i < n * (t + 1) / threads; ++i) {
      const int64_t bin = bin_of(x[i], edges, bins, even, scale);
      if (bin >= 0) ++mine[bin];
    }
  });
  for (int64_t b = 0; b < bins; ++b) {
    counts[b] = 0;
    for (int t = 0; t < threads; ++t) counts[b] += shares[size_t(t) * size_t(bins) + size_t(b)];
  }
}

void nonzero_count(const NonzeroCountCall& call) {
  const auto& [a, result] = call;
  int64_t total = 0;
  for (int64_t c : counts_by_chunk(a)) total += c;
  *result.data<int64_t>() = total;
}

void nonzero(const NonzeroCall& call) {
  const auto& [a, positions] = call;
  std::vector<int64_t> starts = counts_by_chunk(a);
  int64_t sum = 0;
  for (int64_t& start : starts) sum += std::exchange(start, sum);
  int64_t* out = positions.data<int64_t>();
  visit_bits(a.dtype(), [&](auto mask) {
    const auto* x = static_cast<const decltype(mask)*>(a.raw_data());
    parallel_for(int64_t(starts.size()), threads_for(a.size()), [&](int64_t c) {
      write_positions(x + c * kChunk, mask, c * kChunk, std::min(kChunk, a.size() - c * kChunk),
                      out + starts[size_t(c)]);
    });
  });
  if (a.ndim() > 1) unravel(a.shape(), positions);
}

void bincount(const BincountCall& call) {
  const auto& [x, counts] = call;
  int64_t* out = counts.data<int64_t>();
  std::fill(out, out + counts.size(), 0);
  visit_dtype(x.dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T>) {
      const T* in = x.data<T>();
      for (int64_t i = 0; i < x.size(); ++i) ++out[in[i]];
    }
  });
}

void histogram(const HistogramCall& call) {
  switch (call.input->dtype()) {
    case Dtype::kFloat32: return count_bins<float>(call);
    case Dtype::kFloat64: return count_bins<double>(call);
    case Dtype::kInt64: return count_bins<int64_t>(call);
    case Dtype::kUInt64: return count_bins<uint64_t>(call);
    default: fail<DtypeError>("no kernel for ", call.input->dtype());
  }
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, counting) {
  kernels::nonzero_count.provide<&host::nonzero_count>(DeviceType::kCpu, "cpu");
  kernels::nonzero.provide<&host::nonzero>(DeviceType::kCpu, "cpu");
  kernels::bincount.provide<&host::bincount>(DeviceType::kCpu, "cpu");
  kernels::histogram.provide<&host::histogram>(DeviceType::kCpu, "cpu");
}
