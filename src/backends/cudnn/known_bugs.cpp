#include "backends/cudnn/known_bugs.h"

namespace catena::cudnn {
namespace {

// Whether other padding behind the image than in front of it gives the wanted extents.
bool is_padded_unevenly(const Problem& p) {
  for (int k = 0; k < p.window.axes; ++k)
    if (p.window.positions(k, p.image[k]) != p.out[k]) return true;
  return false;
}

constexpr KnownBug<Problem> kBugs[] = {
    {"cuDNN 9.19 on an H200: engines accept other padding behind the image than in front of it, "
     "but weight gradients are wrong",
     &is_padded_unevenly},
};

}  // namespace

const KnownBug<Problem>* known_bug(const Problem& problem) {
  return catena::known_bug(std::span<const KnownBug<Problem>>(kBugs), problem);
}

}  // namespace catena::cudnn
