// Maxima and minima of short rows, many rows at a time, and the gradients of extremes. Loops of a
// constant row length become vector shuffles. Internal linkage, as loop.h says.
#include "backends/cpu/loops/extreme_rows.h"

#include "backends/cpu/loops/convert.h"
#include "backends/cpu/loops/extreme.h"

#define CATENA_FN inline __attribute__((always_inline))

namespace catena::host {
namespace {

// Extremes ---------------------------------------------------------------------------------------

template <class Op, class T>
CATENA_FN void extremes(const T* x, int64_t rows, int64_t n, T* y) {
#pragma GCC ivdep
  for (int64_t r = 0; r < rows; ++r) {
    auto best = widen(x[r * n]);
    for (int64_t k = 1; k < n; ++k) best = Op::step(best, widen(x[r * n + k]));
    y[r] = Narrow<T>::from(best);
  }
}
template <class Op, class T>
void short_rows(const void* x, int64_t rows, int64_t n, void* y) {
  const T* const from = static_cast<const T*>(x);
  T* const to = static_cast<T*>(y);
  if (n == 2) return extremes<Op>(from, rows, 2, to);
  if (n == 3) return extremes<Op>(from, rows, 3, to);
  if (n == 4) return extremes<Op>(from, rows, 4, to);
  if (n == 8) return extremes<Op>(from, rows, 8, to);
  extremes<Op>(from, rows, n, to);
}

// Gradients --------------------------------------------------------------------------------------

// How elements are compared: floats by themselves, 16-bit floats by their bits.
template <class T>
struct Compared {
  using Type = T;
  static CATENA_FN bool equal(T a, T b) { return a == b; }
};
template <uint16_t kInfinity>
struct ComparedBits {
  using Type = uint16_t;
  static CATENA_FN bool equal(uint16_t a, uint16_t b) {
    const uint16_t magnitude = uint16_t(a & 0x7fff), both = uint16_t((a | b) & 0x7fff);
    return ((a == b) & (magnitude <= kInfinity)) | (both == 0);
  }
};
template <>
struct Compared<Half> : ComparedBits<0x7c00> {};
template <>
struct Compared<Brain> : ComparedBits<0x7f80> {};

template <class By, class T = typename By::Type>
CATENA_FN void spread(const T* x, const T* y, const T* gy, int64_t rows, int64_t n, T* gx) {
  for (int64_t r = 0; r < rows; ++r) {
    const T extreme = y[r], gradient = gy[r];
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k)
      gx[r * n + k] = By::equal(x[r * n + k], extreme) ? gradient : T(0);
  }
}
template <class By>
void rows_gradient(const void* x, const void* y, const void* gy, int64_t rows, int64_t n,
                   void* gx) {
  using T = typename By::Type;
  const T *const in = static_cast<const T*>(x), *const extreme = static_cast<const T*>(y),
                 *const gradient = static_cast<const T*>(gy);
  T* const to = static_cast<T*>(gx);
  if (n == 2) return spread<By>(in, extreme, gradient, rows, 2, to);
  if (n == 3) return spread<By>(in, extreme, gradient, rows, 3, to);
  if (n == 4) return spread<By>(in, extreme, gradient, rows, 4, to);
  if (n == 8) return spread<By>(in, extreme, gradient, rows, 8, to);
  spread<By>(in, extreme, gradient, rows, n, to);
}
template <class By>
void gradient(const void* x, const void* y, const void* gy, int64_t n, void* gx) {
  using T = typename By::Type;
  const T *const in = static_cast<const T*>(x), *const extreme = static_cast<const T*>(y),
                 *const given = static_cast<const T*>(gy);
  T* const to = static_cast<T*>(gx);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = By::equal(in[i], extreme[i]) ? given[i] : T(0);
}

template <class T>
constexpr ExtremeLoops extreme_loops() {
  return {{&short_rows<MinOp, T>, &short_rows<MaxOp, T>},
          &rows_gradient<Compared<T>>,
          &gradient<Compared<T>>};
}

}  // namespace

template <>
ExtremeTables CATENA_ISA::make_loops() {
  return {extreme_loops<Half>(), extreme_loops<Brain>(), extreme_loops<float>(),
          extreme_loops<double>()};
}

}  // namespace catena::host

#undef CATENA_FN
