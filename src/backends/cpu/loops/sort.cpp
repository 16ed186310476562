// Sorting of several short rows at a time, one in each lane of the vectors: Batcher's odd-even
// merge sort (K. E. Batcher, Sorting networks and their applications, AFIPS 1968), whose
// comparisons do not depend on the elements. See loop.h about linkage.
#include <utility>  // std::integer_sequence, which is but a type

#include "backends/cpu/loops/tables.h"
#include "backends/cpu/loops/vector_bytes.h"

#define CATENA_FN inline __attribute__((always_inline))
#include "device/ordered_key.h"

namespace catena::host {
namespace {

template <class U>
struct Lanes {
  typedef U Vector __attribute__((vector_size(kVectorBytes), may_alias));
  static constexpr int kCount = kVectorBytes / int(sizeof(U));
};

template <class V>
CATENA_FN void order_pair(V& low, V& high) {
  const V a = low, b = high;
  low = a < b ? a : b;
  high = a < b ? b : a;
}

// Sorts v[0..n) in each lane.
template <class V>
CATENA_FN void sort_lanes(V* v, int64_t n) {
  for (int64_t p = 1; p < n; p *= 2) {
    for (int64_t k = p; k >= 1; k /= 2) {
      for (int64_t j = k % p; j + k < n; j += 2 * k) {
        if (((j ^ (j + k)) & -2 * p) != 0) continue;  // not of one run of 2p
        const int64_t count = k < n - j - k ? k : n - j - k;
        for (int64_t i = j; i < j + count; ++i) order_pair(v[i], v[i + k]);
      }
    }
  }
}

// The elements of a and b alternately, from their first or their second halves.
template <class U, bool kSecond, int... kLane>
CATENA_FN typename Lanes<U>::Vector interleave(typename Lanes<U>::Vector a,
                                               typename Lanes<U>::Vector b,
                                               std::integer_sequence<int, kLane...>) {
  constexpr int kCount = Lanes<U>::kCount, kFirst = kSecond ? kCount / 2 : 0;
  return __builtin_shufflevector(a, b, (kFirst + kLane / 2 + (kLane % 2 ? kCount : 0))...);
}

// Transposes a square of vectors.
template <class U>
CATENA_FN void transpose(typename Lanes<U>::Vector* v) {
  constexpr int kCount = Lanes<U>::kCount;
  using Sequence = std::make_integer_sequence<int, kCount>;
  typename Lanes<U>::Vector turned[kCount];
  for (int done = 1; done < kCount; done *= 2) {
    for (int i = 0; i < kCount / 2; ++i) {
      turned[2 * i] = interleave<U, false>(v[i], v[i + kCount / 2], Sequence());
      turned[2 * i + 1] = interleave<U, true>(v[i], v[i + kCount / 2], Sequence());
    }
    for (int i = 0; i < kCount; ++i) v[i] = turned[i];
  }
}

// A square of keys: `width` elements of `count` rows of n, in memory order.
template <class O>
CATENA_FN void load_square(const typename O::U* from, int64_t n, int64_t count, int64_t width,
                           typename Lanes<typename O::U>::Vector* square) {
  using U = typename O::U;
  using Vector = typename Lanes<U>::Vector;
  constexpr int kCount = Lanes<U>::kCount;
  for (int l = 0; l < kCount; ++l) {
    const U* row = from + (l < count ? l : 0) * n;
    Vector v = {};
    if (width == kCount)
      __builtin_memcpy(&v, row, sizeof(v));
    else
      __builtin_memcpy(&v, row, uint64_t(width) * sizeof(U));
    square[l] = O::encode(v);
  }
}
template <class O>
CATENA_FN void store_square(const typename Lanes<typename O::U>::Vector* square, int64_t n,
                            int64_t count, int64_t width, typename O::U* to) {
  using U = typename O::U;
  using Vector = typename Lanes<U>::Vector;
  constexpr int kCount = Lanes<U>::kCount;
  for (int l = 0; l < count; ++l) {
    const Vector v = O::decode(square[l]);
    if (width == kCount)
      __builtin_memcpy(to + l * n, &v, sizeof(v));
    else
      __builtin_memcpy(to + l * n, &v, uint64_t(width) * sizeof(U));
  }
}

template <class O>
void sort_rows(const char* source, int64_t rows, int64_t n, char* destination, void* scratch) {
  using U = typename O::U;
  using Vector = typename Lanes<U>::Vector;
  constexpr int kCount = Lanes<U>::kCount;
  Vector* columns = static_cast<Vector*>(scratch);
  for (int64_t first = 0; first < rows; first += kCount) {
    const U* from = reinterpret_cast<const U*>(source) + first * n;
    U* to = reinterpret_cast<U*>(destination) + first * n;
    const int64_t count = rows - first < kCount ? rows - first : kCount;
    Vector square[kCount];
    for (int64_t c = 0; c < n; c += kCount) {
      const int64_t width = n - c < kCount ? n - c : kCount;
      load_square<O>(from + c, n, count, width, square);
      transpose<U>(square);
      for (int64_t i = 0; i < width; ++i) columns[c + i] = square[i];
    }
    sort_lanes(columns, n);
    for (int64_t c = 0; c < n; c += kCount) {
      const int64_t width = n - c < kCount ? n - c : kCount;
      for (int64_t i = 0; i < kCount; ++i) square[i] = columns[c + (i < width ? i : 0)];
      transpose<U>(square);
      store_square<O>(square, n, count, width, to + c);
    }
  }
}

}  // namespace

namespace CATENA_ISA {

CATENA_LOOPS(sort) {
  tables.sort_rows[kBoolIndex] = &sort_rows<order::OrderedU8>;
  tables.sort_rows[kInt8Index] = &sort_rows<order::OrderedI8>;
  tables.sort_rows[kInt16Index] = &sort_rows<order::OrderedI16>;
  tables.sort_rows[kInt32Index] = &sort_rows<order::OrderedI32>;
  tables.sort_rows[kInt64Index] = &sort_rows<order::OrderedI64>;
  tables.sort_rows[kUInt8Index] = &sort_rows<order::OrderedU8>;
  tables.sort_rows[kUInt16Index] = &sort_rows<order::OrderedU16>;
  tables.sort_rows[kUInt32Index] = &sort_rows<order::OrderedU32>;
  tables.sort_rows[kUInt64Index] = &sort_rows<order::OrderedU64>;
  tables.sort_rows[kFloat16Index] = &sort_rows<order::OrderedF16>;
  tables.sort_rows[kBFloat16Index] = &sort_rows<order::OrderedBF16>;
  tables.sort_rows[kFloat32Index] = &sort_rows<order::OrderedF32>;
  tables.sort_rows[kFloat64Index] = &sort_rows<order::OrderedF64>;
}

}  // namespace CATENA_ISA

}  // namespace catena::host
