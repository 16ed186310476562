// Loops of max pooling: over channels that are side by side, over rows of positions, and over
// planes of gradients. See loop.h about linkage.
#include "backends/cpu/loops/pooling.h"

#include "backends/cpu/loops/convert.h"
#include "backends/cpu/loops/loop.h"

namespace catena::host {
namespace {

// Elements whose largest value and place are kept in registers or in the first cache.
constexpr int64_t kBlock = 64;

// What is computed in, and integers as wide, so that both fit the same vectors.
template <class T>
struct Wide {
  using Value = float;
  using Place = int32_t;
};
template <>
struct Wide<double> {
  using Value = double;
  using Place = int64_t;
};

template <PlaceKind kKind>
struct PlaceOf;
template <>
struct PlaceOf<kPlaceBytes> {
  using Type = uint8_t;
};
template <>
struct PlaceOf<kPlaceInts> {
  using Type = int32_t;
};
template <>
struct PlaceOf<kNoPlaces> {
  using Type = uint8_t;
};

// Whether v takes the place of the largest so far: NaN is above all, and the first one stays.
template <class C>
CATENA_FN bool is_larger(C v, C best) {
  return !(v <= best) & (best == best);
}

template <class T>
struct Block {
  using C = typename Wide<T>::Value;
  using P = typename Wide<T>::Place;
  alignas(64) C best[kBlock];
  alignas(64) P place[kBlock];

  template <PlaceKind kKind>
  CATENA_FN void start(const T* x, int64_t tap, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      best[i] = widen(x[i]);
      if constexpr (kKind != kNoPlaces) place[i] = P(tap);
    }
  }
  template <PlaceKind kKind>
  CATENA_FN void see(const T* x, int64_t tap, int64_t n) {
    const P at = P(tap);
    for (int64_t i = 0; i < n; ++i) {
      const C v = widen(x[i]);
      const bool larger = is_larger(v, best[i]);
      best[i] = larger ? v : best[i];
      if constexpr (kKind != kNoPlaces) place[i] = larger ? at : place[i];
    }
  }
  template <PlaceKind kKind>
  CATENA_FN void store(T* y, void* places, int64_t from, int64_t n) const {
    using Kept = typename PlaceOf<kKind>::Type;
    for (int64_t i = 0; i < n; ++i) y[i] = Narrow<T>::from(best[i]);
    if constexpr (kKind != kNoPlaces) {
      Kept* const to = static_cast<Kept*>(places) + from;
      for (int64_t i = 0; i < n; ++i) to[i] = Kept(place[i]);
    }
  }
};

// Channels [from, from + n) of a position.
template <PlaceKind kKind, class T>
CATENA_FN void max_of_channels(const PoolingLoops::Position& p, int64_t from, int64_t n) {
  const T* const x = static_cast<const T*>(p.x) + from;
  Block<T> block;
  block.template start<kKind>(x, p.tap, n);
  for (int64_t d = 0; d < p.count[0]; ++d)
    for (int64_t i = 0; i < p.count[1]; ++i)
      for (int64_t j = 0; j < p.count[2]; ++j) {
        if ((d | i | j) == 0) continue;
        block.template see<kKind>(x + d * p.step[0] + i * p.step[1] + j * p.step[2],
                                  p.tap + d * p.tap_step[0] + i * p.tap_step[1] + j * p.tap_step[2],
                                  n);
      }
  block.template store<kKind>(static_cast<T*>(p.y) + from, p.places, from, n);
}
template <PlaceKind kKind, class T>
void max_of_position(const PoolingLoops::Position& p) {
  int64_t from = 0;
  for (; from + kBlock <= p.channels; from += kBlock) max_of_channels<kKind, T>(p, from, kBlock);
  if (from < p.channels) max_of_channels<kKind, T>(p, from, p.channels - from);
}

// Element j of the windows of the block's positions [from, from + n): those that see the image
// there. Positions that have seen nothing yet have the place -1.
template <PlaceKind kKind, int kStride, class T>
CATENA_FN void see_column(Block<T>& block, const PoolingLoops::Row& r, const T* x, int64_t from,
                          int64_t n, int64_t j, int64_t tap) {
  using P = typename Wide<T>::Place;
  const int64_t stride = kStride ? kStride : r.stride, shift = j - r.pad;
  int64_t begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  int64_t end = shift >= r.width ? 0 : (r.width - 1 - shift) / stride + 1;
  begin = begin > from ? begin - from : 0;
  end = end - from < n ? end - from : n;
  const T* const first = x + from * stride + shift;
  const P at = P(tap);
  for (int64_t o = begin; o < end; ++o) {
    const auto v = widen(first[o * stride]);
    const bool larger = is_larger(v, block.best[o]) | (block.place[o] < 0);
    block.best[o] = larger ? v : block.best[o];
    block.place[o] = larger ? at : block.place[o];
  }
}
template <PlaceKind kKind, int kStride, class T>
CATENA_FN void max_of_block(const PoolingLoops::Row& r, int64_t from, int64_t n) {
  Block<T> block;
  for (int64_t o = 0; o < n; ++o) block.best[o] = 0, block.place[o] = -1;
  for (int64_t d = 0; d < r.count[0]; ++d)
    for (int64_t i = 0; i < r.count[1]; ++i)
      for (int64_t j = 0; j < r.kernel; ++j)
        see_column<kKind, kStride>(block, r,
                                   static_cast<const T*>(r.x) + d * r.step[0] + i * r.step[1], from,
                                   n, j, r.tap + d * r.tap_step[0] + i * r.tap_step[1] + j);
  block.template store<kKind>(static_cast<T*>(r.y) + from, r.places, from, n);
}
template <PlaceKind kKind, int kStride, class T>
CATENA_FN void max_of_blocks(const PoolingLoops::Row& r) {
  for (int64_t from = 0; from < r.positions; from += kBlock)
    max_of_block<kKind, kStride, T>(r, from,
                                    r.positions - from < kBlock ? r.positions - from : kBlock);
}
template <PlaceKind kKind, class T>
void max_of_row(const PoolingLoops::Row& r) {
  if (r.stride == 1) return max_of_blocks<kKind, 1, T>(r);
  if (r.stride == 2) return max_of_blocks<kKind, 2, T>(r);
  max_of_blocks<kKind, 0, T>(r);
}

template <PlaceKind kKind, class T>
CATENA_FN void grad_of_channels(const PoolingLoops::Element& e, int64_t from, int64_t n) {
  using C = typename Wide<T>::Value;
  using Kept = typename PlaceOf<kKind>::Type;
  alignas(64) C sums[kBlock];
  for (int64_t i = 0; i < n; ++i) sums[i] = 0;
  for (int64_t d = 0; d < e.count[0]; ++d)
    for (int64_t h = 0; h < e.count[1]; ++h)
      for (int64_t w = 0; w < e.count[2]; ++w) {
        const int64_t at = from + d * e.step[0] + h * e.step[1] + w * e.step[2];
        const auto tap =
            Kept(e.tap - d * e.tap_step[0] - h * e.tap_step[1] - w * e.tap_step[2]);
        const T* const gy = static_cast<const T*>(e.gy) + at;
        const Kept* const places = static_cast<const Kept*>(e.places) + at;
        for (int64_t i = 0; i < n; ++i) sums[i] += places[i] == tap ? C(widen(gy[i])) : C(0);
      }
  T* const gx = static_cast<T*>(e.gx) + from;
  if (e.accumulate)
    for (int64_t i = 0; i < n; ++i) gx[i] = Narrow<T>::from(C(widen(gx[i])) + sums[i]);
  else
    for (int64_t i = 0; i < n; ++i) gx[i] = Narrow<T>::from(sums[i]);
}
template <PlaceKind kKind, class T>
void grad_of_element(const PoolingLoops::Element& e) {
  int64_t from = 0;
  for (; from + kBlock <= e.channels; from += kBlock) grad_of_channels<kKind, T>(e, from, kBlock);
  if (from < e.channels) grad_of_channels<kKind, T>(e, from, e.channels - from);
}

template <PlaceKind kKind, class T>
void grad_of_plane(const PoolingLoops::Plane& p) {
  using C = typename Wide<T>::Value;
  using Kept = typename PlaceOf<kKind>::Type;
  C* const sums = static_cast<C*>(p.sums);
  for (int64_t i = 0; i < p.size; ++i) sums[i] = 0;
  const T* gy = static_cast<const T*>(p.gy);
  const Kept* places = static_cast<const Kept*>(p.places);
  for (int64_t d = 0; d < p.out[0]; ++d)
    for (int64_t h = 0; h < p.out[1]; ++h) {
      const int64_t window = p.first + d * p.stride[0] + h * p.stride[1];
      for (int64_t w = 0; w < p.out[2]; ++w)
        sums[window + w * p.stride[2] + p.offsets[*places++]] += C(widen(*gy++));
    }
  T* const gx = static_cast<T*>(p.gx);
  if (p.accumulate)
    for (int64_t i = 0; i < p.size; ++i) gx[i] = Narrow<T>::from(C(widen(gx[i])) + sums[i]);
  else
    for (int64_t i = 0; i < p.size; ++i) gx[i] = Narrow<T>::from(sums[i]);
}

template <class T>
constexpr PoolingLoops pooling_loops() {
  return {{&max_of_position<kPlaceBytes, T>, &max_of_position<kPlaceInts, T>,
           &max_of_position<kNoPlaces, T>},
          {&max_of_row<kPlaceBytes, T>, &max_of_row<kPlaceInts, T>, &max_of_row<kNoPlaces, T>},
          {&grad_of_element<kPlaceBytes, T>, &grad_of_element<kPlaceInts, T>},
          {&grad_of_plane<kPlaceBytes, T>, &grad_of_plane<kPlaceInts, T>}};
}

}  // namespace

namespace CATENA_ISA {

void fill_pooling(PoolingTables& tables) {
  tables.of_half = pooling_loops<Half>();
  tables.of_brain = pooling_loops<Brain>();
  tables.of_float = pooling_loops<float>();
  tables.of_double = pooling_loops<double>();
}

}  // namespace CATENA_ISA

}  // namespace catena::host
