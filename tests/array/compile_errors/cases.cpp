// Uses that must be refused by a sentence; see CMakeLists.txt.
#include "catena/array/fusion.h"
#include "catena/array/kernel.h"
#include "catena/array/manipulation.h"
#include "catena/array/reduction.h"
#include "catena/autograd/type_check.h"
#include "catena/functions/activation/softmax.h"

using namespace catena;

void use(const Array& x) {
#if CASE == 1
  elementwise(x, [](auto a) { return a; });
#elif CASE == 2
  reduce(
      {x}, 0.0f, [](auto a) { return a; }, [](float a, float b) { return a + b; },
      [](float a) { return a; });
#elif CASE == 3
  ElementwiseKernel("T x", "T y", "y = x").on_cpu<float>([](float a, float& b) { b = a; });
#elif CASE == 4
  fuse([](float a) { return a; })(x);
#elif CASE == 5
  fuse([k = 0](Fused a) mutable { return a + ++k; })(x);
#elif CASE == 6
  if (TypeInfoTuple({x})[0].ndim() == 2) return;
#elif CASE == 7
  type_check::expect(TypeInfoTuple({x}).size() == 1 && TypeInfoTuple({x})[0].ndim() == 2);
#elif CASE == 8
  type_check::expect(TypeInfoTuple({x})[0].ndim());
#elif CASE == 9
  x[0, 1];
#elif CASE == 10
  sum(x, true);
#elif CASE == 11
  sum(x, 0, 1);
#elif CASE == 12
  x.argmax({0, 1, true});
#elif CASE == 13
  functions::softmax(x, true);
#elif CASE == 14
  x.expand_dims(true);
#elif CASE == 15
  moveaxis(x, true, 0);
#endif
}
