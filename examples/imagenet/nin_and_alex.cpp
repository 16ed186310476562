#include "nin_and_alex.h"

#include <cmath>
#include <optional>

#include "catena/functions/array/reshape.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/noise/dropout.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "catena/functions/normalization/local_response_normalization.h"
#include "catena/functions/pooling/average_pooling_2d.h"
#include "catena/functions/pooling/max_pooling_2d.h"

namespace imagenet {
namespace {

namespace F = catena::functions;

Variable pooled(const Variable& x) { return F::max_pooling_2d(x, 3, {.stride = F::Extent2D(2)}); }

// A convolution and two of 1 x 1, each with relu.
struct NinBlock : catena::FunctionSet {
  F::Convolution2D conv, a, b;
  CATENA_FUNCTIONS(conv, a, b)

  struct Sizes {
    int64_t in, middle, out, window, stride = 1, pad = 0;
  };
  explicit NinBlock(const Sizes& s)
      : conv(s.in, s.middle, s.window, {.stride = s.stride, .pad = s.pad, .wscale = std::sqrt(2)}),
        a(s.middle, s.middle, 1, {.wscale = std::sqrt(2)}),
        b(s.middle, s.out, 1, {.wscale = std::sqrt(2)}) {}

  Variable operator()(const Variable& x) { return F::relu(b(F::relu(a(F::relu(conv(x)))))); }
};

class Nin final : public Network {
 public:
  NinBlock block1{{.in = 3, .middle = 96, .out = 96, .window = 11, .stride = 4}};
  NinBlock block2{{.in = 96, .middle = 256, .out = 256, .window = 5, .pad = 2}};
  NinBlock block3{{.in = 256, .middle = 384, .out = 384, .window = 3, .pad = 1}};
  NinBlock block4{{.in = 384, .middle = 1024, .out = kClasses, .window = 3, .pad = 1}};
  CATENA_FUNCTIONS(block1, block2, block3, block4)

  Nin() : Network(kAlexInsize) {}

  Heads operator()(const Variable& x) override {
    const Variable h = pooled(block3(pooled(block2(pooled(block1(x))))));
    const Variable y = block4(F::dropout(h, 0.5, training()));
    return {F::reshape(F::average_pooling_2d(y, 6), {x.shape()[0], kClasses}), {}};
  }
};

class Alex final : public Network {
 public:
  F::Convolution2D conv1{3, 96, 11, {.stride = 4}}, conv2{96, 256, 5, {.pad = 2}};
  F::Convolution2D conv3{256, 384, 3, {.pad = 1}}, conv4{384, 384, 3, {.pad = 1}};
  F::Convolution2D conv5{384, 256, 3, {.pad = 1}};
  F::Linear fc6{9216, 4096, {.flatten = true}}, fc7{4096, 4096}, fc8{4096, kClasses};
  std::optional<F::BatchNormalization> bn1, bn2;
  CATENA_FUNCTIONS(conv1, bn1, conv2, bn2, conv3, conv4, conv5, fc6, fc7, fc8)

  explicit Alex(Normalization normalization) : Network(kAlexInsize) {
    if (normalization != Normalization::kBatch) return;
    bn1.emplace(96);
    bn2.emplace(256);
  }

  Heads operator()(const Variable& x) override {
    Variable h = pooled(normalized(bn1, conv1(x)));
    h = pooled(normalized(bn2, conv2(h)));
    h = pooled(F::relu(conv5(F::relu(conv4(F::relu(conv3(h)))))));
    h = F::dropout(fc6.relu(h), 0.5, training());
    h = F::dropout(fc7.relu(h), 0.5, training());
    return {fc8(h), {}};
  }

 private:
  static Variable normalized(const std::optional<F::BatchNormalization>& bn, const Variable& h) {
    return bn ? bn->relu(h) : F::relu(F::local_response_normalization(h));
  }
};

}  // namespace

std::unique_ptr<Network> make_nin() { return std::make_unique<Nin>(); }
std::unique_ptr<Network> make_alex(Normalization normalization) {
  return std::make_unique<Alex>(normalization);
}

}  // namespace imagenet
