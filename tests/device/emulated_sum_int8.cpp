// A sum of int8 in int64 on the host; see emulated_reduce.h.
#define EMULATED_NAME sum_int8
#define EMULATED_TYPES       \
  typedef signed char Input; \
  typedef long long Output, Accumulator;
#define EMULATED_IDENTITY 0
#define EMULATED_COMBINE a + b
#define EMULATED_DIVIDES false
#include "device/emulated_reduce.h"
