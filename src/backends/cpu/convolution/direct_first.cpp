// Direct convolutions with channels first: sums over copies of the source's rows that have zeros
// where a window leaves the image, so that all loops run along whole rows.
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

// Copies of this size are in the cache of a core.
constexpr int64_t kBandBytes = int64_t{48} << 10;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The results of a remainder in a band of the axis: q of [begin, end).
struct Part {
  int64_t begin, end;
};
Part part_of(const AxisSums& s, int64_t begin, int64_t end) {
  const auto below = [&](int64_t position) {
    return position <= s.first ? 0 : std::min(s.count, ceil_div(position - s.first, s.step));
  };
  return {below(begin), below(end)};
}

// Source elements [first, first + count) of an axis.
struct Extent {
  int64_t first = 0, count = 0;
};
// What the results of a band of an axis see.
Extent seen_of(const std::vector<AxisSums>& sums, int64_t begin, int64_t end) {
  Extent seen;
  for (const AxisSums& s : sums) {
    const Part part = part_of(s, begin, end);
    if (part.begin == part.end || s.taps == 0) continue;
    const int64_t first = s.element(part.begin, 0), last = s.element(part.end - 1, s.taps - 1);
    const int64_t before = seen.count == 0 ? first : std::min(seen.first, first);
    const int64_t behind = std::max(seen.first + seen.count, last + 1);
    seen = {before, (seen.count == 0 ? last + 1 : behind) - before};
  }
  return seen;
}

// Rows of all sources of a group for a band of result rows, in C, with zeros outside of the image.
// The columns are in the order of their remainders by the stride of the results, each of which
// is a run of columns() elements, so that what neighbouring results see is side by side.
template <class C>
class Band {
 public:
  explicit Band(const DirectPass& p)
      : p_(p),
        item_(int64_t(catena::itemsize(p.dtype))),
        stride_(p.axis[1][0].stride),
        seen_(seen_of(p.axis[1], 0, p.out[1])),
        columns_(ceil_div(seen_.count, stride_)),
        wide_(new C[size_t(p.in[1])]) {}

  // Rows of results that a band has, so that it stays in a cache but repeats few source rows.
  int64_t rows_of_results() const {
    const AxisSums& s = p_.axis[0][0];
    int64_t range = 1;
    for (const AxisSums& other : p_.axis[0]) range = std::max(range, other.range());
    const int64_t fitting = kBandBytes / std::max<int64_t>(p_.sources * pitch() * sizeof(C), 1);
    return std::max(fitting - range, 2 * range) / s.stride * s.step + s.step;
  }

  void fill(int64_t image, int64_t group, int64_t begin, int64_t end) {
    rows_ = seen_of(p_.axis[0], begin, end);
    const int64_t size = p_.sources * rows_.count * pitch();
    if (size > size_) {
      memory_.reset(new C[size_t(size + kBehind)]);
      std::fill_n(memory_.get() + size, kBehind, C(0));
      size_ = size;
    }
    C* to = memory_.get();
    for (int64_t a = 0; a < p_.sources; ++a) {
      const int64_t plane = (image * p_.groups + group) * p_.sources + a;
      for (int64_t r = rows_.first; r < rows_.first + rows_.count; ++r, to += pitch())
        fill_row(plane * p_.in[0] + r, r >= 0 && r < p_.in[0], to);
    }
  }

  // Elements from a row to the next.
  int64_t pitch() const { return stride_ * columns_; }
  // What the result in row q of `rows` and column 0 of `columns` sees of a source at a tap.
  const C* at(int64_t source, const AxisSums& rows, int64_t q, int64_t i, const AxisSums& columns,
              int64_t j) const {
    const int64_t row = source * rows_.count + rows.element(q, i) - rows_.first;
    const int64_t column = columns.element(0, j) - seen_.first;
    return memory_.get() + row * pitch() + column % stride_ * columns_ + column / stride_;
  }

 private:
  // Readable elements behind the last row, as vectors need them.
  static constexpr int64_t kBehind = 16;

  void fill_row(int64_t row, bool is_there, C* to) {
    if (!is_there) {
      std::fill_n(to, pitch(), C(0));
      return;
    }
    const char* from = p_.source + row * p_.in[1] * item_;
    Dtype dtype = p_.dtype;
    if (stride_ > 1 && dtype != dtype_of<C>) {
      cast(from, dtype, 1, wide_.get(), p_.in[1]);
      from = reinterpret_cast<const char*>(wide_.get()), dtype = dtype_of<C>;
    }
    const int64_t item = int64_t(catena::itemsize(dtype));
    for (int64_t remainder = 0; remainder < stride_; ++remainder, to += columns_) {
      const int64_t first = seen_.first + remainder, room = p_.in[1] - 1 - first;
      const int64_t begin = first >= 0 ? 0 : std::min(ceil_div(-first, stride_), columns_);
      const int64_t end = room < 0 ? 0 : std::min(room / stride_ + 1, columns_);
      std::fill_n(to, begin, C(0));
      if (begin < end)
        cast(from + (first + begin * stride_) * item, dtype, stride_, to + begin, end - begin);
      std::fill(to + std::max(begin, end), to + columns_, C(0));
    }
  }
  static void cast(const char* from, Dtype dtype, int64_t step, C* to, int64_t n) {
    cast_of(dtype, dtype_of<C>)(from, step * int64_t(catena::itemsize(dtype)),
                                reinterpret_cast<char*>(to), sizeof(C), n);
  }

  const DirectPass& p_;
  int64_t item_, stride_;
  Extent seen_;  // columns
  int64_t columns_;
  Extent rows_;
  std::unique_ptr<C[]> wide_, memory_;
  int64_t size_ = 0;
};

// The sums of a band of result rows for all results of a group.
template <class C>
class BandOfSums {
 public:
  explicit BandOfSums(const DirectSums<C>& d)
      : d_(d),
        source_(d),
        item_(int64_t(catena::itemsize(d.dtype))),
        direct_(d.dtype == dtype_of<C>),
        rows_(std::min(source_.rows_of_results(), d.out[0])) {
    if (!direct_) wide_.reset(new C[size_t(rows_ * d.out[1])]);
    if (d.axis[1][0].step > 1) apart_.reset(new C[size_t(rows_ * d.out[1])]);
  }

  int64_t rows() const { return rows_; }
  void run(int64_t image, int64_t group, int64_t begin) {
    const int64_t end = std::min(begin + rows_, d_.out[0]), size = (end - begin) * d_.out[1];
    source_.fill(image, group, begin, end);
    for (int64_t r = 0; r < d_.results; ++r) {
      const int64_t channel = group * d_.results + r;
      const int64_t plane = image * d_.result_channels() + channel;
      char* const result = d_.result + (plane * d_.out[0] + begin) * d_.out[1] * item_;
      C* const to = direct_ ? reinterpret_cast<C*>(result) : wide_.get();
      if (!direct_ && d_.accumulate)
        cast_of(d_.dtype, dtype_of<C>)(result, item_, reinterpret_cast<char*>(to), sizeof(C), size);
      for (const AxisSums& rows : d_.axis[0])
        for (const AxisSums& columns : d_.axis[1])
          sums_of(channel, rows, columns, part_of(rows, begin, end), begin, to);
      if (!direct_)
        cast_of(dtype_of<C>, d_.dtype)(reinterpret_cast<const char*>(to), sizeof(C), result, item_,
                                       size);
    }
  }

 private:
  // Of one remainder of rows and of columns. `to` has the band's rows from `begin` on.
  void sums_of(int64_t channel, const AxisSums& rows, const AxisSums& columns, const Part& part,
               int64_t begin, C* to) {
    if (part.begin == part.end) return;
    list_taps(channel, rows, columns, part.begin);
    to += (rows.first + part.begin * rows.step - begin) * d_.out[1] + columns.first;
    const int64_t pitch = rows.step * d_.out[1];
    const bool adjacent = columns.step == 1;
    PlaneSums<C> s{};
    s.rows = part.end - part.begin, s.columns = columns.count;
    s.taps = int64_t(from_.size()), s.from = from_.data(), s.weights = weights_.data();
    s.from_pitch = rows.stride * source_.pitch();
    s.bias = d_.bias ? d_.bias[channel] : C(0);
    s.to = adjacent ? to : apart_.get(), s.to_pitch = adjacent ? pitch : columns.count;
    s.accumulate = adjacent && d_.accumulate;
    loops_of<DirectConvolutionTables, C>().plane_sums(s);
    if (adjacent) return;
    for (int64_t r = 0; r < s.rows; ++r)
      for (int64_t x = 0; x < columns.count; ++x) {
        C& sum = to[r * pitch + x * columns.step];
        const C value = apart_[r * columns.count + x];
        sum = d_.accumulate ? sum + value : value;
      }
  }

  void list_taps(int64_t channel, const AxisSums& rows, const AxisSums& columns, int64_t q) {
    from_.clear(), weights_.clear();
    for (int64_t a = 0; a < d_.sources; ++a)
      for (int64_t i = 0; i < rows.taps; ++i)
        for (int64_t j = 0; j < columns.taps; ++j) {
          const int64_t tap = (a * d_.kernel[0] + rows.tap + i * rows.tap_step) * d_.kernel[1] +
                              columns.tap + j * columns.tap_step;
          from_.push_back(source_.at(a, rows, q, i, columns, j));
          weights_.push_back(d_.weights_of[tap * d_.result_channels() + channel]);
        }
  }

  const DirectSums<C>& d_;
  Band<C> source_;
  int64_t item_;
  bool direct_;
  int64_t rows_;
  std::unique_ptr<C[]> wide_, apart_;
  std::vector<const C*> from_;
  std::vector<C> weights_;
};

// The products of a group, summed over images.
template <class C>
class GroupOfProducts {
 public:
  explicit GroupOfProducts(const DirectProducts<C>& d)
      : d_(d),
        source_(d),
        item_(int64_t(catena::itemsize(d.dtype))),
        direct_(d.dtype == dtype_of<C>),
        rows_(std::min(source_.rows_of_results(), d.out[0])),
        taps_(d.sources * d.kernel[0] * d.kernel[1]),
        lanes_(loops_of<DirectConvolutionTables, C>().lanes),
        sums_(size_t(d.results * taps_ * lanes_)) {
    if (!direct_) wide_.reset(new C[size_t(rows_ * d.out[1])]);
  }

  void start(int64_t group) {
    group_ = group;
    std::fill(sums_.begin(), sums_.end(), C(0));
  }
  void add(int64_t image) {
    for (int64_t begin = 0; begin < d_.out[0]; begin += rows_)
      add_band(image, begin, std::min(begin + rows_, d_.out[0]));
  }
  // Adds the sums to those of the group's result channels.
  void finish(C* to) const {
    for (int64_t r = 0; r < d_.results; ++r)
      for (int64_t tap = 0; tap < taps_; ++tap) {
        const C* const lanes = sums_.data() + (r * taps_ + tap) * lanes_;
        C sum = 0;
        for (int64_t l = 0; l < lanes_; ++l) sum += lanes[l];
        to[tap * d_.result_channels() + group_ * d_.results + r] += sum;
      }
  }

 private:
  void add_band(int64_t image, int64_t begin, int64_t end) {
    const AxisSums &rows = d_.axis[0][0], &columns = d_.axis[1][0];
    source_.fill(image, group_, begin, end);
    from_.clear();
    for (int64_t a = 0; a < d_.sources; ++a)
      for (int64_t i = 0; i < rows.taps; ++i)
        for (int64_t j = 0; j < columns.taps; ++j)
          from_.push_back(source_.at(a, rows, begin, i, columns, j));
    for (int64_t r = 0; r < d_.results; ++r) {
      const int64_t plane = (image * d_.groups + group_) * d_.results + r;
      const char* const gy = d_.gy + (plane * d_.out[0] + begin) * d_.out[1] * item_;
      if (!direct_)
        cast_of(d_.dtype, dtype_of<C>)(gy, item_, reinterpret_cast<char*>(wide_.get()), sizeof(C),
                                       (end - begin) * d_.out[1]);
      loops_of<DirectConvolutionTables, C>().plane_products(
          {.rows = end - begin,
           .columns = d_.out[1],
           .taps = taps_,
           .from = from_.data(),
           .from_pitch = rows.stride * source_.pitch(),
           .gy = direct_ ? reinterpret_cast<const C*>(gy) : wide_.get(),
           .gy_pitch = d_.out[1],
           .sums = sums_.data() + r * taps_ * lanes_});
    }
  }

  const DirectProducts<C>& d_;
  int64_t group_ = 0;
  Band<C> source_;
  int64_t item_;
  bool direct_;
  int64_t rows_, taps_, lanes_;
  std::vector<C> sums_;
  std::unique_ptr<C[]> wide_;
  std::vector<const C*> from_;
};

}  // namespace

template <class C>
void direct_sums_first(const DirectSums<C>& d) {
  const int64_t rows = BandOfSums<C>(d).rows(), bands = ceil_div(d.out[0], rows);
  parallel_ranges(d.batch * d.groups * bands, 1, d.threads, [&](int64_t begin, int64_t end) {
    BandOfSums<C> sums(d);
    for (int64_t i = begin; i < end; ++i)
      sums.run(i / bands / d.groups, i / bands % d.groups, i % bands * rows);
  });
}
template void direct_sums_first(const DirectSums<float>&);
template void direct_sums_first(const DirectSums<double>&);

template <class C>
void direct_products_first(const DirectProducts<C>& d) {
  parallel_ranges(d.pieces * d.groups, 1, d.threads, [&](int64_t begin, int64_t end) {
    GroupOfProducts<C> products(d);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t piece = i / d.groups;
      products.start(i % d.groups);
      for (int64_t n = d.batch * piece / d.pieces; n < d.batch * (piece + 1) / d.pieces; ++n)
        products.add(n);
      products.finish(d.partials + piece * d.weights());
    }
  });
}
template void direct_products_first(const DirectProducts<float>&);
template void direct_products_first(const DirectProducts<double>&);

}  // namespace catena::host
