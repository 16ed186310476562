#include "raw_cpu.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "backends/cpu/runtime/parallel.h"
#include "vendor_blas.h"

// The loops are compiled for several instruction sets, as the framework's own are.
#define BENCH_LOOP __attribute__((target_clones("default", "arch=haswell", "arch=skylake-avx512")))

namespace bench::raw {
namespace {

BENCH_LOOP void add_loop(float* c, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}

BENCH_LOOP double sum_loop(const float* a, int64_t n) {
  constexpr int kLanes = 32;
  double total = 0;
  int64_t i = 0;
  while (i + kLanes <= n) {
    float lanes[kLanes] = {};
    const int64_t end = std::min(n, i + 4096) - kLanes;
    for (; i <= end; i += kLanes) {
      for (int k = 0; k < kLanes; ++k) lanes[k] += a[i + k];
    }
    for (float lane : lanes) total += lane;
  }
  for (; i < n; ++i) total += a[i];
  return total;
}

BENCH_LOOP void sgd_loop(float* p, const float* g, float rate, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] -= rate * g[i];
}

BENCH_LOOP void adam_loop(float* p, const float* g, float* m, float* v, float rate, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    m[i] += 0.1f * (g[i] - m[i]);
    v[i] += 0.001f * (g[i] * g[i] - v[i]);
    p[i] -= rate * m[i] / (std::sqrt(v[i]) + 1e-8f);
  }
}

// f(begin, n) on each thread's part.
template <class F>
void in_parallel(int64_t n, const F& f) {
  const int threads = catena::cpu_threads();
  catena::host::parallel_ranges(n, 64, threads,
                                [&](int64_t begin, int64_t end) { f(begin, end - begin); });
}

}  // namespace

void copy(float* to, const float* from, int64_t n) {
  in_parallel(n, [&](int64_t i, int64_t count) {
    std::memcpy(to + i, from + i, size_t(count) * sizeof(float));
  });
}
void add(float* c, const float* a, const float* b, int64_t n) {
  in_parallel(n, [&](int64_t i, int64_t count) { add_loop(c + i, a + i, b + i, count); });
}
double sum(const float* a, int64_t n) {
  std::vector<double> parts(size_t(catena::cpu_threads()), 0);
  double* part = parts.data();
  const int64_t share = n / int64_t(parts.size());
  in_parallel(n, [&](int64_t i, int64_t count) {
    part[std::min<int64_t>(i / std::max<int64_t>(share, 1), int64_t(parts.size()) - 1)] +=
        sum_loop(a + i, count);
  });
  double total = 0;
  for (double x : parts) total += x;
  return total;
}

float allocate_and_add(const float* a, const float* b, int64_t n) {
  const std::unique_ptr<float[]> c(new float[size_t(n)]);
  add_loop(c.get(), a, b, n);
  return c[size_t(n) - 1];
}

BareStep::BareStep(const std::vector<int64_t>& widths, int64_t batch, const std::string& rule)
    : widths_(widths), batch_(batch), adam_(rule == "Adam") {
  size_t total = 0;
  for (size_t l = 0; l < widths.size(); ++l) {
    activations_.emplace_back(size_t(batch * widths[l]), 0.5f);
    if (l + 1 == widths.size()) break;
    weight_at_.push_back(total);
    total += size_t((widths[l] + 1) * widths[l + 1]);
  }
  parameters_.assign(total, 0.01f);
  gradients_.assign(total, 0.01f);
  if (adam_) {
    m_.assign(total, 0.0f);
    v_.assign(total, 0.0f);
  }
}

void BareStep::products() {
  const size_t layers = weight_at_.size();
  for (size_t l = 0; l < layers; ++l)
    vendor_sgemm(false, true, batch_, widths_[l + 1], widths_[l], activations_[l].data(),
                 &parameters_[weight_at_[l]], activations_[l + 1].data());
  for (size_t l = layers; l-- > 0;) {
    const int64_t in = widths_[l], out = widths_[l + 1];
    vendor_sgemm(true, false, out, in, batch_, activations_[l + 1].data(), activations_[l].data(),
                 &gradients_[weight_at_[l]]);
    if (l > 0)
      vendor_sgemm(false, false, batch_, in, out, activations_[l + 1].data(),
                   &parameters_[weight_at_[l]], activations_[l].data());
  }
}

void BareStep::update() {
  float *p = parameters_.data(), *m = m_.data(), *v = v_.data();
  const float* g = gradients_.data();
  const float rate = 1e-9f;  // so that the numbers stay of one size over any number of runs
  in_parallel(int64_t(parameters_.size()), [&](int64_t i, int64_t count) {
    if (adam_)
      adam_loop(p + i, g + i, m + i, v + i, rate, count);
    else
      sgd_loop(p + i, g + i, rate, count);
  });
}

}  // namespace bench::raw
