// Moves values of any type between the threads of a warp.
#pragma once

#include "device/prelude.cuh"

namespace catena {
namespace jit {

// The value of the thread `distance` lanes further; all threads of the warp must take part.
template <class T>
CATENA_FN T shuffle_down(T x, int distance) {
  union {
    T value;
    unsigned int word[(sizeof(T) + 3) / 4];
  } both;
  both.value = x;
#pragma unroll
  for (int w = 0; w < int((sizeof(T) + 3) / 4); ++w)
    both.word[w] = __shfl_down_sync(0xffffffffu, both.word[w], distance);
  return both.value;
}

}  // namespace jit
}  // namespace catena
