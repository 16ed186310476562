#include "backends/onednn/known_bugs.h"

namespace catena::onednn {
namespace {

// Columns of W that never meet the image get what was in the scratch memory instead of 0.
bool strides_past_the_width(const Problem& p) {
  return p.pass == ConvolutionPass::kGradW && p.dtype == Dtype::kBFloat16 &&
         p.window.stride[1] > p.image[1];
}

// It reads rows that the image does not have, and mostly crashes.
bool looks_behind_the_image(const Problem& p) {
  if (p.pass != ConvolutionPass::kForward || p.dtype != Dtype::kBFloat16) return false;
  for (int k = 0; k < p.window.axes; ++k)
    if ((p.out[k] - 1) * p.window.stride[k] - p.window.pad[k] >= p.image[k]) return true;
  return false;
}

constexpr KnownBug<Problem> kBugs[] = {
    {"oneDNN 2.6 (jit_bf16:avx512_core): weight gradients in bfloat16 hold uninitialised memory "
     "where the horizontal stride exceeds the width of the image",
     &strides_past_the_width},
    {"oneDNN 2.6 (brgconv:avx512_core_amx_bf16): the forward pass in bfloat16 reads rows that the "
     "image does not have where a window lies behind it",
     &looks_behind_the_image},
};

}  // namespace

const KnownBug<Problem>* known_bug(const Problem& problem) {
  return catena::known_bug(std::span<const KnownBug<Problem>>(kBugs), problem);
}

}  // namespace catena::onednn
