#include "resnet50.h"

#include <optional>
#include <vector>

#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/math/sum.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "catena/functions/pooling/max_pooling_2d.h"

namespace imagenet {
namespace {

namespace F = catena::functions;

// A convolution without bias, and the normalization behind it.
struct Normalized : catena::FunctionSet {
  F::Convolution2D conv;
  F::BatchNormalization bn;
  CATENA_FUNCTIONS(conv, bn)

  Normalized(int64_t in, int64_t out, int64_t window, int64_t stride)
      : conv(in, out, window, {.stride = stride, .pad = window / 2, .nobias = true}), bn(out) {}
  Variable operator()(const Variable& x) { return bn(conv(x)); }
  Variable relu(const Variable& x) { return bn.relu(conv(x)); }
};

// Three convolutions beside the way through; the stride is in that of 3 x 3.
struct Bottleneck : catena::FunctionSet {
  Normalized a, b, c;
  std::optional<Normalized> shortcut;  // none: x itself
  CATENA_FUNCTIONS(a, b, c, shortcut)

  Bottleneck(int64_t in, int64_t middle, int64_t stride)
      : a(in, middle, 1, 1), b(middle, middle, 3, stride), c(middle, 4 * middle, 1, 1) {
    if (in != 4 * middle) shortcut.emplace(in, 4 * middle, 1, stride);
  }
  Variable operator()(const Variable& x) {
    const Variable h = c.conv(b.relu(a.relu(x)));
    return c.bn.add_relu(h, shortcut ? (*shortcut)(x) : x);
  }
};

class ResNet50 final : public Network {
 public:
  Normalized stem{3, 64, 7, 2};
  std::vector<Bottleneck> blocks;
  F::Linear fc{2048, kClasses};
  CATENA_FUNCTIONS(stem, blocks, fc)

  ResNet50() : Network(kResNetInsize) {
    int64_t in = 64, middle = 64;
    for (const int count : {3, 4, 6, 3}) {
      for (int i = 0; i < count; ++i) {
        blocks.emplace_back(in, middle, i == 0 && middle > 64 ? 2 : 1);
        in = 4 * middle;
      }
      middle *= 2;
    }
  }

  Heads operator()(const Variable& x) override {
    Variable h = F::max_pooling_2d(stem.relu(x), 3,
                                   {.stride = F::Extent2D(2), .pad = 1, .cover_all = false});
    for (Bottleneck& block : blocks) h = block(h);
    return {fc(F::mean(h, {2, 3})), {}};
  }
};

}  // namespace

std::unique_ptr<Network> make_resnet50() { return std::make_unique<ResNet50>(); }

}  // namespace imagenet
