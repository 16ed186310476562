// Normalization of rows whose channels have several numbers, with the loops of batch normalization:
// the statistics of the channels are joined to those of their group.
#include "backends/cpu/normalization/row_normalization.h"

#include <algorithm>
#include <type_traits>

#include "backends/common/family.h"
#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/loops/half_normalization.h"
#include "backends/cpu/loops/normalization.h"

namespace catena::host {
namespace {

template <class C>
const NormalizationLoops<C>& loops() {
  return loops_of<NormalizationTables, C>();
}

// What one thread normalizes: groups of a sample, all of them if the channels are last.
struct Unit {
  int64_t sample, first_group, last_group;
};

struct Piece {
  int64_t first;  // position of the first element
  int64_t rows, columns;
  int64_t channel;  // the first channel
};

// The units of a batch, and their pieces, which are as the loops take them.
class Units {
 public:
  // Pieces stay in the caches of a core.
  explicit Units(const RowLayout& layout)
      : l_(layout),
        last_(layout.inner == 1),
        step_(last_ ? std::clamp<int64_t>(16384 / l_.channels, 16, kLongestPiece) : kLongestPiece) {
  }
  const RowLayout& layout() const { return l_; }
  int64_t of_group() const { return l_.channels / l_.groups; }  // channels
  int kind() const { return last_; }                            // index of the loops

  // Calls body(begin, end) for ranges of units.
  template <class F>
  void parallel(const F& body) const {
    const int64_t count = last_ ? l_.samples : l_.rows();
    parallel_ranges(count, 1, threads_for(2 * l_.rows() * l_.size()), body);
  }
  Unit at(int64_t i) const {
    if (last_) return {i, 0, l_.groups};
    return {i / l_.groups, i % l_.groups, i % l_.groups + 1};
  }
  int64_t row(const Unit& unit, int64_t group) const { return unit.sample * l_.groups + group; }
  // Calls f(channel, group) for all channels of a unit.
  template <class F>
  void each_channel(const Unit& unit, const F& f) const {
    for (int64_t g = unit.first_group; g < unit.last_group; ++g)
      for (int64_t c = g * of_group(); c < (g + 1) * of_group(); ++c) f(c, g);
  }
  template <class F>
  void each_piece(const Unit& unit, const F& f) const {
    const int64_t begin = unit.sample * l_.positions * l_.channels * l_.inner;
    if (last_) {
      for (int64_t p = 0; p < l_.positions; p += step_)
        f(Piece{begin + p * l_.channels, std::min(step_, l_.positions - p), l_.channels, 0});
      return;
    }
    each_channel(unit, [&](int64_t c, int64_t) {
      for (int64_t i = 0; i < l_.inner; i += step_)
        f(Piece{begin + c * l_.inner + i, 1, std::min(step_, l_.inner - i), c});
    });
  }
  // Calls f(channel) for the channels of a piece.
  template <class F>
  void each_channel_of(const Piece& piece, const F& f) const {
    if (!last_) return f(piece.channel);
    for (int64_t c = 0; c < l_.channels; ++c) f(c);
  }

 private:
  RowLayout l_;
  bool last_;
  int64_t step_;
};

// The loops over pieces of arrays, whose numbers are of the type C or of 16 bits.
template <class C>
class PieceLoops {
 public:
  using Moments = typename NormalizationLoops<C>::Moments;

  PieceLoops(Dtype dtype, int kind) : kind_(kind), item_(int64_t(catena::itemsize(dtype))) {
    if (is_narrow_float(dtype)) half_ = &narrow_loops_of<HalfNormalizationTables>(dtype);
  }

  void moments(const Piece& p, const Array& x, const Moments& to) const {
    if (half_)
      half_->moments[kind_](bytes(p, x), p.rows, p.columns, {to.mean, to.rest, to.squares});
    else
      loops<C>().moments[kind_](numbers(p, x), p.rows, p.columns, to);
  }
  void apply(const Piece& p, const Array& x, const C* mean, const C* scale, const C* shift,
             const Array& y) const {
    if constexpr (std::is_same_v<C, float>)
      if (half_)
        return half_->apply[kind_]({bytes(p, x), mean, scale, shift, bytes(p, y)}, p.rows,
                                   p.columns);
    loops<C>().apply[kind_]({numbers(p, x), nullptr, mean, scale, shift, false, numbers(p, y)},
                            p.rows, p.columns);
  }
  void sums(const Piece& p, const Array& x, const Array& gy, const C* mean, double* g,
            double* gx) const {
    if constexpr (std::is_same_v<C, float>)
      if (half_)
        return half_->sums[kind_]({bytes(p, x), bytes(p, gy), mean, g, gx}, p.rows, p.columns);
    loops<C>().sums[kind_]({numbers(p, x), numbers(p, gy), nullptr, mean, g, gx}, p.rows,
                           p.columns);
  }
  void gradient(const Piece& p, const Array& x, const Array& gy, const C* mean, const C* of_g,
                const C* of_x, const C* constant, const Array& gx) const {
    if constexpr (std::is_same_v<C, float>)
      if (half_)
        return half_->gradient[kind_](
            {bytes(p, x), bytes(p, gy), mean, of_g, of_x, constant, bytes(p, gx)}, p.rows,
            p.columns);
    loops<C>().gradient[kind_]({numbers(p, x), numbers(p, gy), nullptr, mean, of_g, of_x, constant,
                                numbers(p, gx), nullptr},
                               p.rows, p.columns);
  }

 private:
  char* bytes(const Piece& p, const Array& a) const {
    return static_cast<char*>(a.raw_data()) + p.first * item_;
  }
  C* numbers(const Piece& p, const Array& a) const { return reinterpret_cast<C*>(bytes(p, a)); }

  int kind_;
  int64_t item_;
  const HalfNormalizationLoops* half_ = nullptr;
};

template <class C>
C number(const Array* a, int64_t channel, C otherwise) {
  return a ? a->data<C>()[channel] : otherwise;
}

template <class C>
class Forward {
 public:
  Forward(const RowNormalizationCall& call, const Units& units)
      : call_(call),
        units_(units),
        loops_(call.x->dtype(), units.kind()),
        mean_(size_t(call.layout.channels)),
        scale_(mean_.size()),
        shift_(mean_.size()),
        of_channels_(mean_.size()),
        of_piece_(mean_.size()) {}

  void run(const Unit& unit) {
    find_moments(unit);
    for (int64_t g = unit.first_group; g < unit.last_group; ++g) prepare_group(unit, g);
    units_.each_piece(unit, [&](const Piece& p) {
      const auto c = size_t(p.channel);
      loops_.apply(p, *call_.x, &mean_[c], &scale_[c], &shift_[c], *call_.y);
    });
  }

 private:
  // Of channels side by side, whose numbers are as many.
  struct ChannelMoments {
    explicit ChannelMoments(size_t channels) : mean(channels), rest(channels), squares(channels) {}
    typename NormalizationLoops<C>::Moments from(int64_t channel) {
      return {&mean[size_t(channel)], &rest[size_t(channel)], &squares[size_t(channel)]};
    }
    Moments at(int64_t channel, int64_t n) const {
      const auto c = size_t(channel);
      return {double(n), mean[c], rest[c], squares[c]};
    }
    std::vector<double> mean, rest, squares;
  };

  // Numbers of a channel in a sample.
  int64_t of_channel() const { return call_.layout.size() / units_.of_group(); }

  void find_moments(const Unit& unit) {
    int64_t done = 0, channel = -1;  // numbers of the channels, from which channel on
    units_.each_piece(unit, [&](const Piece& p) {
      if (channel != p.channel) done = 0, channel = p.channel;
      const int64_t n = units_.kind() ? p.rows : p.columns;
      const int64_t channels = units_.kind() ? p.columns : 1;
      auto& to = done == 0 ? of_channels_ : of_piece_;
      loops_.moments(p, *call_.x, to.from(channel));
      if (done > 0)
        loops<C>().merge(of_channels_.from(channel), double(done), of_piece_.from(channel),
                         double(n), channels);
      done += n;
    });
  }
  void prepare_group(const Unit& unit, int64_t group) {
    const int64_t begin = group * units_.of_group(), end = begin + units_.of_group();
    Moments all;
    for (int64_t c = begin; c < end; ++c) all.merge(of_channels_.at(c, of_channel()));
    const auto s = RowStatistics<C>::of(all, call_.eps, call_.centred);
    s.write(*call_.statistics, units_.row(unit, group), call_.layout.rows(), call_.centred);
    for (int64_t c = begin; c < end; ++c) {
      const auto at = size_t(c);
      mean_[at] = s.mean;
      scale_[at] = number<C>(call_.gamma, c, 1) * s.inverse;
      shift_[at] = number<C>(call_.beta, c, 0) - s.rest * scale_[at];
    }
  }

  const RowNormalizationCall& call_;
  const Units& units_;
  PieceLoops<C> loops_;
  std::vector<C> mean_, scale_, shift_;
  ChannelMoments of_channels_, of_piece_;
};

// Where the sums of the samples are, from which the gradients of gamma and beta are made.
struct SampleSums {
  std::vector<double> g_gamma, g_beta;  // (samples, channels); empty: not wanted
};

template <class C>
class Backward {
 public:
  Backward(const RowNormalizationGradCall& call, const Units& units, SampleSums& sums)
      : call_(call),
        units_(units),
        sums_(sums),
        loops_(call.x->dtype(), units.kind()),
        mean_(size_t(call.layout.channels)),
        of_g_(mean_.size()),
        of_x_(mean_.size()),
        constant_(mean_.size()),
        g_(mean_.size()),
        gx_sum_(mean_.size()),
        g_piece_(mean_.size()),
        gx_piece_(mean_.size()) {}

  void run(const Unit& unit) {
    units_.each_channel(unit, [&](int64_t c, int64_t group) {
      mean_[size_t(c)] = statistics(unit, group).mean;
      g_[size_t(c)] = gx_sum_[size_t(c)] = 0;
    });
    find_sums(unit);
    for (int64_t g = unit.first_group; g < unit.last_group; ++g) finish_group(unit, g);
    if (call_.gx) write_gx(unit);
  }

 private:
  RowStatistics<C> statistics(const Unit& unit, int64_t group) const {
    return RowStatistics<C>::read(*call_.statistics, units_.row(unit, group), call_.layout.rows(),
                                  call_.centred);
  }
  void find_sums(const Unit& unit) {
    units_.each_piece(unit, [&](const Piece& p) {
      const auto at = size_t(p.channel);
      loops_.sums(p, *call_.x, *call_.gy, &mean_[at], &g_piece_[at], &gx_piece_[at]);
      units_.each_channel_of(p, [&](int64_t channel) {
        const auto c = size_t(channel);
        g_[c] += g_piece_[c];
        gx_sum_[c] += gx_piece_[c];
      });
    });
  }
  void finish_group(const Unit& unit, int64_t group) {
    const int64_t begin = group * units_.of_group(), end = begin + units_.of_group();
    const RowStatistics<C> s = statistics(unit, group);
    double h = 0, hx = 0;
    for (int64_t c = begin; c < end; ++c) {
      const auto at = size_t(c);
      const double gamma = double(number<C>(call_.gamma, c, 1));
      h += gamma * g_[at];
      hx += gamma * gx_sum_[at];
      const auto of_sample = size_t(unit.sample * call_.layout.channels + c);
      if (!sums_.g_gamma.empty())
        sums_.g_gamma[of_sample] = (gx_sum_[at] - double(s.rest) * g_[at]) * double(s.inverse);
      if (!sums_.g_beta.empty()) sums_.g_beta[of_sample] = g_[at];
    }
    const RowGradient<C> k(s, h, hx, call_.layout.size(), call_.centred);
    for (int64_t c = begin; c < end; ++c) {
      const auto at = size_t(c);
      of_g_[at] = C(k.of_h * double(number<C>(call_.gamma, c, 1)));
      of_x_[at] = C(k.of_x);
      constant_[at] = C(k.constant);
    }
  }
  void write_gx(const Unit& unit) {
    units_.each_piece(unit, [&](const Piece& p) {
      const auto c = size_t(p.channel);
      loops_.gradient(p, *call_.x, *call_.gy, &mean_[c], &of_g_[c], &of_x_[c], &constant_[c],
                      *call_.gx);
    });
  }

  const RowNormalizationGradCall& call_;
  const Units& units_;
  SampleSums& sums_;
  PieceLoops<C> loops_;
  std::vector<C> mean_, of_g_, of_x_, constant_;
  std::vector<double> g_, gx_sum_, g_piece_, gx_piece_;
};

template <class C>
void normalize(const RowNormalizationCall& call) {
  const Units units(call.layout);
  units.parallel([&](int64_t begin, int64_t end) {
    Forward<C> forward(call, units);
    for (int64_t i = begin; i < end; ++i) forward.run(units.at(i));
  });
}

template <class C>
void normalize_grad(const RowNormalizationGradCall& call) {
  const Units units(call.layout);
  const int64_t samples = call.layout.samples;
  const size_t count = size_t(samples * call.layout.channels);
  SampleSums sums{std::vector<double>(call.g_gamma ? count : 0),
                  std::vector<double>(call.g_beta ? count : 0)};
  units.parallel([&](int64_t begin, int64_t end) {
    Backward<C> backward(call, units, sums);
    for (int64_t i = begin; i < end; ++i) backward.run(units.at(i));
  });
  store_parameter<C>(sums.g_gamma, samples, call.g_gamma, call.accumulate_gamma);
  store_parameter<C>(sums.g_beta, samples, call.g_beta, call.accumulate_beta);
}

// Whether each number of a row has its own gamma, and rows begin at the same channel.
bool are_wide(const RowLayout& l) { return l.groups == 1 && l.positions == 1 && l.inner == 1; }

// A parameter of 16 bits in float32; undefined for others.
Array widened(const Array* parameter) {
  const bool is_narrow = parameter != nullptr && is_narrow_float(parameter->dtype());
  return is_narrow ? parameter->astype(Dtype::kFloat32) : Array();
}

void row_normalization(const RowNormalizationCall& given) {
  RowNormalizationCall call = given;
  const Array gamma = widened(given.gamma), beta = widened(given.beta);
  if (gamma.defined()) call.gamma = &gamma;
  if (beta.defined()) call.beta = &beta;
  if (are_wide(call.layout)) return normalize_wide_rows(call);
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { normalize<C>(call); });
}
void row_normalization_grad(const RowNormalizationGradCall& given) {
  RowNormalizationGradCall call = given;
  const Array gamma = widened(given.gamma);
  if (gamma.defined()) call.gamma = &gamma;
  if (are_wide(call.layout)) return normalize_wide_rows_grad(call);
  visit_compute(call.x->dtype(), [&]<class C>(TypeTag<C>) { normalize_grad<C>(call); });
}

}  // namespace
}  // namespace catena::host

CATENA_FAMILY(cpu, row_normalization) {
  kernels::row_normalization.provide<&host::row_normalization>(DeviceType::kCpu, "cpu");
  kernels::row_normalization_grad.provide<&host::row_normalization_grad>(DeviceType::kCpu, "cpu");
}
