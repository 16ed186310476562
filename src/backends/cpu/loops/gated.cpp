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
struct GeluTanh {
  template <class T>
  static CATENA_FN T value(T x) {
    return ops::GeluTanh::apply(x);
  }
  template <class T>
  static CATENA_FN T slope(T x) {
    return ops::GeluTanhGrad::apply(T(1), x);
  }
};

template <class T>
using Forward = typename GatedLoops<T>::Forward;
template <class T>
using Backward = typename GatedLoops<T>::Backward;

// Below, n is a multiple of kLanes that the compiler does not know: it would unroll a loop of
// kLanes before it makes vectors of it.
template <class Function, class T>
__attribute__((noinline)) void multiply(const Forward<T>& f, int64_t n) {
  const T *gate = f.gate, *x = f.x;
  T* y = f.y;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Function::value(gate[i]) * x[i];
}
template <class Function, class T>
__attribute__((noinline)) void multiply_back(const Backward<T>& b, int64_t n) {
  const T *gate = b.gate, *x = b.x, *gy = b.gy;
  T *g_gate = b.g_gate, *gx = b.gx;
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
void forward(const Forward<T>& f, int64_t n) {
  const int64_t whole = n / kLanes * kLanes, rest = n - whole;
  multiply<Function, T>(f, whole);
  if (rest == 0) return;
  const Block<T> gate(f.gate + whole, rest), x(f.x + whole, rest);
  Block<T> y;
  multiply<Function, T>({gate.v, x.v, y.v}, kLanes);
  store_padded(f.y + whole, y.v, rest);
}

template <class Function, class T>
void backward(const Backward<T>& b, int64_t n) {
  const int64_t whole = n / kLanes * kLanes, rest = n - whole;
  multiply_back<Function, T>(b, whole);
  if (rest == 0) return;
  const Block<T> gate(b.gate + whole, rest), x(b.x + whole, rest), gy(b.gy + whole, rest);
  Block<T> g_gate, gx;
  multiply_back<Function, T>(
      {gate.v, x.v, gy.v, b.g_gate ? g_gate.v : nullptr, b.gx ? gx.v : nullptr}, kLanes);
  if (b.g_gate) store_padded(b.g_gate + whole, g_gate.v, rest);
  if (b.gx) store_padded(b.gx + whole, gx.v, rest);
}

template <class T>
constexpr GatedLoops<T> gated_loops() {
  return {{&forward<Silu, T>, &forward<Gelu, T>, &forward<GeluTanh, T>},
          {&backward<Silu, T>, &backward<Gelu, T>, &backward<GeluTanh, T>}};
}

}  // namespace

template <>
GatedTables CATENA_ISA::make_loops() {
  return {gated_loops<float>(), gated_loops<double>()};
}

}  // namespace catena::host
