// Loops of max pooling: over channels that are side by side, over rows of positions, and over
// planes of gradients. Internal linkage, as loop.h says.
#include "backends/cpu/loops/pooling.h"

#include "backends/cpu/loops/pooling_lanes.h"

namespace catena::host {
namespace {

template <PlaceKind kKind>
struct PlaceOf {
  using Type = uint8_t;
};
template <>
struct PlaceOf<kPlaceInts> {
  using Type = int32_t;
};
template <PlaceKind kKind>
using KeptPlace = typename PlaceOf<kKind>::Type;

// Calls f(offset, tap) for the elements that a position sees.
template <class F>
CATENA_FN void each_seen(const PoolingLoops::Position& p, F f) {
  for (int64_t d = 0; d < p.count[0]; ++d)
    for (int64_t i = 0; i < p.count[1]; ++i)
      for (int64_t j = 0; j < p.count[2]; ++j)
        f(d * p.step[0] + i * p.step[1] + j * p.step[2],
          p.tap + d * p.tap_step[0] + i * p.tap_step[1] + j * p.tap_step[2]);
}

// kGroups * kLanes channels of a position: one load of each cannot wait for the others.
template <PlaceKind kKind, int kGroups, class T>
CATENA_FN void max_of_lanes(const PoolingLoops::Position& p, int64_t from) {
  const T* const x = static_cast<const T*>(p.x) + from;
  LargestOfLanes<T, kKind != kNoPlaces> largest[kGroups];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) largest[g].start(load(x + g * kLanes), p.tap);
  each_seen(
      p, [&](int64_t offset, int64_t tap) __attribute__((always_inline)) {
#pragma GCC unroll 4
        for (int g = 0; g < kGroups; ++g) largest[g].see(load(x + offset + g * kLanes), tap);
      });
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    const int64_t at = from + g * kLanes;
    store(static_cast<T*>(p.y) + at, largest[g].best);
    if constexpr (kKind != kNoPlaces)
      store_places(static_cast<KeptPlace<kKind>*>(p.places) + at, largest[g].place);
  }
}
template <PlaceKind kKind, class T>
CATENA_FN void max_of_channel(const PoolingLoops::Position& p, int64_t at) {
  const T* const x = static_cast<const T*>(p.x) + at;
  Largest<T> largest;
  each_seen(p, [&](int64_t offset, int64_t tap) { largest.see(widen(x[offset]), tap); });
  static_cast<T*>(p.y)[at] = Narrow<T>::from(largest.best);
  if constexpr (kKind != kNoPlaces)
    static_cast<KeptPlace<kKind>*>(p.places)[at] = KeptPlace<kKind>(largest.place);
}
template <PlaceKind kKind, class T>
void max_of_position(const PoolingLoops::Position& p) {
  constexpr int kGroups = sizeof(T) == 8 ? 2 : 4;
  int64_t at = 0;
  for (; at + kGroups * kLanes <= p.channels; at += kGroups * kLanes)
    max_of_lanes<kKind, kGroups, T>(p, at);
  for (; at + kLanes <= p.channels; at += kLanes) max_of_lanes<kKind, 1, T>(p, at);
  for (; at < p.channels; ++at) max_of_channel<kKind, T>(p, at);
}

// kLanes elements that are kStride apart; reads none behind the last.
template <int kStride, class T>
CATENA_FN Values<T> load_apart(const T* x) {
  if constexpr (kStride == 1) {
    return load(x);
  } else if constexpr (kStride == 2 && sizeof(T) < 8) {
    const Places<T> even = {0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31};
    return __builtin_shuffle(load(x), load(x + kLanes - 1), even);
  } else {
    T lanes[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) lanes[i] = x[i * kStride];
    return load(lanes);
  }
}

// kLanes positions of a row, from `at` on, that see the image at all places.
template <PlaceKind kKind, int kStride, class T>
CATENA_FN void max_of_positions(const PoolingLoops::Row& r, int64_t at) {
  const T* const x = static_cast<const T*>(r.x) + at * kStride - r.pad;
  LargestOfLanes<T, kKind != kNoPlaces> largest;
  largest.start(load_apart<kStride>(x), r.tap);
  for (int64_t d = 0; d < r.count[0]; ++d)
    for (int64_t i = 0; i < r.count[1]; ++i)
      for (int64_t j = 0; j < r.kernel; ++j)
        largest.see(load_apart<kStride>(x + d * r.step[0] + i * r.step[1] + j),
                    r.tap + d * r.tap_step[0] + i * r.tap_step[1] + j);
  store(static_cast<T*>(r.y) + at, largest.best);
  if constexpr (kKind != kNoPlaces)
    store_places(static_cast<KeptPlace<kKind>*>(r.places) + at, largest.place);
}
// At most kLanes positions of a row, [at, at + n), some of which see padding.
template <PlaceKind kKind, class T>
void max_of_some(const PoolingLoops::Row& r, int64_t at, int64_t n) {
  using Number = typename Wide<Computed<T>>::Place;
  const T* const x = static_cast<const T*>(r.x);
  LargestOfSome<T> largest;
  for (int64_t d = 0; d < r.count[0]; ++d)
    for (int64_t h = 0; h < r.count[1]; ++h)
      for (int64_t j = 0; j < r.kernel; ++j) {
        // Lanes [begin, end) see column first + lane * stride of the image.
        const int64_t first = at * r.stride - r.pad + j;
        const int64_t begin = first >= 0 ? 0 : (-first + r.stride - 1) / r.stride;
        const int64_t inside = first >= r.width ? 0 : (r.width - 1 - first) / r.stride + 1;
        const int64_t end = inside < n ? inside : n;
        const T* const row = x + d * r.step[0] + h * r.step[1] + first;
        T lanes[kLanes] = {};
        for (int64_t i = begin; i < end; ++i) lanes[i] = row[i * r.stride];
        largest.see(load(lanes), r.tap + d * r.tap_step[0] + h * r.tap_step[1] + j,
                    (lane_numbers<T>() >= Number(begin)) & (lane_numbers<T>() < Number(end)));
      }
  T values[kLanes];
  store(values, largest.best);
  for (int64_t i = 0; i < n; ++i) {
    static_cast<T*>(r.y)[at + i] = values[i];
    if constexpr (kKind != kNoPlaces)
      static_cast<KeptPlace<kKind>*>(r.places)[at + i] = KeptPlace<kKind>(largest.place[i]);
  }
}
template <PlaceKind kKind, class T>
CATENA_FN void max_of_one(const PoolingLoops::Row& r, int64_t at) {
  const int64_t first = at * r.stride - r.pad;
  const int64_t begin = first < 0 ? -first : 0;
  const int64_t end = first + r.kernel < r.width ? r.kernel : r.width - first;
  const T* const x = static_cast<const T*>(r.x) + first;
  Largest<T> largest;
  for (int64_t d = 0; d < r.count[0]; ++d)
    for (int64_t i = 0; i < r.count[1]; ++i)
      for (int64_t j = begin; j < end; ++j)
        largest.see(widen(x[d * r.step[0] + i * r.step[1] + j]),
                    r.tap + d * r.tap_step[0] + i * r.tap_step[1] + j);
  static_cast<T*>(r.y)[at] = Narrow<T>::from(largest.best);
  if constexpr (kKind != kNoPlaces)
    static_cast<KeptPlace<kKind>*>(r.places)[at] = KeptPlace<kKind>(largest.place);
}
template <PlaceKind kKind, class T>
void max_of_range(const PoolingLoops::Row& r, int64_t begin, int64_t end) {
  constexpr int64_t kFew = 4;  // positions that are faster one by one
  if (end - begin < kFew) {
    for (int64_t at = begin; at < end; ++at) max_of_one<kKind, T>(r, at);
    return;
  }
  for (int64_t at = begin; at < end; at += kLanes)
    max_of_some<kKind, T>(r, at, end - at < kLanes ? end - at : kLanes);
}

// Vectors where whole windows are in the image, with the last one moved back to its end; the
// positions at the edges apart.
template <PlaceKind kKind, int kStride, class T>
CATENA_FN void max_along(const PoolingLoops::Row& r) {
  const int64_t inside = (r.pad + r.stride - 1) / r.stride, room = r.width + r.pad - r.kernel;
  const int64_t last = room < 0 ? 0 : room / r.stride + 1;
  const int64_t begin = inside < r.positions ? inside : r.positions;
  const int64_t end = last < r.positions ? last : r.positions;
  const bool wide = end - begin >= kLanes;
  if (!wide) return max_of_range<kKind, T>(r, 0, r.positions);
  max_of_range<kKind, T>(r, 0, begin);
  for (int64_t at = begin; at < end; at += kLanes)
    max_of_positions<kKind, kStride, T>(r, at + kLanes <= end ? at : end - kLanes);
  max_of_range<kKind, T>(r, end, r.positions);
}
template <PlaceKind kKind, class T>
void max_of_row(const PoolingLoops::Row& r) {
  if (r.stride == 1) return max_along<kKind, 1, T>(r);
  if (r.stride == 2) return max_along<kKind, 2, T>(r);
  if (r.stride == 3) return max_along<kKind, 3, T>(r);
  max_of_range<kKind, T>(r, 0, r.positions);
}

// Calls f(offset, tap) for the positions that see an element.
template <class F>
CATENA_FN void each_seeing(const PoolingLoops::Element& e, F f) {
  for (int64_t d = 0; d < e.count[0]; ++d)
    for (int64_t h = 0; h < e.count[1]; ++h)
      for (int64_t w = 0; w < e.count[2]; ++w)
        f(d * e.step[0] + h * e.step[1] + w * e.step[2],
          e.tap - d * e.tap_step[0] - h * e.tap_step[1] - w * e.tap_step[2]);
}
template <PlaceKind kKind, int kGroups, class T>
CATENA_FN void grad_of_lanes(const PoolingLoops::Element& e, int64_t from) {
  using Place = typename Wide<Computed<T>>::Place;
  const T* const gy = static_cast<const T*>(e.gy) + from;
  const auto* const places = static_cast<const KeptPlace<kKind>*>(e.places) + from;
  Values<T> sums[kGroups] = {};
  each_seeing(
      e, [&](int64_t offset, int64_t tap) __attribute__((always_inline)) {
#pragma GCC unroll 4
        for (int g = 0; g < kGroups; ++g) {
          const int64_t at = offset + g * kLanes;
          const Places<T> here = load_places<T>(places + at) == Place(tap);
          sums[g] += (Values<T>)((Places<T>)load(gy + at) & here);
        }
      });
  T* const gx = static_cast<T*>(e.gx) + from;
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g)
    store(gx + g * kLanes, e.accumulate ? load(gx + g * kLanes) + sums[g] : sums[g]);
}
template <PlaceKind kKind, class T>
CATENA_FN void grad_of_channel(const PoolingLoops::Element& e, int64_t channel) {
  const T* const gy = static_cast<const T*>(e.gy) + channel;
  const auto* const places = static_cast<const KeptPlace<kKind>*>(e.places) + channel;
  Computed<T> sum = 0;
  each_seeing(e, [&](int64_t offset, int64_t tap) {
    if (places[offset] == tap) sum += widen(gy[offset]);
  });
  T& gx = static_cast<T*>(e.gx)[channel];
  gx = Narrow<T>::from(e.accumulate ? widen(gx) + sum : sum);
}
template <PlaceKind kKind, class T>
void grad_of_element(const PoolingLoops::Element& e) {
  constexpr int kGroups = sizeof(T) == 8 ? 2 : 4;
  int64_t at = 0;
  for (; at + kGroups * kLanes <= e.channels; at += kGroups * kLanes)
    grad_of_lanes<kKind, kGroups, T>(e, at);
  for (; at + kLanes <= e.channels; at += kLanes) grad_of_lanes<kKind, 1, T>(e, at);
  for (; at < e.channels; ++at) grad_of_channel<kKind, T>(e, at);
}

template <PlaceKind kKind, class T>
void grad_of_plane(const PoolingLoops::Plane& p) {
  using C = Computed<T>;
  using Kept = KeptPlace<kKind>;
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

template <>
PoolingTables CATENA_ISA::make_loops() {
  return {pooling_loops<Half>(), pooling_loops<Brain>(), pooling_loops<float>(),
          pooling_loops<double>()};
}

}  // namespace catena::host
