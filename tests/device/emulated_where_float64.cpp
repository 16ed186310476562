// where(bool, float32, float64) -> float64 on the host; see emulated_map.h.
#define EMULATED_NAME where_float64
#define CATENA_N 4
#define CATENA_EACH_INPUT(X) X(1) X(2) X(3)
#define EMULATED_TYPES               \
  typedef double Operand0, Operand3; \
  typedef bool Operand1;             \
  typedef float Operand2;
#define CATENA_ELEMENT(V) V(0) = V(1) ? double(V(2)) : V(3);
#include "device/emulated_map.h"
