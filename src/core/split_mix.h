// SplitMix64: numbers that are far apart for seeds, or places, that are close.
#pragma once

#include <cstdint>

namespace catena {

// The number at this place, from 0 on, of the generator with this seed. Different places of one
// seed give different numbers (G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number
// generators, OOPSLA 2014).
inline uint64_t split_mix(uint64_t seed, uint64_t place) {
  uint64_t z = seed + (place + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace catena
