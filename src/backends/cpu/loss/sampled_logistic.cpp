// The logistic loss of a few rows of a table for each sample, and its gradients.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "backends/common/family.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/sampled_logistic.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/sampling.h"

namespace catena::host {
namespace {

template <class C>
const SampledLogisticLoops<C>& loops() {
  return loops_of<SampledLogisticTables, C>();
}

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

// Up to kTermBlock rows of a matrix as compute type C: their addresses, or those of copies.
template <class C>
class Rows {
 public:
  explicit Rows(const Array& a)
      : base_(a.dtype() == dtype_of<C> ? static_cast<const C*>(a.raw_data()) : nullptr),
        size_(a.shape()[1]) {
    for (int64_t k = 0; base_ == nullptr && k < kTermBlock; ++k) copies_.emplace_back(a, size_);
  }
  // The k-th of the rows that are used together.
  const C* at(int64_t row, int64_t k) {
    return base_ != nullptr ? base_ + row * size_ : copies_[size_t(k)].read(row * size_, 1, size_);
  }

 private:
  const C* base_;
  int64_t size_;
  std::vector<Elements<C>> copies_;
};

// Losses of the samples that one thread has.
template <class C>
class Forward {
 public:
  explicit Forward(const SampledLogisticCall& call)
      : call_(call),
        width_(call.rows->shape()[1]),
        n_(call.W->shape()[0]),
        size_(call.W->shape()[1]),
        samples_(std::max<int64_t>(1, kTerms / width_)),
        x_(*call.x, size_),
        W_(*call.W),
        wrong_(size_t(samples_)) {
    const size_t room = size_t(samples_ * width_ + 2 * kTermBlock);
    for (std::vector<C>* buffer : {&products_, &signs_, &term_losses_, &coefficients_})
      buffer->resize(room);
  }

  void run(int64_t begin, int64_t end, double* losses) {
    for (int64_t first = begin; first < end; first += samples_)
      run_block(first, std::min(samples_, end - first), losses);
  }

 private:
  static constexpr int64_t kTerms = 512;  // that are computed at a time

  // All products first, so that their exponentials are computed in vectors.
  void run_block(int64_t first, int64_t samples, double* losses) {
    for (int64_t j = 0; j < samples; ++j) find_products(first + j, j * width_);
    loops<C>().terms(products_.data(), signs_.data(), samples * width_, term_losses_.data(),
                     coefficients_.data());
    C* const to = call_.coefficients->data<C>();
    for (int64_t j = 0; j < samples; ++j) {
      double& loss = losses[first + j] = 0;
      bool any = false;
      for (int64_t k = 0; k < width_; ++k) {
        const size_t at = size_t(j * width_ + k);
        const C sign = signs_[at];
        to[(first + j) * width_ + k] = sign == 0 ? C(0) : coefficients_[at];
        if (sign != 0) loss += double(term_losses_[at]);
        any |= sign != 0;
      }
      if (!any || wrong_[size_t(j)]) loss = std::numeric_limits<double>::quiet_NaN();
    }
  }
  // From `at` on; terms without a row have the sign 0.
  void find_products(int64_t sample, int64_t at) {
    const Terms own = terms_of(call_, sample);
    const C* const x = x_.read(sample * size_, 1, size_);
    int32_t* const rows = call_.rows->data<int32_t>() + sample * width_;
    bool wrong = false;
    for (int64_t k = 0; k < width_; k += kTermBlock) {
      const int64_t count = std::min(kTermBlock, width_ - k);
      const C* addresses[kTermBlock];
      C products[kTermBlock];
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = k + i < own.count ? own.rows[k + i] : -1;
        const bool is_row = row >= 0 && row < n_;
        wrong |= k + i < own.count && !is_row;
        if (call_.paths != nullptr) rows[k + i] = int32_t(row);
        signs_[size_t(at + k + i)] = is_row ? C(own.sign(k + i)) : C(0);
        addresses[i] = is_row ? W_.at(row, i) : x;
      }
      loops<C>().products(x, addresses, count, size_, products);
      std::copy_n(products, count, products_.data() + at + k);
    }
    wrong_[size_t(at / width_)] = wrong;
  }

  const SampledLogisticCall& call_;
  int64_t width_, n_, size_, samples_;
  Elements<C> x_;
  Rows<C> W_;
  std::vector<uint8_t> wrong_;  // samples with a row outside W
  std::vector<C> products_, signs_, term_losses_, coefficients_;
};

// The losses of the samples are added in order, so the sum does not depend on the threads.
template <class C>
void forward(const SampledLogisticCall& call) {
  const int64_t batch = call.rows->shape()[0], terms = call.rows->shape()[1];
  const int64_t cost = terms * (call.W->shape()[1] / 8 + 8);
  std::vector<double> losses(static_cast<size_t>(batch), 0.0);
  parallel_ranges(batch, 1, threads_for(batch * cost), [&](int64_t begin, int64_t end) {
    Forward<C>(call).run(begin, end, losses.data());
  });
  double sum = 0;
  for (const double loss : losses) sum += loss;
  visit_float("sampled_logistic", call.loss->dtype(),
              [&]<class T>(TypeTag<T>) { *call.loss->data<T>() = T(sum); });
}

// gx, a sample after the other.
template <class C>
void give_x(const SampledLogisticGradCall& call, C gloss) {
  const int64_t batch = call.rows->shape()[0], terms = call.rows->shape()[1];
  const int64_t n = call.W->shape()[0], size = call.W->shape()[1];
  const int64_t cost = terms * (size / 8 + 4);
  parallel_ranges(batch, 1, threads_for(batch * cost), [&](int64_t begin, int64_t end) {
    Rows<C> W(*call.W);
    Elements<C> gx(*call.gx, size);
    for (int64_t i = begin; i < end; ++i) {
      const int32_t* const rows = call.rows->data<int32_t>() + i * terms;
      const C* const coefficients = call.coefficients->data<C>() + i * terms;
      C* const sum = gx.write(i * size, 1);
      std::fill_n(sum, size, C(0));
      const C* addresses[kTermBlock];
      C factors[kTermBlock];
      int64_t count = 0;
      const auto add = [&] {
        loops<C>().combine(addresses, factors, count, size, true, sum);
        count = 0;
      };
      for (int64_t k = 0; k < terms; ++k) {
        if (rows[k] < 0 || rows[k] >= n) continue;
        addresses[count] = W.at(rows[k], count);
        factors[count++] = coefficients[k] * gloss;
        if (count == kTermBlock) add();
      }
      add();
      gx.commit(i * size, 1, size);
    }
  });
}

// The terms of each row of W in the order of the samples: those of row r are terms[begins[r]] to
// terms[begins[r + 1] - 1].
struct TermsOfRows {
  std::vector<int64_t> begins;
  std::vector<int32_t> terms;

  TermsOfRows(const Array& rows, int64_t n) : begins(size_t(n) + 1, 0) {
    const int32_t* const row = rows.data<int32_t>();
    const int64_t count = rows.size();
    const auto is_row = [&](int64_t k) { return row[k] >= 0 && row[k] < n; };
    for (int64_t k = 0; k < count; ++k)
      if (is_row(k)) ++begins[size_t(row[k]) + 1];
    for (size_t r = 0; r < size_t(n); ++r) begins[r + 1] += begins[r];
    terms.resize(size_t(begins[size_t(n)]));
    std::vector<int64_t> next(begins.begin(), begins.end() - 1);
    for (int64_t k = 0; k < count; ++k)
      if (is_row(k)) terms[size_t(next[size_t(row[k])]++)] = int32_t(k);
  }
  // The first row of the part-th of so many ranges, which cost about the same.
  int64_t bound(int64_t part, int64_t parts) const {
    const auto rows = int64_t(begins.size()) - 1;
    if (part == parts) return rows;
    const int64_t wanted = (int64_t(terms.size()) + rows) * part / parts;
    int64_t low = 0, high = rows;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (begins[size_t(middle)] + middle < wanted)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

// All rows of x as compute type C: the array itself, or a copy.
template <class C>
class AllRows {
 public:
  explicit AllRows(const Array& x) : elements_(x, x.size()) {
    data_ = elements_.read(0, 1, x.size());
  }
  const C* data() const { return data_; }

 private:
  Elements<C> elements_;
  const C* data_;
};

// Rows [begin, end) of gW.
template <class C>
void give_rows(const SampledLogisticGradCall& call, C gloss, const C* x, const TermsOfRows& of,
               int64_t begin, int64_t end) {
  const int64_t width = call.rows->shape()[1], size = call.W->shape()[1];
  const C* const coefficients = call.coefficients->data<C>();
  Elements<C> gW(*call.gW, size);
  char* const bytes = static_cast<char*>(call.gW->raw_data());
  const int64_t row_bytes = size * call.gW->itemsize();
  int64_t done = begin;  // rows below it have their value
  const auto clear_below = [&](int64_t row) {
    if (!call.accumulate_W && row > done)
      std::memset(bytes + done * row_bytes, 0, size_t((row - done) * row_bytes));
    done = row + 1;
  };
  for (int64_t row = begin; row < end; ++row) {
    const int64_t first = of.begins[size_t(row)], last = of.begins[size_t(row) + 1];
    if (first == last) continue;
    clear_below(row);
    const bool adds = call.accumulate_W;
    C* const sum = adds ? gW.read(row * size, 1, size) : gW.write(row * size, 1);
    for (int64_t at = first; at < last; at += kTermBlock) {
      const int64_t count = std::min(kTermBlock, last - at);
      const C* addresses[kTermBlock];
      C factors[kTermBlock];
      for (int64_t k = 0; k < count; ++k) {
        const int64_t term = of.terms[size_t(at + k)];
        addresses[k] = x + term / width * size;
        factors[k] = coefficients[term] * gloss;
      }
      loops<C>().combine(addresses, factors, count, size, adds || at > first, sum);
    }
    gW.commit(row * size, 1, size);
  }
  clear_below(end);
}

template <class C>
void backward(const SampledLogisticGradCall& call) {
  const C gloss = Elements<C>(*call.gloss, 1).at(0);
  if (call.gx) give_x<C>(call, gloss);
  if (!call.gW) return;
  const int64_t n = call.W->shape()[0], size = call.W->shape()[1];
  const TermsOfRows of(*call.rows, n);
  const AllRows<C> x(*call.x);
  const int parts = threads_for((call.rows->size() + n) * (size / 8 + 4));
  parallel_for(parts, parts, [&](int64_t part) {
    give_rows<C>(call, gloss, x.data(), of, of.bound(part, parts), of.bound(part + 1, parts));
  });
}

void sampled_logistic(const SampledLogisticCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { forward<C>(call); });
}
void sampled_logistic_grad(const SampledLogisticGradCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { backward<C>(call); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, sampled_logistic) {
  kernels::sampled_logistic.provide<&host::sampled_logistic>(DeviceType::kCpu, "cpu");
  kernels::sampled_logistic_grad.provide<&host::sampled_logistic_grad>(DeviceType::kCpu, "cpu");
}
