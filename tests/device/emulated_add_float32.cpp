// a + b in float32 on the host; see emulated_map.h.
#define EMULATED_NAME add_float32
#define CATENA_N 3
#define CATENA_EACH_INPUT(X) X(1) X(2)
#define EMULATED_TYPES typedef float Operand0, Operand1, Operand2;
#define CATENA_ELEMENT(V) V(0) = V(1) + V(2);
#include "device/emulated_map.h"
