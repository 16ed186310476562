// Instances of the kernels of attention, each of which is compiled in its own object
// (instance.cu.in): 16-bit and float32 elements, heads of at most 64, 128 and 256 columns.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "backends/cuda/attention/attention.h"

namespace catena::gpu {

template <class T, int kColumns>
void run_attention(const AttentionArgs& args, const Launch& launch);
template <class T, int kColumns>
void run_attention_query_grad(const AttentionGradArgs& args, const Launch& launch);
template <class T, int kColumns>
void run_attention_key_grad(const AttentionGradArgs& args, const Launch& launch);

namespace {

inline unsigned attention_blocks(int rows, int of_tile, int64_t heads) {
  return unsigned((rows + of_tile - 1) / of_tile * heads);
}

// Calls f with whether the kernels of plain calls take this one: 16-bit elements and the sizes of
// most networks, neither mask, bias, softcap nor dropout, and scores of which the largest is that
// of the largest product.
template <class T, int kColumns, class F>
void choose_plain(const AttentionArgs& args, F f) {
  if constexpr (sizeof(T) == 2 && kColumns <= 128) {
    if (!args.mask.data && !args.bias.data && args.softcap == 0 && args.dropout == 0 &&
        args.scale > 0)
      return f(std::integral_constant<bool, true>());
  }
  f(std::integral_constant<bool, false>());
}

}  // namespace
}  // namespace catena::gpu
