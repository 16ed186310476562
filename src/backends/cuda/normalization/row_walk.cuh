// Walk of the kernels of row normalization over rows. A warp, or several, take a row: they keep as
// much of it in registers as fits, so that memory is read once, and read the rest again.
#pragma once

#include "backends/cuda/normalization/partials.cuh"
#include "backends/cuda/normalization/row_normalization.h"

namespace catena::gpu {
namespace {

constexpr int kRowThreads = 256;    // at most, of a row
constexpr int kBlockThreads = 128;  // at least, of a block

// A thread's packs of a row: every `members`-th one. A row is one or several segments of adjacent
// elements, `segment` each, at a distance of channels * inner.
template <int N>
class Cursor {
 public:
  __device__ Cursor(const RowNormalizationArgs& args, int64_t row, int lane, int members)
      : size_(args.channels / args.groups * args.positions * args.inner),
        segment_(args.channels / args.groups * args.inner),
        inner_(args.inner),
        first_channel_(row % args.groups * (args.channels / args.groups)),
        place_(int64_t(lane) * N) {
    const int64_t step = int64_t(members) * N, distance = args.channels * args.inner;
    const int64_t base =
        row / args.groups * args.positions * distance + first_channel_ * args.inner;
    step_ = step;
    column_ = place_ % segment_;
    at_ = base + place_ / segment_ * distance + column_;
    step_column_ = step % segment_;
    step_at_ = step / segment_ * distance + step_column_;
    to_next_ = distance - segment_;
  }
  __device__ int64_t size() const { return size_; }
  // Whether there is the pack, or that so many steps ahead.
  __device__ bool more(int ahead = 0) const { return place_ + ahead * step_ < size_; }
  // The position of the pack's first element in the batch, in packs.
  __device__ int64_t pack() const { return at_ / N; }
  // That of the pack's first element.
  __device__ int64_t channel() const {
    if (inner_ == 1) return first_channel_ + column_;
    const uint64_t both = uint64_t(column_) | uint64_t(inner_);
    return first_channel_ +
           (both >> 32 ? column_ / inner_ : int64_t(uint32_t(column_) / uint32_t(inner_)));
  }
  __device__ bool has_channel_for_each() const { return inner_ == 1; }
  __device__ void next() {
    place_ += step_;
    at_ += step_at_;
    column_ += step_column_;
    if (column_ < segment_) return;
    column_ -= segment_;
    at_ += to_next_;
  }

 private:
  int64_t size_, segment_, inner_, first_channel_, place_, step_, column_, at_, step_column_,
      step_at_, to_next_;
};

// gamma or beta of a channel.
template <class T>
__device__ Compute<T> parameter_at(const RowParameter& parameter, int64_t channel,
                                   Compute<T> otherwise) {
  if (parameter.data == nullptr) return otherwise;
  return parameter.narrow ? widen(static_cast<const T*>(parameter.data)[channel])
                          : static_cast<const Compute<T>*>(parameter.data)[channel];
}

// Sets the gradient of gamma or beta, if it is wanted: v is added to what is there, or replaces it.
template <class T>
__device__ void set_gradient(const RowParameterGradient& gradient, int64_t channel, Compute<T> v) {
  if (gradient.data == nullptr) return;
  if (gradient.narrow) {
    T& target = static_cast<T*>(gradient.data)[channel];
    target = Narrow<T>::from(gradient.accumulate ? widen(target) + v : v);
  } else {
    Compute<T>& target = static_cast<Compute<T>*>(gradient.data)[channel];
    target = gradient.accumulate ? target + v : v;
  }
}

// N numbers of adjacent channels.
template <class T, int N>
__device__ void load_parameters(const RowParameter& parameter, int64_t channel,
                                Compute<T> (&v)[N]) {
  using C = Compute<T>;
  if (parameter.narrow) {
    const auto pack =
        *reinterpret_cast<const Pack<T, N>*>(static_cast<const T*>(parameter.data) + channel);
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = widen(pack.v[k]);
    return;
  }
  constexpr int M = N < kPack<C> ? 1 : kPack<C>;
#pragma unroll
  for (int k = 0; k < N; k += M) {
    const auto pack =
        *reinterpret_cast<const Pack<C, M>*>(static_cast<const C*>(parameter.data) + channel + k);
#pragma unroll
    for (int i = 0; i < M; ++i) v[k + i] = pack.v[i];
  }
}

// gamma or beta for the elements of a pack.
template <class T, int N>
struct Parameters {
  using C = Compute<T>;
  C v[N];
  __device__ Parameters(const RowParameter& parameter, const Cursor<N>& cursor, C otherwise) {
    if (parameter.data == nullptr) {
#pragma unroll
      for (int k = 0; k < N; ++k) v[k] = otherwise;
      return;
    }
    if (cursor.has_channel_for_each()) {
      load_parameters<T>(parameter, cursor.channel(), v);
      return;
    }
    const C one = parameter_at<T>(parameter, cursor.channel(), otherwise);
#pragma unroll
    for (int k = 0; k < N; ++k) v[k] = one;
  }
};

// The threads of a row.
struct Members {
  int count, lane, group;
  int64_t row;
  bool active;
  __device__ Members(const RowNormalizationArgs& args, int members)
      : count(members),
        lane(int(threadIdx.x) % members),
        group(int(threadIdx.x) / members),
        row(int64_t(blockIdx.x) * (int(blockDim.x) / members) + group),
        active(row < args.samples * args.groups) {}
};
constexpr int kMostGroups = kRowThreads / 32;

template <class C>
struct RowStatistics {
  C inverse, mean, rest;
  __device__ void write(const RowNormalizationArgs& args, int64_t row) const {
    const int64_t rows = args.samples * args.groups;
    C* to = static_cast<C*>(args.statistics);
    to[row] = inverse;
    if (!args.centred) return;
    to[rows + row] = mean;
    to[2 * rows + row] = rest;
  }
  __device__ void read(const RowNormalizationArgs& args, int64_t row) {
    const int64_t rows = args.samples * args.groups;
    const C* from = static_cast<const C*>(args.statistics);
    inverse = from[row];
    mean = args.centred ? from[rows + row] : C(0);
    rest = args.centred ? from[2 * rows + row] : C(0);
  }
};

// What the gradient of x reads.
template <class T, int N>
struct GradientPacks {
  Pack<T, N> x, gy;
};

// The sums of h = gamma * gy and of h * (x - mean).
template <class C>
struct RowSums {
  static constexpr int kNumbers = 2;
  C n, v[kNumbers];
  __device__ void merge(const RowSums& other) {
    v[0] += other.v[0];
    v[1] += other.v[1];
  }
};

// gx = inverse * h + of_x * (x - mean) + constant, over m numbers. In this order no intermediate
// result overflows unless the final one does.
template <class C>
struct RowGradient {
  C of_x, constant;
  __device__ RowGradient(const RowStatistics<C>& s, const RowSums<C>& sums, C m, bool centred)
      : RowGradient(s, sums.v[0] / m, s.inverse * (fused(-s.rest, sums.v[0], sums.v[1]) / m),
                    centred) {}
  // From the means of h and of h * xhat.
  __device__ RowGradient(const RowStatistics<C>& s, C mean_h, C mean_h_xhat, bool centred)
      : of_x(-mean_h_xhat * s.inverse * s.inverse),
        constant(fused(-of_x, s.rest, centred ? -(s.inverse * mean_h) : C(0))) {}
};

// The first packs of a thread, which it keeps in registers. All are loaded before one is used, so
// that enough loads are in flight. load(i) is what pack i of the batch has.
template <int kKept, class Packs, int N, class Load>
__device__ void load_kept(Packs (&kept)[kKept], Cursor<N> cursor, bool active, Load load) {
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    kept[i] = {};
    if (active && cursor.more()) kept[i] = load(cursor.pack());
    cursor.next();
  }
}

// Calls visit(packs, cursor) for all packs of a thread; those that are not kept are loaded again,
// as many at a time.
template <int kKept, class Packs, int N, class Load, class F>
__device__ void each_pack(const Packs (&kept)[kKept], Cursor<N> cursor, bool active, Load load,
                          F visit) {
  if (!active) return;
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    if (cursor.more()) visit(kept[i], cursor);
    cursor.next();
  }
  while (cursor.more(kKept - 1)) {
    Packs packs[kKept];
    load_kept(packs, cursor, true, load);
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
      visit(packs[i], cursor);
      cursor.next();
    }
  }
  for (; cursor.more(); cursor.next()) visit(load(cursor.pack()), cursor);
}

// Whether packs of N elements fit: each has one channel, or a channel for each element.
bool fits(const RowNormalizationArgs& args, int pack) {
  const int64_t segment = args.channels / args.groups * args.inner;
  return args.aligned && segment % pack == 0 && (args.inner == 1 || args.inner % pack == 0);
}

// Threads for a row of so many packs, of which each keeps `kept`.
int members_for(int64_t packs, int kept) {
  return 32 * power_of_two_from((packs - 1) / (32 * kept) + 1, kRowThreads / 32);
}

// The launch of a kernel over all rows, with packs of `pack` elements.
struct RowGrid {
  int pack, members, block;
  unsigned blocks;

  RowGrid(const RowNormalizationArgs& args, int widest, int kept)
      : pack(fits(args, widest) ? widest : 1) {
    const int64_t size = args.channels / args.groups * args.positions * args.inner;
    members = members_for(size / pack, kept);
    block = members > kBlockThreads ? members : kBlockThreads;
    const int64_t of_block = block / members, rows = args.samples * args.groups;
    blocks = unsigned((rows + of_block - 1) / of_block);
  }
};

}  // namespace
}  // namespace catena::gpu
