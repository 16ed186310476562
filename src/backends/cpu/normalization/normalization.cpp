// Batch normalization. A batch is cut into pieces of fixed sizes, whose statistics are merged in
// order, so the results do not depend on the number of threads.
#include <cmath>
#include <vector>

#include "backends/common/family.h"
#include "backends/cpu/common/blocks.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/normalization.h"
#include "backends/cpu/normalization/moments.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/array/array.h"
#include "catena/kernels/normalization.h"

namespace catena::host {
namespace {

template <class C>
const NormalizationLoops<C>& loops() {
  return loops_of<NormalizationTables, C>();
}

// Rows of a piece whose columns are the channels: few enough to stay in a core's caches, and enough
// that the statistics of a piece are small compared with it.
int64_t rows_of_piece(int64_t channels) {
  constexpr int64_t kElements = 8192, kFewest = 64;
  return std::clamp(kElements / channels, kFewest, kLongestPiece);
}

struct Piece {
  int64_t first;  // position of the first element
  int64_t rows, columns;
  int64_t channel;  // the first channel
  int64_t partial;  // index of the piece's statistics, one or `columns` of them
  int64_t size() const { return rows * columns; }
};

// The pieces of a batch and the layout of their statistics; partials() is the number of each
// statistic.
class Pieces {
 public:
  explicit Pieces(const ChannelLayout& layout) : l_(layout) {
    if (l_.channels == 1) l_ = {1, 1, l_.outer * l_.inner};
    columns_ = l_.inner == 1 && l_.channels > 1;
    step_ = columns_ ? rows_of_piece(l_.channels) : kLongestPiece;
    const int64_t extent = columns_ ? l_.outer : l_.inner;
    per_row_ = (extent + step_ - 1) / step_;
    count_ = columns_ ? per_row_ : l_.outer * l_.channels * per_row_;
  }
  // Index of the loop that takes these pieces.
  int kind() const { return columns_; }
  int64_t longest() const { return columns_ ? step_ * l_.channels : std::min(step_, l_.inner); }
  int64_t partials() const { return columns_ ? count_ * l_.channels : count_; }

  Piece at(int64_t i) const {
    if (columns_) {
      const int64_t row = i * step_;
      return {row * l_.channels, std::min(step_, l_.outer - row), l_.channels, 0, i * l_.channels};
    }
    const int64_t line = i / per_row_, begin = i % per_row_ * step_;
    return {line * l_.inner + begin, 1, std::min(step_, l_.inner - begin), line % l_.channels, i};
  }
  // Calls body(begin, end) for ranges of pieces.
  template <class F>
  void parallel(const F& body) const {
    parallel_ranges(count_, 1, threads_for(l_.count() * l_.channels), body);
  }
  // Calls body(channel) for all channels; each call reads the channel's partials.
  template <class F>
  void each_channel(const F& body) const {
    constexpr int64_t kMergeCost = 4;
    parallel_for(l_.channels, threads_for(partials() * kMergeCost), body);
  }
  // Calls merge(partial, elements) for the partials of a channel, in order.
  template <class F>
  void of_channel(int64_t channel, const F& merge) const {
    if (columns_) {
      for (int64_t i = 0; i < count_; ++i)
        merge(i * l_.channels + channel, std::min(step_, l_.outer - i * step_));
      return;
    }
    for (int64_t n = 0; n < l_.outer; ++n) {
      for (int64_t k = 0; k < per_row_; ++k)
        merge((n * l_.channels + channel) * per_row_ + k, std::min(step_, l_.inner - k * step_));
    }
  }

 private:
  ChannelLayout l_;
  bool columns_;
  int64_t step_, per_row_, count_;
};

template <class C>
std::vector<Moments> moments_of(const Pieces& pieces, const Array& x, int64_t channels) {
  const size_t partials = size_t(pieces.partials());
  std::vector<double> means(partials), rests(partials), squares(partials);
  pieces.parallel([&](int64_t begin, int64_t end) {
    Elements<C> in(x, pieces.longest());
    for (int64_t i = begin; i < end; ++i) {
      const Piece p = pieces.at(i);
      loops<C>().moments[pieces.kind()](
          in.read(p.first, 1, p.size()), p.rows, p.columns,
          {&means[size_t(p.partial)], &rests[size_t(p.partial)], &squares[size_t(p.partial)]});
    }
  });
  std::vector<Moments> result(static_cast<size_t>(channels));
  pieces.each_channel([&](int64_t c) {
    pieces.of_channel(c, [&](int64_t at, int64_t n) {
      const auto i = size_t(at);
      result[size_t(c)].merge({double(n), means[i], rests[i], squares[i]});
    });
  });
  return result;
}

// One number for each channel, or the same number for all if there is no array.
template <class C>
class PerChannel {
 public:
  PerChannel(const Array* a, C otherwise)
      : data_(a ? a->data<C>() : nullptr), otherwise_(otherwise) {}
  C operator[](int64_t channel) const { return data_ ? data_[channel] : otherwise_; }

 private:
  const C* data_;
  C otherwise_;
};

template <class C>
void store_statistics(const BatchNormalizationCall& call, const std::vector<Moments>& moments) {
  const double m = double(call.layout.count());
  C *mean = call.mean->data<C>(), *inverse = call.inverse_deviation->data<C>();
  for (size_t c = 0; c < moments.size(); ++c) {
    mean[c] = C(moments[c].mean);
    inverse[c] = C(1 / std::sqrt(moments[c].squares / m + call.eps));
    if (call.mean_rest) call.mean_rest->data<C>()[c] = rest_of<C>(moments[c]);
  }
  if (call.running_mean == nullptr) return;
  const double decay = call.updates ? 1 - 1 / double(*call.updates->data<int64_t>()) : call.decay;
  C *average = call.running_mean->data<C>(), *variance = call.running_variance->data<C>();
  for (size_t c = 0; c < moments.size(); ++c) {
    average[c] = C(decay * double(average[c]) + (1 - decay) * moments[c].mean);
    variance[c] = C(decay * double(variance[c]) + (1 - decay) * (moments[c].squares / (m - 1)));
  }
}

// What is applied to each element, for batch and for running statistics alike.
struct Application {
  const Array *x, *residual, *y;
  bool relu;
};

// y = (x - mean) * scale + shift (+ residual). What the mean lacks is in the shift.
template <class C>
void apply(const Pieces& pieces, const Application& call, const C* mean, const C* scale,
           const C* shift) {
  pieces.parallel([&](int64_t begin, int64_t end) {
    const int64_t longest = pieces.longest();
    Elements<C> in(*call.x, longest), out(*call.y, longest),
        added(call.residual ? *call.residual : *call.x, longest);
    for (int64_t i = begin; i < end; ++i) {
      const Piece p = pieces.at(i);
      const int64_t n = p.size(), c = p.channel;
      loops<C>().apply[pieces.kind()](
          {in.read(p.first, 1, n), call.residual ? added.read(p.first, 1, n) : nullptr, mean + c,
           scale + c, shift + c, call.relu, out.write(p.first, 1)},
          p.rows, p.columns);
      out.commit(p.first, 1, n);
    }
  });
}

template <class C>
void normalize(const BatchNormalizationCall& call) {
  const int64_t channels = call.layout.channels;
  const Pieces pieces(call.layout);
  const std::vector<Moments> moments = moments_of<C>(pieces, *call.x, channels);
  store_statistics<C>(call, moments);
  const PerChannel<C> gamma(call.gamma, 1), beta(call.beta, 0);
  const C *mean = call.mean->data<C>(), *inverse = call.inverse_deviation->data<C>();
  std::vector<C> scale(static_cast<size_t>(channels)), shift(scale.size());
  for (int64_t c = 0; c < channels; ++c) {
    scale[size_t(c)] = gamma[c] * inverse[c];
    shift[size_t(c)] = beta[c] - rest_of<C>(moments[size_t(c)]) * scale[size_t(c)];
  }
  apply<C>(pieces, {call.x, call.residual, call.y, call.relu}, mean, scale.data(), shift.data());
}

template <class C>
void normalize_fixed(const FixedBatchNormalizationCall& call) {
  const int64_t channels = call.layout.channels;
  const PerChannel<C> gamma(call.gamma, 1), beta(call.beta, 0), rest(call.mean_rest, 0);
  const C* mean = call.mean->data<C>();
  const C* variance = call.variance ? call.variance->data<C>() : nullptr;
  const C* inverse = call.inverse_deviation ? call.inverse_deviation->data<C>() : nullptr;
  std::vector<C> scale(static_cast<size_t>(channels)), shift(scale.size());
  for (int64_t c = 0; c < channels; ++c) {
    const C deviation = inverse ? inverse[c] : C(1 / std::sqrt(double(variance[c]) + call.eps));
    scale[size_t(c)] = gamma[c] * deviation;
    shift[size_t(c)] = beta[c] - rest[c] * scale[size_t(c)];
  }
  apply<C>(Pieces(call.layout), {call.x, call.residual, call.y, call.relu}, mean, scale.data(),
           shift.data());
}

// Sums of g and of g * (x - mean) over each channel.
struct GradientSums {
  double g = 0, gx = 0;
};

template <class C>
std::vector<GradientSums> sums_of(const Pieces& pieces, const BatchNormalizationGradCall& call) {
  std::vector<double> g(size_t(pieces.partials())), gx(g.size());
  const C* mean = call.mean->data<C>();
  pieces.parallel([&](int64_t begin, int64_t end) {
    const int64_t longest = pieces.longest();
    Elements<C> x(*call.x, longest), gy(*call.gy, longest), y(call.y ? *call.y : *call.x, longest);
    for (int64_t i = begin; i < end; ++i) {
      const Piece p = pieces.at(i);
      const int64_t n = p.size();
      loops<C>().sums[pieces.kind()](
          {x.read(p.first, 1, n), gy.read(p.first, 1, n), call.y ? y.read(p.first, 1, n) : nullptr,
           mean + p.channel, &g[size_t(p.partial)], &gx[size_t(p.partial)]},
          p.rows, p.columns);
    }
  });
  std::vector<GradientSums> result(static_cast<size_t>(call.layout.channels));
  const PerChannel<C> rest(call.mean_rest, 0);
  pieces.each_channel([&](int64_t c) {
    GradientSums& total = result[size_t(c)];
    pieces.of_channel(c, [&](int64_t at, int64_t) {
      total.g += g[size_t(at)];
      total.gx += gx[size_t(at)];
    });
    total.gx -= double(rest[c]) * total.g;
  });
  return result;
}

// The sums that a call has been given, or those of its batch where it needs them.
template <class C>
std::vector<GradientSums> sums_for(const Pieces& pieces, const BatchNormalizationGradCall& call) {
  if (call.given_sums == nullptr) {
    const bool needed = !call.fixed || call.g_gamma || call.g_beta;
    return needed ? sums_of<C>(pieces, call) : std::vector<GradientSums>();
  }
  const auto channels = size_t(call.layout.channels);
  const C* given = call.given_sums->data<C>();
  std::vector<GradientSums> sums(channels);
  for (size_t c = 0; c < channels; ++c) sums[c] = {double(given[c]), double(given[channels + c])};
  return sums;
}

template <class C>
void store_sums(const BatchNormalizationGradCall& call, const std::vector<GradientSums>& sums) {
  if (call.sums == nullptr) return;
  C* to = call.sums->data<C>();
  for (size_t c = 0; c < sums.size(); ++c) {
    to[c] = C(sums[c].g * call.sums_weight);
    to[sums.size() + c] = C(sums[c].gx * call.sums_weight);
  }
}

// The count of numbers behind the sums of a channel.
template <class C>
double count_of(const BatchNormalizationGradCall& call) {
  if (call.given_count == nullptr) return double(call.layout.count());
  return double(*call.given_count->data<C>()) * call.sums_weight;
}

// gx = of_g * g + of_x * (x - mean) + constant.
template <class C>
struct Coefficients {
  std::vector<C> of_g, of_x, constant;
};

template <class C>
Coefficients<C> coefficients_of(const BatchNormalizationGradCall& call,
                                const std::vector<GradientSums>& sums) {
  const size_t channels = size_t(call.layout.channels);
  const double m = count_of<C>(call);
  const PerChannel<C> gamma(call.gamma, 1), rest(call.mean_rest, 0);
  const C* inverse = call.inverse_deviation->data<C>();
  Coefficients<C> k{std::vector<C>(channels), std::vector<C>(channels), std::vector<C>(channels)};
  for (size_t c = 0; c < channels; ++c) {
    const double factor = double(gamma[int64_t(c)]) * double(inverse[c]);
    k.of_g[c] = C(factor);
    if (call.fixed) continue;
    const double of_x = -factor * double(inverse[c]) * double(inverse[c]) * (sums[c].gx / m);
    k.of_x[c] = C(of_x);
    k.constant[c] = C(-factor * (sums[c].g / m) - of_x * double(rest[int64_t(c)]));
  }
  return k;
}

template <class C>
void store_gradients(const BatchNormalizationGradCall& call,
                     const std::vector<GradientSums>& sums) {
  const C* inverse = call.inverse_deviation->data<C>();
  const auto store = [](const Array* a, size_t c, double value, bool accumulate) {
    if (a == nullptr) return;
    C& target = a->data<C>()[c];
    // Rounded before it is added, as where a pass in parts adds it later.
    target = accumulate ? target + C(value) : C(value);
  };
  for (size_t c = 0; c < sums.size(); ++c) {
    store(call.g_gamma, c, sums[c].gx * double(inverse[c]), call.accumulate_gamma);
    store(call.g_beta, c, sums[c].g, call.accumulate_beta);
  }
}

template <class C>
void store_gx(const Pieces& pieces, const BatchNormalizationGradCall& call,
              const Coefficients<C>& k) {
  const C* mean = call.mean->data<C>();
  pieces.parallel([&](int64_t begin, int64_t end) {
    const int64_t longest = pieces.longest();
    Elements<C> x(*call.x, longest), gy(*call.gy, longest), y(call.y ? *call.y : *call.x, longest),
        gx(*call.gx, longest), masked(call.g_residual ? *call.g_residual : *call.gx, longest);
    for (int64_t i = begin; i < end; ++i) {
      const Piece p = pieces.at(i);
      const int64_t n = p.size(), c = p.channel;
      loops<C>().gradient[pieces.kind()](
          {x.read(p.first, 1, n), gy.read(p.first, 1, n), call.y ? y.read(p.first, 1, n) : nullptr,
           mean + c, &k.of_g[size_t(c)], &k.of_x[size_t(c)], &k.constant[size_t(c)],
           gx.write(p.first, 1), call.g_residual ? masked.write(p.first, 1) : nullptr},
          p.rows, p.columns);
      gx.commit(p.first, 1, n);
      if (call.g_residual) masked.commit(p.first, 1, n);
    }
  });
}

template <class C>
void normalize_grad(const BatchNormalizationGradCall& call) {
  const Pieces pieces(call.layout);
  const std::vector<GradientSums> sums = sums_for<C>(pieces, call);
  store_sums<C>(call, sums);
  if (call.gx) store_gx<C>(pieces, call, coefficients_of<C>(call, sums));
  store_gradients<C>(call, sums);
}

template <class C>
void store_moments(const BatchMomentsCall& call) {
  const int64_t channels = call.layout.channels, count = call.layout.count();
  const std::vector<Moments> moments = moments_of<C>(Pieces(call.layout), *call.x, channels);
  C* to = call.moments->data<C>();
  for (int64_t c = 0; c < channels; ++c) {
    const Moments& m = moments[size_t(c)];
    to[c] = C(m.mean);
    to[channels + c] = rest_of<C>(m);
    to[2 * channels + c] = C(m.squares);
  }
  to[3 * channels] = C(count / kMomentsCountUnit);
  to[3 * channels + 1] = C(count % kMomentsCountUnit);
}

void batch_normalization(const BatchNormalizationCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { normalize<C>(call); });
}

void fixed_batch_normalization(const FixedBatchNormalizationCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { normalize_fixed<C>(call); });
}

void batch_normalization_grad(const BatchNormalizationGradCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { normalize_grad<C>(call); });
}

void batch_moments(const BatchMomentsCall& call) {
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { store_moments<C>(call); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, normalization) {
  kernels::batch_normalization.provide<&host::batch_normalization>(DeviceType::kCpu, "cpu");
  kernels::fixed_batch_normalization.provide<&host::fixed_batch_normalization>(DeviceType::kCpu,
                                                                               "cpu");
  kernels::batch_normalization_grad.provide<&host::batch_normalization_grad>(DeviceType::kCpu,
                                                                             "cpu");
  kernels::batch_moments.provide<&host::batch_moments>(DeviceType::kCpu, "cpu");
}
