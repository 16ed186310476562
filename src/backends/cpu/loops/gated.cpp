// Loops of gated activations. Every number is computed in a vector, so that a result does not
// depend on its position: what is left of a row is padded to a block. See loop.h about linkage.
#include "backends/cpu/loops/gated.h"

#include "backends/cpu/loops/gelu.h"

namespace catena::host {
namespace {

CATENA_FN float exp_of_size(float x) { return exp_of_minus(size_at_most(x, 120.0F)); }
CATENA_FN double exp_of_size(double x) { return m::exp(-m::fabs(x)); }

// The functions of gates, with their derivatives.
struct Silu {
  template <class T>
  static CATENA_FN T value(T x) {
    const T e = exp_of_size(x);
    return x * ((x < T(0) ? e : T(1)) / (T(1) + e));
  }
  template <class T>
  static CATENA_FN T slope(T x) {  // s (1 + x (1 - s))
    const T e = exp_of_size(x), d = T(1) / (T(1) + e);
    const T s = (x < T(0) ? e : T(1)) * d, rest = (x < T(0) ? T(1) : e) * d;
    return s * (T(1) + x * rest);
  }
};
struct Gelu {
  static CATENA_FN float value(float x) { return GeluFloat::apply(x); }
  static CATENA_FN float slope(float x) { return GeluGradFloat::apply(1.0F, x); }
  static CATENA_FN double value(double x) { return ops::Gelu::apply(x); }
  static CATENA_FN double slope(double x) { return ops::GeluGrad::apply(1.0, x); }
};
struct GeluTanh {  // x s(u), u = sqrt(8 / pi) (x + 0.044715 x^3)
  template <class T>
  static CATENA_FN T value(T x) {
    const T u = x * (T(1.5957691216057307117) + T(0.071354816272600248776) * x * x);
    const T e = exp_of_size(u);
    return x * ((u < T(0) ? e : T(1)) / (T(1) + e));
  }
  template <class T>
  static CATENA_FN T slope(T x) {  // s + x s (1 - s) u', whose end vanishes before u' overflows
    const T square = x * x;
    const T u = x * (T(1.5957691216057307117) + T(0.071354816272600248776) * square);
    const T e = exp_of_size(u), d = T(1) / (T(1) + e);
    const T steep = x * (T(1.5957691216057307117) + T(0.21406444881780074633) * square);
    const T bend = e == T(0) ? T(0) : steep * e * d * d;
    return (x < T(0) ? e : T(1)) * d + bend;
  }
};

using Forward = GatedLoops::Forward;
using Backward = GatedLoops::Backward;

template <class T>
CATENA_FN const T* at(const void* numbers, int64_t i) {
  return static_cast<const T*>(numbers) + i;
}
template <class T>
CATENA_FN T* at(void* numbers, int64_t i) {
  return numbers == nullptr ? nullptr : static_cast<T*>(numbers) + i;
}

// float and double --------------------------------------------------------------------------------

// Below, n is a multiple of kLanes that the compiler does not know: it would unroll a loop of
// kLanes before it makes vectors of it.
template <class Function, class T>
__attribute__((noinline)) void multiply(const T* gate, const T* x, T* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Function::value(gate[i]) * x[i];
}
template <class Function, class T>
__attribute__((noinline)) void multiply_back(const T* gate, const T* x, const T* gy, T* g_gate,
                                             T* gx, int64_t n) {
  if (g_gate != nullptr && gx != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T g = gy[i];
      g_gate[i] = g * x[i] * Function::slope(gate[i]);
      gx[i] = g * Function::value(gate[i]);
    }
  } else if (g_gate != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) g_gate[i] = gy[i] * x[i] * Function::slope(gate[i]);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) gx[i] = gy[i] * Function::value(gate[i]);
  }
}

template <class T>
struct Block {
  alignas(64) T v[kLanes];
  Block() = default;
  CATENA_FN Block(const T* from, int64_t count) {
    load_padded(v, from, count);
    asm("" : "+m"(v));  // from here on the lanes count as different
  }
};

template <class Function, class T>
void forward(const Forward& f, int64_t n) {
  const int64_t whole = n / kLanes * kLanes, rest = n - whole;
  multiply<Function, T>(at<T>(f.gate, 0), at<T>(f.x, 0), at<T>(f.y, 0), whole);
  if (rest == 0) return;
  const Block<T> gate(at<T>(f.gate, whole), rest), x(at<T>(f.x, whole), rest);
  Block<T> y;
  multiply<Function, T>(gate.v, x.v, y.v, kLanes);
  store_padded(at<T>(f.y, whole), y.v, rest);
}

template <class Function, class T>
void backward(const Backward& b, int64_t n) {
  const int64_t whole = n / kLanes * kLanes, rest = n - whole;
  multiply_back<Function, T>(at<T>(b.gate, 0), at<T>(b.x, 0), at<T>(b.gy, 0), at<T>(b.g_gate, 0),
                             at<T>(b.gx, 0), whole);
  if (rest == 0) return;
  const Block<T> gate(at<T>(b.gate, whole), rest), x(at<T>(b.x, whole), rest),
      gy(at<T>(b.gy, whole), rest);
  Block<T> g_gate, gx;
  multiply_back<Function, T>(gate.v, x.v, gy.v, b.g_gate ? g_gate.v : nullptr,
                             b.gx ? gx.v : nullptr, kLanes);
  if (b.g_gate) store_padded(at<T>(b.g_gate, whole), g_gate.v, rest);
  if (b.gx) store_padded(at<T>(b.gx, whole), gx.v, rest);
}

// 16 bits, converted in registers -----------------------------------------------------------------

template <class S>
CATENA_FN HalfLanes load_some(const void* from, int64_t i, int64_t count) {
  if (count == kLanes) return load_lanes(at<S>(from, i));
  S block[kLanes];
  load_padded(block, at<S>(from, i), count);
  return load_lanes(block);
}
template <class S>
CATENA_FN void store_some(void* to, int64_t i, int64_t count, const HalfLanes& lanes) {
  if (count == kLanes) return store_lanes<true>(at<S>(to, i), lanes);
  S block[kLanes];
  store_lanes<true>(block, lanes);
  store_padded(at<S>(to, i), block, count);
}

template <class Function, class S>
void forward_narrow(const Forward& f, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    const HalfLanes gate = load_some<S>(f.gate, i, count), x = load_some<S>(f.x, i, count);
    HalfLanes y;
    for (int64_t k = 0; k < kLanes; ++k) y.x[k] = Function::value(gate.x[k]) * x.x[k];
    store_some<S>(f.y, i, count, y);
  }
}

template <class Function, class S>
void backward_narrow(const Backward& b, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    const HalfLanes gate = load_some<S>(b.gate, i, count), gy = load_some<S>(b.gy, i, count);
    HalfLanes g;
    if (b.g_gate != nullptr) {
      const HalfLanes x = load_some<S>(b.x, i, count);
      for (int64_t k = 0; k < kLanes; ++k) g.x[k] = gy.x[k] * x.x[k] * Function::slope(gate.x[k]);
      store_some<S>(b.g_gate, i, count, g);
    }
    if (b.gx == nullptr) continue;
    for (int64_t k = 0; k < kLanes; ++k) g.x[k] = gy.x[k] * Function::value(gate.x[k]);
    store_some<S>(b.gx, i, count, g);
  }
}

template <class T>
constexpr GatedLoops wide_loops() {
  return {{&forward<Silu, T>, &forward<Gelu, T>, &forward<GeluTanh, T>},
          {&backward<Silu, T>, &backward<Gelu, T>, &backward<GeluTanh, T>}};
}
template <class S>
constexpr GatedLoops narrow_loops() {
  return {{&forward_narrow<Silu, S>, &forward_narrow<Gelu, S>, &forward_narrow<GeluTanh, S>},
          {&backward_narrow<Silu, S>, &backward_narrow<Gelu, S>, &backward_narrow<GeluTanh, S>}};
}

}  // namespace

template <>
GatedTables CATENA_ISA::make_loops() {
  return {narrow_loops<Half>(), narrow_loops<Brain>(), wide_loops<float>(), wide_loops<double>()};
}

}  // namespace catena::host
