// The logistic loss of a few rows of a table for each sample, and its gradients.
#include <cmath>
#include <limits>
#include <vector>

#include "backends/common/family.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/sampling.h"

namespace catena::host {

namespace {

// Rows and signs of one sample's terms.
struct Terms {
  int64_t count;
  const int32_t* rows;
  const int8_t* codes;  // null: 1 for the first, else -1
  int sign(int64_t k) const { return codes != nullptr ? codes[k] : k == 0 ? 1 : -1; }
};

// An id without a leaf has no terms.
Terms terms_of(const SampledLogisticCall& call, int64_t sample) {
  if (call.paths == nullptr) {
    const int64_t terms = call.rows->shape()[1];
    return {terms, call.rows->data<int32_t>() + sample * terms, nullptr};
  }
  const TreePaths& tree = *call.paths;
  const int64_t id = tree.t->data<int32_t>()[sample];
  if (id < 0 || id + 1 >= tree.begins->size()) return {0, nullptr, nullptr};
  const int32_t* begins = tree.begins->data<int32_t>();
  return {begins[id + 1] - begins[id], tree.paths->data<int32_t>() + begins[id],
          tree.codes->data<int8_t>() + begins[id]};
}

template <class C>
struct Term {
  double loss;
  C coefficient;
};
// Of the product of x and the row, multiplied by the sign.
template <class C>
Term<C> term_of(C signed_product, int sign) {
  const C tail = std::log1p(std::exp(-std::abs(signed_product)));
  return {double(signed_product < 0 ? -signed_product : C(0)) + double(tail),
          C(-sign) * (C(1) / (C(1) + std::exp(signed_product)))};
}

// The losses of the samples are added in order, so the sum does not depend on the threads.
template <class C>
void forward(const SampledLogisticCall& call) {
  const int64_t batch = call.rows->shape()[0], terms = call.rows->shape()[1];
  const int64_t n = call.W->shape()[0], size = call.W->shape()[1];
  std::vector<double> losses(static_cast<size_t>(batch), 0.0);
  parallel_ranges(
      batch, 1, threads_for(batch * terms * (size / 4 + 16)), [&](int64_t begin, int64_t end) {
        Elements<C> x(*call.x, size), W(*call.W, size);
        for (int64_t i = begin; i < end; ++i) {
          const Terms own = terms_of(call, i);
          const C* const from = x.read(i * size, 1, size);
          C* const coefficients = call.coefficients->data<C>() + i * terms;
          int32_t* const rows = call.rows->data<int32_t>() + i * terms;
          double& loss = losses[size_t(i)];
          if (own.count == 0) loss = std::numeric_limits<double>::quiet_NaN();
          for (int64_t k = 0; k < terms; ++k) {
            const int64_t row = k < own.count ? own.rows[k] : -1;
            coefficients[k] = 0;
            if (call.paths != nullptr) rows[k] = int32_t(row);
            if (k >= own.count) continue;
            if (row < 0 || row >= n) {
              loss = std::numeric_limits<double>::quiet_NaN();
              continue;
            }
            const C product = softmax_loops<C>().dot(from, W.read(row * size, 1, size), size);
            const Term<C> term = term_of<C>(C(own.sign(k)) * product, own.sign(k));
            loss += term.loss;
            coefficients[k] = term.coefficient;
          }
        }
      });
  double sum = 0;
  for (const double loss : losses) sum += loss;
  visit_float("sampled_logistic", call.loss->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    *call.loss->data<T>() = T(sum);
  });
}

template <class C>
void backward(const SampledLogisticGradCall& call) {
  const int64_t batch = call.rows->shape()[0], terms = call.rows->shape()[1];
  const int64_t n = call.W->shape()[0], size = call.W->shape()[1];
  const C gloss = Elements<C>(*call.gloss, 1).at(0);
  parallel_ranges(batch, 1, threads_for(batch * terms * (size / 2 + 8)),
                  [&](int64_t begin, int64_t end) {
                    Elements<C> x(*call.x, size), W(*call.W, size);
                    Elements<C> gx(call.gx ? *call.gx : *call.x, size);
                    Elements<C> values(call.values ? *call.values : *call.x, size);
                    for (int64_t i = begin; i < end; ++i) {
                      const C* const from = x.read(i * size, 1, size);
                      C* const sum = call.gx ? gx.write(i * size, 1) : nullptr;
                      if (sum != nullptr) std::fill_n(sum, size, C(0));
                      for (int64_t k = 0; k < terms; ++k) {
                        const int64_t at = i * terms + k, row = call.rows->data<int32_t>()[at];
                        const bool is_row = row >= 0 && row < n;
                        const C factor = call.coefficients->data<C>()[at] * gloss;
                        if (sum != nullptr && is_row) {
                          const C* const w = W.read(row * size, 1, size);
                          for (int64_t d = 0; d < size; ++d) sum[d] += factor * w[d];
                        }
                        if (call.values == nullptr) continue;
                        C* const value = values.write(at * size, 1);
                        for (int64_t d = 0; d < size; ++d)
                          value[d] = is_row ? factor * from[d] : C(0);
                        values.commit(at * size, 1, size);
                      }
                      if (sum != nullptr) gx.commit(i * size, 1, size);
                    }
                  });
}

void sampled_logistic(const SampledLogisticCall& call) {
  visit_compute(call.x->dtype(), [&](auto tag) { forward<typename decltype(tag)::type>(call); });
}
void sampled_logistic_grad(const SampledLogisticGradCall& call) {
  visit_compute(call.x->dtype(), [&](auto tag) { backward<typename decltype(tag)::type>(call); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, sampled_logistic) {
  kernels::sampled_logistic.provide<&host::sampled_logistic>(DeviceType::kCpu, "cpu");
  kernels::sampled_logistic_grad.provide<&host::sampled_logistic_grad>(DeviceType::kCpu, "cpu");
}
