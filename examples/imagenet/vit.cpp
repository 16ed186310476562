#include "vit.h"

#include <vector>

#include "catena/array/creation.h"
#include "catena/functions/array/concat.h"
#include "catena/functions/array/get_item.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/transpose.h"
#include "catena/functions/attention/transformer.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/noise/dropout.h"

namespace imagenet {
namespace {

namespace F = catena::functions;

constexpr int64_t kSize = 768, kHeads = 12, kLayers = 12, kPatch = 16;
constexpr int64_t kPatches = (kVitInsize / kPatch) * (kVitInsize / kPatch);
constexpr double kDropout = 0.1;
const catena::initializers::Normal kStart(0.02);

// Squares of a picture as a sequence, behind a token of which the classes are made.
class Vit final : public Network {
 public:
  F::Convolution2D patches{3, kSize, kPatch, {.stride = F::Extent2D(kPatch), .initialW = kStart}};
  F::EmbedID token{1, kSize, {.initialW = kStart}};
  F::EmbedID places{kPatches + 1, kSize, {.initialW = kStart}};
  std::vector<F::TransformerEncoderLayer> layers;
  F::LayerNormalization norm{kSize};
  F::Linear fc{kSize, kClasses, {.initialW = kStart}};
  CATENA_FUNCTIONS(patches, token, places, layers, norm, fc)

  Vit() : Network(kVitInsize) {
    for (int64_t i = 0; i < kLayers; ++i)
      layers.emplace_back(kSize, kHeads,
                          F::TransformerOptions{.inner = 4 * kSize,
                                                .dropout = kDropout,
                                                .activation = F::TransformerActivation::kGelu,
                                                .pre_norm = true,
                                                .initialW = kStart});
  }

  Heads operator()(const Variable& x) override {
    const int64_t n = x.shape()[0];
    const Variable squares = F::transpose(F::reshape(patches(x), {n, kSize, kPatches}), {0, 2, 1});
    const Variable all =
        F::concat({token(catena::zeros({n, 1}, catena::dtype::int32)), squares}, 1);
    F::ResidualStream stream(
        F::dropout(all + places(catena::arange(kPatches + 1)), kDropout, training()));
    for (const F::TransformerEncoderLayer& layer : layers) layer.add_to(stream);
    return {fc(norm(F::get_item(stream.sum(), {catena::Slice(), 0}))), {}};
  }
};

}  // namespace

std::unique_ptr<Network> make_vit() { return std::make_unique<Vit>(); }

}  // namespace imagenet
