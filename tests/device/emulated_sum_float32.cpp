// A sum of floats on the host; see emulated_reduce.h.
#define EMULATED_NAME sum_float32
#define EMULATED_TYPES typedef float Input, Output, Accumulator;
#define EMULATED_IDENTITY 0
#define EMULATED_COMBINE a + b
#define EMULATED_DIVIDES true
#include "device/emulated_reduce.h"
