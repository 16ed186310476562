// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), compiled
// by g++, nvcc and NVRTC alike. Includes nothing; CATENA_FN as in scalar_ops.h.
//
// A block is the four 32-bit words of one counter under one key. catena's block number `index` of
// seed `seed` has the counter (low(index), high(index), 0, 0) and the key (low(seed), high(seed)).
#pragma once

namespace catena {
namespace philox {

struct Block {
  unsigned int word[4];
};

CATENA_FN Block block(const unsigned int counter[4], const unsigned int key[2]) {
  unsigned int c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  unsigned int k0 = key[0], k1 = key[1];
#ifndef __CUDACC__
#pragma GCC unroll 10  // before vectorisation, or the loop over blocks stays scalar
#endif
  for (int round = 0; round < 10; ++round) {
    const unsigned long long p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    const unsigned int next0 = (unsigned int)(p1 >> 32) ^ c1 ^ k0;
    const unsigned int next2 = (unsigned int)(p0 >> 32) ^ c3 ^ k1;
    c1 = (unsigned int)p1;
    c3 = (unsigned int)p0;
    c0 = next0;
    c2 = next2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  Block result;
  result.word[0] = c0;
  result.word[1] = c1;
  result.word[2] = c2;
  result.word[3] = c3;
  return result;
}

CATENA_FN Block block(unsigned long long seed, unsigned long long index) {
  const unsigned int counter[4] = {(unsigned int)index, (unsigned int)(index >> 32), 0u, 0u};
  const unsigned int key[2] = {(unsigned int)seed, (unsigned int)(seed >> 32)};
  return block(counter, key);
}

// 64 bits of words 0,1 (half 0) or 2,3 (half 1).
CATENA_FN unsigned long long bits64(const Block& b, int half) {
  return b.word[2 * half] | ((unsigned long long)b.word[2 * half + 1] << 32);
}
// [0, 1) with 53 and 24 bits.
CATENA_FN double unit53(unsigned long long bits) { return double(bits >> 11) * 0x1p-53; }
CATENA_FN float unit24(unsigned int word) { return float(word >> 8) * 0x1p-24f; }
// High 64 bits of bits * range; a range of 0 stands for 2^64.
CATENA_FN unsigned long long scaled(unsigned long long bits, unsigned long long range) {
  const unsigned long long a1 = bits >> 32, a0 = bits & 0xffffffffull;
  const unsigned long long b1 = range >> 32, b0 = range & 0xffffffffull;
  const unsigned long long low = a0 * b0, mid1 = a1 * b0 + (low >> 32);
  const unsigned long long mid2 = a0 * b1 + (mid1 & 0xffffffffull);
  return range == 0 ? bits : a1 * b1 + (mid1 >> 32) + (mid2 >> 32);
}

}  // namespace philox
}  // namespace catena
