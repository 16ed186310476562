#include "backends/cudnn/known_bugs.h"

namespace catena::cudnn {
namespace {

// Whether other padding behind the image than in front of it gives the wanted extents.
bool is_padded_unevenly(const Problem& p) {
  for (int k = 0; k < p.window.axes; ++k)
    if (p.window.positions(k, p.image[k]) != p.out[k]) return true;
  return false;
}

// Exact float32 weight gradients of windows above 3x3 with stride 1 and channels first.
bool loses_digits(const Problem& p) {
  if (p.pass != ConvolutionPass::kGradW || p.dtype != Dtype::kFloat32 || !p.is_exact())
    return false;
  for (int k = 0; k < p.window.axes; ++k)
    if (p.window.stride[k] != 1) return false;
  return !p.channels_last && p.window.taps() > 9;
}

constexpr KnownBug<Problem> kBugs[] = {
    {"cuDNN 9.19 on an H200: engines accept other padding behind the image than in front of it, "
     "but weight gradients are wrong",
     &is_padded_unevenly},
    {"cuDNN 9.19 on an H200: engines without a numerical note transform the image all the same, "
     "and "
     "are off by up to 3e-3 of the largest element",
     &loses_digits},
};

constexpr size_t kFirstTried = 91400;

bool is_untried(const AttentionProblem&) { return cudnnGetVersion() < kFirstTried; }

bool is_one_row(const AttentionProblem& p) { return p.shape.queries == 1 || p.shape.keys == 1; }

constexpr KnownBug<AttentionProblem> kAttentionBugs[] = {
    {"cuDNN before 9.14 was not tried; before 9.6 it adds to sums that it has not cleared",
     &is_untried},
    {"cuDNN before 9.27: gradients of one query are NaN where all its scores are below -88, and "
     "one causal query of grouped heads is wrong (github.com/NVIDIA/cudnn-frontend/issues/1072)",
     &is_one_row},
};

}  // namespace

const KnownBug<AttentionProblem>* known_bug(const AttentionProblem& problem) {
  return catena::known_bug(std::span<const KnownBug<AttentionProblem>>(kAttentionBugs), problem);
}

const KnownBug<Problem>* known_bug(const Problem& problem) {
  return catena::known_bug(std::span<const KnownBug<Problem>>(kBugs), problem);
}

}  // namespace catena::cudnn
