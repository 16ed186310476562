// A fused chain with two results and six inputs on the host, as fused_source writes it: (a + b) * c
// and (double)d > e + f; see emulated_map.h.
#define EMULATED_NAME fused_mixed
#define CATENA_N 8
#define CATENA_OUTPUTS 2
#define CATENA_EACH_OUTPUT(X) X(0) X(1)
#define CATENA_EACH_INPUT(X) X(2) X(3) X(4) X(5) X(6) X(7)
#define EMULATED_TYPES                                  \
  typedef float Operand0, Operand2, Operand3, Operand4; \
  typedef bool Operand1;                                \
  typedef int Operand5;                                 \
  typedef double Operand6, Operand7;
#define CATENA_ELEMENT(V)      \
  {                            \
    const float t0 = V(2);     \
    const float t1 = V(3);     \
    const float t2 = t0 + t1;  \
    const float t3 = V(4);     \
    const float t4 = t2 * t3;  \
    const int t5 = V(5);       \
    const double t6 = t5;      \
    const double t7 = V(6);    \
    const double t8 = V(7);    \
    const double t9 = t7 + t8; \
    const bool t10 = t6 > t9;  \
    V(0) = t4;                 \
    V(1) = t10;                \
  }
#include "device/emulated_map.h"
