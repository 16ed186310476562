// Direct convolutions with channels last: loops over the rows of results, and within them along
// the channels of a position.
#include <algorithm>
#include <memory>
#include <vector>

#include "backends/cpu/common/loops_of.h"
#include "backends/cpu/convolution/direct.h"
#include "backends/cpu/loops/direct_convolution.h"
#include "backends/cpu/runtime/parallel.h"
#include "catena/core/dtype_info.h"

namespace catena::host {
namespace {

ConvolutionColumns columns_of(const AxisSums& s, int64_t width) {
  return {s.count, s.stride, s.offset, s.taps, s.jump, width};
}

// Rows of the source in C that have, for source a of the groups, what each result channel sees side
// by side. Those of one channel a group are the source itself if it is of the type C, all others
// are copies. As many of these are kept as a result sees.
template <class C>
class SourceRows {
 public:
  explicit SourceRows(const DirectPass& p)
      : p_(p),
        item_(int64_t(catena::itemsize(p.dtype))),
        moved_(p.sources != 1 || p.results != 1),
        direct_(!moved_ && p.dtype == dtype_of<C>) {
    if (direct_) return;
    int64_t kept = 1;
    for (const AxisSums& s : p.axis[0]) kept = std::max(kept, s.range() + 1);
    keys_.assign(size_t(std::min(kept, p.in[0])), -1);
    rows_.reset(new C[keys_.size() * size_t(p.sources * size())]);
    if (moved_) wide_.reset(new C[size_t(p.in[1] * p.source_channels())]);
  }

  // Valid until a row is asked for that is further away than the first and last of a window.
  const C* row(int64_t image, int64_t row, int64_t source) {
    const int64_t key = image * p_.in[0] + row;
    const char* const from = p_.source + key * p_.in[1] * p_.source_channels() * item_;
    if (direct_) return reinterpret_cast<const C*>(from);
    const size_t slot = size_t(row) % keys_.size();
    C* const copies = rows_.get() + int64_t(slot) * p_.sources * size();
    if (keys_[slot] != key) copy(from, copies);
    keys_[slot] = key;
    return copies + source * size();
  }

 private:
  int64_t size() const { return p_.in[1] * p_.result_channels(); }

  void copy(const char* from, C* to) {
    C* const wide = moved_ ? wide_.get() : to;
    cast_of(p_.dtype, dtype_of<C>)(from, item_, reinterpret_cast<char*>(wide), sizeof(C),
                                   p_.in[1] * p_.source_channels());
    if (!moved_) return;
    const int64_t groups = p_.in[1] * p_.groups;
    for (int64_t a = 0; a < p_.sources; ++a)
      for (int64_t g = 0; g < groups; ++g) {
        const C value = wide[g * p_.sources + a];
        for (int64_t r = 0; r < p_.results; ++r) *to++ = value;
      }
  }

  const DirectPass& p_;
  int64_t item_;
  bool moved_, direct_;
  std::vector<int64_t> keys_;  // which row a slot holds
  std::unique_ptr<C[]> rows_, wide_;
};

// The source rows that the results of a row see, and where the first weights of each are.
template <class C>
struct SeenRows {
  std::vector<const C*> row;
  std::vector<int64_t> weights;

  void find(const DirectPass& p, SourceRows<C>& source, int64_t image, int64_t result_row) {
    row.clear(), weights.clear();
    const AxisSums& s = p.sums_of(0, result_row);
    for (int64_t a = 0; a < p.sources; ++a)
      for (int64_t t = 0; t < s.taps; ++t) {
        const int64_t at = s.element(result_row / s.step, t);
        if (at < 0 || at >= p.in[0]) continue;
        const int64_t tap = s.tap + t * s.tap_step;
        row.push_back(source.row(image, at, a));
        weights.push_back((a * p.kernel[0] + tap) * p.kernel[1] * p.result_channels());
      }
  }
};

// The rows of results [begin, end) of all images.
template <class C>
void sums_of_rows(const DirectSums<C>& d, int64_t begin, int64_t end) {
  const auto& loops = loops_of<DirectConvolutionTables, C>();
  const int64_t channels = d.result_channels(), size = d.out[1] * channels;
  const int64_t item = int64_t(catena::itemsize(d.dtype));
  const bool direct = d.dtype == dtype_of<C>;
  const std::unique_ptr<C[]> wide(direct ? nullptr : new C[size_t(size)]);
  const CastLoop load = cast_of(d.dtype, dtype_of<C>), store = cast_of(dtype_of<C>, d.dtype);
  SourceRows<C> source(d);
  SeenRows<C> seen;
  std::vector<const C*> weights;
  for (int64_t row = begin; row < end; ++row) {
    seen.find(d, source, row / d.out[0], row % d.out[0]);
    char* const result = d.result + row * size * item;
    C* const to = direct ? reinterpret_cast<C*>(result) : wide.get();
    if (!direct && d.accumulate) load(result, item, reinterpret_cast<char*>(to), sizeof(C), size);
    for (const AxisSums& s : d.axis[1]) {
      weights.clear();
      for (const int64_t first : seen.weights)
        weights.push_back(d.weights_of + first + s.tap * channels);
      loops.channel_sums({.columns = columns_of(s, d.in[1]),
                          .channels = channels,
                          .rows = int64_t(seen.row.size()),
                          .row = seen.row.data(),
                          .weights = weights.data(),
                          .weight_step = s.tap_step * channels,
                          .bias = d.bias,
                          .to = to + s.first * channels,
                          .to_step = s.step * channels,
                          .accumulate = d.accumulate});
    }
    if (!direct) store(reinterpret_cast<const char*>(to), sizeof(C), result, item, size);
  }
}

// The products of the rows of gy [begin, end) of all images.
template <class C>
void products_of_rows(const DirectProducts<C>& d, int64_t begin, int64_t end, C* sums) {
  const auto& loops = loops_of<DirectConvolutionTables, C>();
  const int64_t channels = d.result_channels(), size = d.out[1] * channels;
  const int64_t item = int64_t(catena::itemsize(d.dtype));
  const bool direct = d.dtype == dtype_of<C>;
  const std::unique_ptr<C[]> wide(direct ? nullptr : new C[size_t(size)]);
  const CastLoop load = cast_of(d.dtype, dtype_of<C>);
  SourceRows<C> source(d);
  SeenRows<C> seen;
  std::vector<C*> to;
  for (int64_t row = begin; row < end; ++row) {
    seen.find(d, source, row / d.out[0], row % d.out[0]);
    to.clear();
    for (const int64_t first : seen.weights) to.push_back(sums + first);
    const char* const gy = d.gy + row * size * item;
    if (!direct) load(gy, item, reinterpret_cast<char*>(wide.get()), sizeof(C), size);
    loops.channel_products({.columns = columns_of(d.axis[1][0], d.in[1]),
                            .channels = channels,
                            .rows = int64_t(seen.row.size()),
                            .row = seen.row.data(),
                            .sums = to.data(),
                            .sum_step = channels,
                            .gy = direct ? reinterpret_cast<const C*>(gy) : wide.get()});
  }
}

}  // namespace

template <class C>
void direct_sums_last(const DirectSums<C>& d) {
  parallel_ranges(d.batch * d.out[0], 1, d.threads,
                  [&](int64_t begin, int64_t end) { sums_of_rows(d, begin, end); });
}
template void direct_sums_last(const DirectSums<float>&);
template void direct_sums_last(const DirectSums<double>&);

template <class C>
void direct_products_last(const DirectProducts<C>& d) {
  const int64_t rows = d.batch * d.out[0];
  parallel_for(d.pieces, d.threads, [&](int64_t piece) {
    products_of_rows(d, rows * piece / d.pieces, rows * (piece + 1) / d.pieces,
                     d.partials + piece * d.weights());
  });
}
template void direct_products_last(const DirectProducts<float>&);
template void direct_products_last(const DirectProducts<double>&);

}  // namespace catena::host
