// A copy of 16-bit words on the host; see emulated_map.h.
#define EMULATED_NAME copy_uint16
#define CATENA_N 2
#define CATENA_EACH_INPUT(X) X(1)
#define EMULATED_TYPES typedef unsigned short Operand0, Operand1;
#define CATENA_ELEMENT(V) V(0) = V(1);
#include "device/emulated_map.h"
