// A maximum of int16 on the host; see emulated_reduce.h.
#define EMULATED_NAME max_int16
#define EMULATED_TYPES typedef short Input, Output, Accumulator;
#define EMULATED_IDENTITY -32768
#define EMULATED_COMBINE a >= b ? a : b
#define EMULATED_DIVIDES false
#include "device/emulated_reduce.h"
