#include "googlenet.h"

#include "catena/functions/connection/inception.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/noise/dropout.h"
#include "catena/functions/normalization/local_response_normalization.h"
#include "catena/functions/pooling/average_pooling_2d.h"
#include "catena/functions/pooling/max_pooling_2d.h"

namespace imagenet {
namespace {

namespace F = catena::functions;
using F::Extent2D;

Variable pooled(const Variable& x, int64_t pad = 0) {
  return F::max_pooling_2d(x, 3, {.stride = Extent2D(2), .pad = pad});
}
// 4 x 4 of what the side heads see.
Variable pooled_for_side(const Variable& x) {
  return F::average_pooling_2d(x, 5, {.stride = Extent2D(3)});
}

struct SideHead : catena::FunctionSet {
  F::Convolution2D conv;
  F::Linear fc1{2048, 1024, {.flatten = true}}, fc2{1024, kClasses};
  CATENA_FUNCTIONS(conv, fc1, fc2)

  explicit SideHead(int64_t channels) : conv(channels, 128, 1) {}
  Variable operator()(const Variable& x) {
    return fc2(fc1.relu(F::relu(conv(pooled_for_side(x)))));
  }
};

class GoogLeNet final : public Network {
 public:
  F::Convolution2D conv1{3, 64, 7, {.stride = 2, .pad = 3}}, conv2_reduce{64, 64, 1};
  F::Convolution2D conv2{64, 192, 3, {.pad = 1}};
  F::Inception inc3a{192, 64, 96, 128, 16, 32, 32}, inc3b{256, 128, 128, 192, 32, 96, 64};
  F::Inception inc4a{480, 192, 96, 208, 16, 48, 64}, inc4b{512, 160, 112, 224, 24, 64, 64};
  F::Inception inc4c{512, 128, 128, 256, 24, 64, 64}, inc4d{512, 112, 144, 288, 32, 64, 64};
  F::Inception inc4e{528, 256, 160, 320, 32, 128, 128};
  F::Inception inc5a{832, 256, 160, 320, 32, 128, 128}, inc5b{832, 384, 192, 384, 48, 128, 128};
  F::Linear loss3_fc{1024, kClasses, {.flatten = true}};
  SideHead loss1{512}, loss2{528};
  CATENA_FUNCTIONS(conv1, conv2_reduce, conv2, inc3a, inc3b, inc4a, inc4b, inc4c, inc4d, inc4e,
                   inc5a, inc5b, loss3_fc, loss1, loss2)

  GoogLeNet() : Network(kGoogLeNetInsize) {}

  Heads operator()(const Variable& x) override {
    Heads heads;
    Variable h = F::local_response_normalization(pooled(F::relu(conv1(x))), 5);
    h = F::relu(conv2(F::relu(conv2_reduce(h))));
    h = pooled(F::local_response_normalization(h, 5));
    h = inc4a(pooled(inc3b(inc3a(h))));
    if (training()) heads.sides.push_back(loss1(h));
    h = inc4d(inc4c(inc4b(h)));
    if (training()) heads.sides.push_back(loss2(h));
    h = inc5b(inc5a(pooled(inc4e(h))));
    h = F::dropout(F::average_pooling_2d(h, 7, {.stride = Extent2D(1)}), 0.4, training());
    heads.main = loss3_fc(h);
    return heads;
  }
};

struct NormalizedSideHead : catena::FunctionSet {
  F::Convolution2D conv{576, 128, 1, {.nobias = true}};
  F::BatchNormalization norm1{128};
  F::Linear fc1{2048, 1024, {.nobias = true, .flatten = true}};
  F::BatchNormalization norm2{1024};
  F::Linear fc2{1024, kClasses};
  CATENA_FUNCTIONS(conv, norm1, fc1, norm2, fc2)

  Variable operator()(const Variable& x) {
    return fc2(norm2.relu(fc1(norm1.relu(conv(pooled_for_side(x))))));
  }
};

class GoogLeNetBN final : public Network {
 public:
  F::Convolution2D conv1{3, 64, 7, {.stride = 2, .pad = 3, .nobias = true}};
  F::BatchNormalization norm1{64};
  F::Convolution2D conv2{64, 192, 3, {.pad = 1, .nobias = true}};
  F::BatchNormalization norm2{192};
  F::InceptionBN inc3a{192, 64, 64, 64, 64, 96, "avg", 32};
  F::InceptionBN inc3b{256, 64, 64, 96, 64, 96, "avg", 64};
  F::InceptionBN inc3c{320, 0, 128, 160, 64, 96, "max", {}, 2};
  F::InceptionBN inc4a{576, 224, 64, 96, 96, 128, "avg", 128};
  F::InceptionBN inc4b{576, 192, 96, 128, 96, 128, "avg", 128};
  F::InceptionBN inc4c{576, 128, 128, 160, 128, 160, "avg", 128};
  F::InceptionBN inc4d{576, 64, 128, 192, 160, 192, "avg", 128};
  F::InceptionBN inc4e{576, 0, 128, 192, 192, 256, "max", {}, 2};
  F::InceptionBN inc5a{1024, 352, 192, 320, 160, 224, "avg", 128};
  F::InceptionBN inc5b{1024, 352, 192, 320, 192, 224, "max", 128};
  F::Linear out{1024, kClasses, {.flatten = true}};
  NormalizedSideHead side1, side2;
  CATENA_FUNCTIONS(conv1, norm1, conv2, norm2, inc3a, inc3b, inc3c, inc4a, inc4b, inc4c, inc4d,
                   inc4e, inc5a, inc5b, out, side1, side2)

  GoogLeNetBN() : Network(kGoogLeNetInsize) {}

  Heads operator()(const Variable& x) override {
    Heads heads;
    Variable h = pooled(norm1.relu(conv1(x)), 1);
    h = pooled(norm2.relu(conv2(h)), 1);
    h = inc4a(inc3c(inc3b(inc3a(h))));
    heads.sides.push_back(side1(h));
    h = inc4d(inc4c(inc4b(h)));
    heads.sides.push_back(side2(h));
    h = inc5b(inc5a(inc4e(h)));
    heads.main = out(F::average_pooling_2d(h, 7));
    return heads;
  }
};

}  // namespace

std::unique_ptr<Network> make_googlenet() { return std::make_unique<GoogLeNet>(); }
std::unique_ptr<Network> make_googlenetbn() { return std::make_unique<GoogLeNetBN>(); }

}  // namespace imagenet
