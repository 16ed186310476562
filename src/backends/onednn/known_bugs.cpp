#include "backends/onednn/known_bugs.h"

namespace catena::onednn {
namespace {

// Columns of W that never meet the image get what was in the scratch memory instead of 0.
bool strides_past_the_width(const Problem& p) {
  return p.pass == ConvolutionPass::kGradW && p.dtype == Dtype::kBFloat16 &&
         p.window.stride[1] > p.image[1];
}

constexpr KnownBug<Problem> kBugs[] = {
    {"oneDNN 2.6 (jit_bf16:avx512_core): weight gradients in bfloat16 hold uninitialised memory "
     "where the horizontal stride exceeds the width of the image",
     &strides_past_the_width},
};

}  // namespace

const KnownBug<Problem>* known_bug(const Problem& problem) {
  return catena::known_bug(std::span<const KnownBug<Problem>>(kBugs), problem);
}

}  // namespace catena::onednn
