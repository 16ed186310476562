// Loops of an LSTM's step. Every element is computed in a vector, so that a result does not depend
// on its position: a block of kLanes cells is read into buffers, padded at the end of a row. See
// loop.h about linkage.
#include "backends/cpu/loops/lstm.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "backends/cpu/loops/exponential.h"

namespace catena::host {
namespace {

// kLanes cells.
template <class T>
struct Cells {
  alignas(64) T v[kLanes];
};

template <class T>
CATENA_FN void read(Cells<T>& cells, const T* from, int64_t count) {
  if (from == nullptr) {
    for (int64_t i = 0; i < kLanes; ++i) cells.v[i] = T(0);
  } else if (count == kLanes) {
    for (int64_t i = 0; i < kLanes; ++i) cells.v[i] = from[i];
  } else {
    load_padded(cells.v, from, count);
    // From here on the lanes count as different: of those that it knows to be equal, GCC 13
    // computes one with the scalar function, whose last bits are not those of the vectors.
    asm("" : "+m"(cells));
  }
}
template <class T>
CATENA_FN void write(T* to, const Cells<T>& cells, int64_t count) {
  if (count == kLanes)
    for (int64_t i = 0; i < kLanes; ++i) to[i] = cells.v[i];
  else
    store_padded(to, cells.v, count);
}
// Of floats a part of a vector is read at once: numbers stored one by one would have to reach the
// cache before the vector of them could be loaded.
#ifdef __AVX512F__
CATENA_FN __mmask16 first_lanes(int64_t count) { return __mmask16((1U << count) - 1); }
CATENA_FN void read(Cells<float>& cells, const float* from, int64_t count) {
  const __mmask16 lanes = from == nullptr ? __mmask16(0) : first_lanes(count);
  _mm512_store_ps(cells.v, _mm512_maskz_loadu_ps(lanes, from));
}
CATENA_FN void write(float* to, const Cells<float>& cells, int64_t count) {
  _mm512_mask_storeu_ps(to, first_lanes(count), _mm512_load_ps(cells.v));
}
#endif
template <class T>
CATENA_FN const T* at(const T* row, int64_t first) {
  return row == nullptr ? nullptr : row + first;
}

template <class T>
struct Activations {
  using Tanh = ops::Tanh;
  using Sigmoid = ops::Sigmoid;
};
template <>
struct Activations<float> {
  using Tanh = TanhFloat;
  using Sigmoid = SigmoidFloat;
};

template <class T>
CATENA_FN void tanh_of(Cells<T>& cells) {
#pragma GCC ivdep
  for (int64_t i = 0; i < kLanes; ++i) cells.v[i] = Activations<T>::Tanh::apply(cells.v[i]);
}

// The gates of kLanes cells.
template <class T>
struct Gates {
  Cells<T> a, sigmoids[3];  // i, f and o
};
template <class T>
CATENA_FN void read(Gates<T>& gates, const T* row, int64_t n, int64_t first, int64_t count) {
  read(gates.a, row + first, count);
  for (int64_t k = 0; k < 3; ++k) read(gates.sigmoids[k], row + (k + 1) * n + first, count);
}
template <class T>
CATENA_FN void write(T* row, const Gates<T>& gates, int64_t n, int64_t first, int64_t count) {
  write(row + first, gates.a, count);
  for (int64_t k = 0; k < 3; ++k) write(row + (k + 1) * n + first, gates.sigmoids[k], count);
}
// All sigmoids in one loop: GCC would unroll a loop of kLanes before it makes vectors of it, and
// call the scalar exponential.
template <class T>
CATENA_FN void activate(Gates<T>& gates) {
  tanh_of(gates.a);
  T* const s = gates.sigmoids[0].v;
#pragma GCC ivdep
  for (int64_t i = 0; i < 3 * kLanes; ++i) s[i] = Activations<T>::Sigmoid::apply(s[i]);
}

template <class T>
void forward(const typename LstmLoops<T>::Forward& r, int64_t n) {
  for (int64_t first = 0; first < n; first += kLanes) {
    const int64_t count = n - first < kLanes ? n - first : kLanes;
    Gates<T> gates;
    Cells<T>&a = gates.a, &i = gates.sigmoids[0], &f = gates.sigmoids[1], &o = gates.sigmoids[2];
    Cells<T> before, c, h;
    read(gates, r.gates, n, first, count);
    read(before, at(r.c_prev, first), count);
    activate(gates);
    for (int64_t k = 0; k < kLanes; ++k) h.v[k] = c.v[k] = a.v[k] * i.v[k] + before.v[k] * f.v[k];
    tanh_of(h);
    for (int64_t k = 0; k < kLanes; ++k) h.v[k] *= o.v[k];
    write(r.c + first, c, count);
    write(r.h + first, h, count);
    if (r.activated != nullptr) write(r.activated, gates, n, first, count);
  }
}

template <class T>
void backward(const typename LstmLoops<T>::Backward& r, int64_t n) {
  for (int64_t first = 0; first < n; first += kLanes) {
    const int64_t count = n - first < kLanes ? n - first : kLanes;
    Gates<T> gates;
    Cells<T>&a = gates.a, &i = gates.sigmoids[0], &f = gates.sigmoids[1], &o = gates.sigmoids[2];
    Cells<T> before, t, gh, gh_next, gc;
    read(gates, r.activated, n, first, count);
    read(before, at(r.c_prev, first), count);
    read(t, r.c + first, count);
    read(gh, at(r.gh, first), count);
    read(gh_next, at(r.gh_next, first), count);
    read(gc, at(r.gc, first), count);
    if (r.of_gates) activate(gates);
    tanh_of(t);
    for (int64_t k = 0; k < kLanes; ++k) {
      const T g = gh.v[k] + gh_next.v[k];
      const T of_c = gc.v[k] + g * o.v[k] * (T(1) - t.v[k] * t.v[k]);
      const T of_o = g * t.v[k] * o.v[k] * (T(1) - o.v[k]);
      const T of_a = of_c * i.v[k] * (T(1) - a.v[k] * a.v[k]);
      const T of_i = of_c * a.v[k] * i.v[k] * (T(1) - i.v[k]);
      const T of_f = of_c * before.v[k] * f.v[k] * (T(1) - f.v[k]);
      gc.v[k] = of_c * f.v[k];
      a.v[k] = of_a, i.v[k] = of_i, f.v[k] = of_f, o.v[k] = of_o;
    }
    write(r.g_gates, gates, n, first, count);
    if (r.gc_prev != nullptr) write(r.gc_prev + first, gc, count);
  }
}

}  // namespace

template <>
LstmTables CATENA_ISA::make_loops() {
  return {{&forward<float>, &backward<float>}, {&forward<double>, &backward<double>}};
}

}  // namespace catena::host
