// Update rules on contiguous elements, in the order of operations that the CUDA kernels share:
//   g' = g * gradient_scale + weight_decay * p
//   sgd:       p -= lr * g'
//   momentum:  v = beta1 * v - lr * g';  p += v
//   adam:      m += (1 - beta1) * (g' - m);  v += (1 - beta2) * (g' * g' - v)
//              p -= lr_t * m / (sqrt(v) + epsilon), lr_t given as learning_rate
// All constants are rounded to the computing type once. See loop.h about linkage.
#include "backends/cpu/loops/tables.h"

namespace catena::host {
namespace {

inline __attribute__((always_inline)) float root(float x) { return __builtin_sqrtf(x); }
inline __attribute__((always_inline)) double root(double x) { return __builtin_sqrt(x); }

template <class T>
void sgd(T* p, const T* g, const StepConstants& c, int64_t n) {
  const T lr = T(c.learning_rate), scale = T(c.gradient_scale), decay = T(c.weight_decay);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T gradient = g[i] * scale + decay * p[i];
    p[i] -= lr * gradient;
  }
}

template <class T>
void momentum_sgd(T* p, const T* g, T* v, const StepConstants& c, int64_t n) {
  const T lr = T(c.learning_rate), scale = T(c.gradient_scale), decay = T(c.weight_decay);
  const T beta = T(c.beta1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T gradient = g[i] * scale + decay * p[i];
    v[i] = beta * v[i] - lr * gradient;
    p[i] += v[i];
  }
}

template <class T>
void adam(T* p, const T* g, T* m, T* v, const StepConstants& c, int64_t n) {
  const T lr = T(c.learning_rate), scale = T(c.gradient_scale), decay = T(c.weight_decay);
  const T rest1 = T(1 - c.beta1), rest2 = T(1 - c.beta2), epsilon = T(c.epsilon);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const T gradient = g[i] * scale + decay * p[i];
    const T m1 = m[i] + rest1 * (gradient - m[i]);
    const T v1 = v[i] + rest2 * (gradient * gradient - v[i]);
    m[i] = m1;
    v[i] = v1;
    p[i] -= lr * m1 / (root(v1) + epsilon);
  }
}

}  // namespace

namespace CATENA_ISA {

void fill_optimizer(Tables& tables) {
  tables.optimizer_float = {&sgd<float>, &momentum_sgd<float>, &adam<float>};
  tables.optimizer_double = {&sgd<double>, &momentum_sgd<double>, &adam<double>};
}

}  // namespace CATENA_ISA

}  // namespace catena::host
