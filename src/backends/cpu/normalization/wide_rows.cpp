// Normalization of rows that have a gamma and a beta for each of their numbers.
#include <algorithm>

#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/normalization.h"
#include "backends/cpu/loops/row_normalization.h"
#include "backends/cpu/normalization/row_normalization.h"

namespace catena::host {
namespace {

template <class C>
const RowNormalizationLoops<C>& loops() {
  return loops_of<RowNormalizationTables, C>();
}
template <class C>
const NormalizationLoops<C>& batch_loops() {
  return loops_of<NormalizationTables, C>();
}

// Calls f(begin, count) for pieces of a row.
template <class F>
void each_piece(int64_t size, const F& f) {
  for (int64_t at = 0; at < size; at += kLongestPiece) f(at, std::min(kLongestPiece, size - at));
}

template <class C>
RowStatistics<C> statistics_of(const C* x, int64_t size, double eps, bool centred) {
  Moments all;
  each_piece(size, [&](int64_t at, int64_t n) {
    Moments m;
    m.n = double(n);
    if (centred)
      batch_loops<C>().moments[0](x + at, 1, n, {&m.mean, &m.rest, &m.squares});
    else
      m.squares = double(loops<C>().sum_of_squares(x + at, n));
    all.merge(m);
  });
  return RowStatistics<C>::of(all, eps, centred);
}

template <class C>
const C* data_of(const Array* a) {
  return a ? a->data<C>() : nullptr;
}

// Rows that are normalized: those of x, or the sums with the residual.
template <class C>
class Summed {
 public:
  Summed(const RowNormalizationCall& call, int64_t size)
      : size_(size),
        added_(call.residual != nullptr),
        x_(*call.x, size),
        residual_(added_ ? *call.residual : *call.x, size),
        sum_(added_ ? *call.sum : *call.x, size) {}
  const C* row(int64_t row) {
    const C* x = x_.read(row * size_, 1, size_);
    if (!added_) return x;
    loops<C>().add(x, residual_.read(row * size_, 1, size_), sum_.write(row * size_, 1), size_);
    sum_.commit(row * size_, 1, size_);
    return sum_.read(row * size_, 1, size_);  // rounded
  }

 private:
  int64_t size_;
  bool added_;
  Elements<C> x_, residual_, sum_;
};

template <class C>
void normalize(const RowNormalizationCall& call) {
  const int64_t rows = call.layout.samples, size = call.layout.channels;
  parallel_ranges(rows, 1, threads_for(rows * size), [&](int64_t begin, int64_t end) {
    Summed<C> x(call, size);
    Elements<C> y(*call.y, size);
    for (int64_t row = begin; row < end; ++row) {
      const C* from = x.row(row);
      const auto s = statistics_of<C>(from, size, call.eps, call.centred);
      s.write(*call.statistics, row, rows, call.centred);
      loops<C>().apply({from, data_of<C>(call.gamma), data_of<C>(call.beta), s.mean, s.inverse,
                        -s.rest * s.inverse, y.write(row * size, 1)},
                       size);
      y.commit(row * size, 1, size);
    }
  });
}

// The parts in which the gradients of gamma and beta are made. Their number does not depend on that
// of the threads, and it is small, since each has memory for a row.
struct Parts {
  explicit Parts(int64_t rows)
      : step((rows - 1) / std::clamp<int64_t>(rows / 16, 8, 64) + 1),
        count((rows + step - 1) / step) {}
  int64_t step, count;
};

template <class C>
class Gradient {
 public:
  explicit Gradient(const RowNormalizationGradCall& call)
      : call_(call),
        rows_(call.layout.samples),
        size_(call.layout.channels),
        parts_(rows_),
        g_gamma_(call.g_gamma ? size_t(parts_.count * size_) : 0),
        g_beta_(call.g_beta ? size_t(parts_.count * size_) : 0) {}

  void run() {
    const int threads = threads_for(2 * rows_ * size_);
    parallel_ranges(parts_.count, 1, threads, [&](int64_t begin, int64_t end) {
      Memory memory(call_, size_);
      for (int64_t part = begin; part < end; ++part) {
        const int64_t last = std::min(rows_, (part + 1) * parts_.step);
        for (int64_t row = part * parts_.step; row < last; ++row) run_row(memory, part, row);
      }
    });
    store_parameter<C>(g_gamma_, parts_.count, call_.g_gamma, call_.accumulate_gamma);
    store_parameter<C>(g_beta_, parts_.count, call_.g_beta, call_.accumulate_beta);
  }

 private:
  struct Memory {
    Memory(const RowNormalizationGradCall& call, int64_t size)
        : x(*call.x, size),
          gy(*call.gy, size),
          gx(call.gx ? *call.gx : *call.x, size),
          gsum(call.gsum ? *call.gsum : *call.x, size) {}
    Elements<C> x, gy, gx, gsum;
  };

  void run_row(Memory& memory, int64_t part, int64_t row) {
    const C *x = memory.x.read(row * size_, 1, size_), *gy = memory.gy.read(row * size_, 1, size_);
    const auto s = RowStatistics<C>::read(*call_.statistics, row, rows_, call_.centred);
    if (call_.gx) {
      C* gx = memory.gx.write(row * size_, 1);
      write_gx(x, gy, s, gx);
      if (call_.gsum) loops<C>().add(gx, memory.gsum.read(row * size_, 1, size_), gx, size_);
      memory.gx.commit(row * size_, 1, size_);
    }
    const auto of_part = [&](std::vector<C>& all) {
      return all.empty() ? nullptr : all.data() + part * size_;
    };
    loops<C>().parameters(
        {x, gy, s.mean, s.inverse, -s.rest * s.inverse, of_part(g_gamma_), of_part(g_beta_)},
        size_);
  }
  void write_gx(const C* x, const C* gy, const RowStatistics<C>& s, C* gx) const {
    const C* gamma = data_of<C>(call_.gamma);
    double h = 0, hx = 0;
    each_piece(size_, [&](int64_t at, int64_t n) {
      C h_of_piece, hx_of_piece;
      loops<C>().sums(
          {x + at, gy + at, gamma ? gamma + at : nullptr, s.mean, &h_of_piece, &hx_of_piece}, n);
      h += double(h_of_piece);
      hx += double(hx_of_piece);
    });
    const RowGradient<C> k(s, h, hx, size_, call_.centred);
    loops<C>().gradient({x, gy, gamma, s.mean, C(k.of_h), C(k.of_x), C(k.constant), gx}, size_);
  }

  const RowNormalizationGradCall& call_;
  int64_t rows_, size_;
  Parts parts_;
  std::vector<C> g_gamma_, g_beta_;
};

}  // namespace

void normalize_wide_rows(const RowNormalizationCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { normalize<C>(call); });
}
void normalize_wide_rows_grad(const RowNormalizationGradCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { Gradient<C>(call).run(); });
}

}  // namespace catena::host
