// a + b in int8 on the host; see emulated_map.h.
#define EMULATED_NAME add_int8
#define CATENA_N 3
#define CATENA_EACH_INPUT(X) X(1) X(2)
#define EMULATED_TYPES typedef signed char Operand0, Operand1, Operand2;
#define CATENA_ELEMENT(V) V(0) = (signed char)(V(1) + V(2));
#include "device/emulated_map.h"
