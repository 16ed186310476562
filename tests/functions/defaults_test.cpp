// What functions, layers and initializers do when nothing but their operands is said.
#include "defaults.h"

#include "catena/array/manipulation.h"
#include "catena/functions/functions.h"
#include "catena/functions/initializers.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using Operands = testing::DefaultRow::Operands;
using Rows = std::vector<testing::DefaultRow>;

// A function of one operand, and of two.
testing::DefaultRow row(const char* name, const char* operand, Variable (*f)(const Variable&)) {
  return {name, [=](const Operands& in) { return f(in(operand)).data(); }};
}
testing::DefaultRow row(const char* name, const char* first, const char* second,
                        Variable (*f)(const Variable&, const Variable&)) {
  return {name, [=](const Operands& in) { return f(in(first), in(second)).data(); }};
}
using V = const Variable&;

Rows activations() {
  return {
      row("soft_shrink", "y", [](V y) { return F::soft_shrink(y); }),
      row("hard_shrink", "y", [](V y) { return F::hard_shrink(y); }),
      row("elu", "y", [](V y) { return F::elu(y); }),
      row("relu6", "wide", [](V x) { return F::relu6(x); }),
      row("leaky_relu", "y", [](V y) { return F::leaky_relu(y); }),
      row("clipped_relu", "wide", [](V x) { return F::clipped_relu(x); }),
      row("softmax", "cube", [](V x) { return F::softmax(x); }),
      row("log_softmax", "cube", [](V x) { return F::log_softmax(x); }),
      row("crelu", "cube", [](V x) { return F::crelu(x); }),
      row("PReLU", "x", [](V x) { return F::PReLU({}, {.dtype = Dtype::kFloat64})(x); }),
      row("maxout", "image", [](V x) { return F::maxout(x, 2); }),
      row("softplus", "y", [](V y) { return F::softplus(y); }),
  };
}

Rows arrays() {
  return {
      row("sort", "cube", [](V x) { return F::sort(x); }),
      row("diff", "cube", [](V x) { return F::diff(x); }),
      row("flip", "cube", [](V x) { return F::flip(x); }),
      row("roll", "cube", [](V x) { return F::roll(x, 1); }),
      row("repeat", "cube", [](V x) { return F::repeat(x, 2); }),
      row("cumsum", "cube", [](V x) { return F::cumsum(x); }),
      row("cumprod", "cube", [](V x) { return F::cumprod(x); }),
      row("tril", "x", [](V x) { return F::tril(x); }),
      row("triu", "x", [](V x) { return F::triu(x); }),
      row("diagonal", "cube", [](V x) { return F::diagonal(x); }),
      row("trace", "square", [](V x) { return F::trace(x); }),
      row("rot90", "cube", [](V x) { return F::rot90(x); }),
      row("transpose", "cube", [](V x) { return F::transpose(x); }),
      row("rollaxis", "cube", [](V x) { return F::rollaxis(x, 2); }),
      row("pad", "x", [](V x) { return F::pad(x, 1); }),
      row("pad_widths", "x",
          [](V x) {
            return F::pad(x, {{1, 1}, {1, 1}});
          }),
      row("stack", "x", "y",
          [](V x, V y) {
            return F::stack({x, y});
          }),
      row("concat", "cube",
          [](V x) {
            return F::concat({x, x});
          }),
      row("separate", "cube", [](V x) { return F::separate(x).at(1); }),
      row("take", "x", "ids", [](V x, V ids) { return F::take(x, ids); }),
      row("squeeze", "cube", [](V x) { return F::squeeze(x(Slice(0, 1), ellipsis, Slice(0, 1))); }),
      {"one_hot",
       [](const Operands& in) {
         const Array y = F::one_hot(in("labels"), 3).data();
         EXPECT_EQ(y.dtype(), Dtype::kFloat32);
         return y;
       }},
      row("resize_images", "image",
          [](V x) {
            return F::resize_images(x, {5, 11});
          }),
  };
}

Rows mathematics() {
  return {
      row("sum", "cube", [](V x) { return F::sum(x); }),
      row("mean", "cube", [](V x) { return F::mean(x); }),
      row("max", "cube", [](V x) { return F::max(x); }),
      row("min", "cube", [](V x) { return F::min(x); }),
      row("prod", "cube", [](V x) { return F::prod(x); }),
      row("var", "cube", [](V x) { return F::var(x); }),
      row("std", "cube", [](V x) { return F::std(x); }),
      row("norm", "cube", [](V x) { return F::norm(x); }),
      row("logsumexp", "cube", [](V x) { return F::logsumexp(x); }),
      row("average", "cube", [](V x) { return F::average(x); }),
      row("tensordot", "cube", "other_cube", [](V a, V b) { return F::tensordot(a, b); }),
      row("matmul", "square", "x", [](V a, V x) { return F::matmul(a, F::transpose(x)); }),
      row("batch_matmul", "cube",
          [](V x) {
            return F::batch_matmul(x, F::transpose(x, {0, 2, 1}));
          }),
  };
}

Rows windows() {
  return {
      row("max_pooling_2d", "image", [](V x) { return F::max_pooling_2d(x, 3); }),
      row("average_pooling_2d", "image", [](V x) { return F::average_pooling_2d(x, 3); }),
      row("unpooling_2d", "image",
          [](V x) { return F::unpooling_2d(x(ellipsis, Slice(0, 2), Slice(0, 2)), 3); }),
      row("convolution_2d", "image", "weight", [](V x, V W) { return F::convolution_2d(x, W); }),
      row("convolution_2d_stride", "image", "weight",
          [](V x, V W) { return F::convolution_2d(x, W, {.stride = 3}); }),
      row("Convolution2D", "image", "weight",
          [](V x, V W) { return F::Convolution2D(6, 4, 3, {.initialW = W.data()})(x); }),
      row("Convolution2D_stride", "image", "weight",
          [](V x, V W) {
            return F::Convolution2D(6, 4, 3, {.stride = 3, .initialW = W.data()})(x);
          }),
      row("deconvolution_2d", "image", "deconvolution",
          [](V x, V W) { return F::deconvolution_2d(x, W); }),
      row("Deconvolution2D", "image", "deconvolution",
          [](V x, V W) { return F::Deconvolution2D(6, 4, 3, {.initialW = W.data()})(x); }),
      row("convolution_nd", "cube", "weight1", [](V x, V W) { return F::convolution_nd(x, W); }),
      row("convolution_nd_stride", "cube", "weight1",
          [](V x, V W) { return F::convolution_nd(x, W, {.stride = 3}); }),
      row("ConvolutionND", "cube", "weight1",
          [](V x, V W) { return F::Convolution1D(3, 4, 2, {.initialW = W.data()})(x); }),
      row("ConvolutionND_stride", "cube", "weight1",
          [](V x, V W) {
            return F::Convolution1D(3, 4, 2, {.stride = 3, .initialW = W.data()})(x);
          }),
  };
}

Rows normalization() {
  const auto affine = [](const char* name, const char* x, auto f) {
    return testing::DefaultRow{
        name, [=](const Operands& in) { return f(in(x), in("gamma"), in("beta")).data(); }};
  };
  return {
      affine("batch_normalization", "small_image",
             [](V x, V gamma, V beta) { return F::batch_normalization(x, gamma, beta); }),
      {"running",
       [](const Operands& in) {
         const Array mean = in("mean").copy(), var = in("var").copy();
         F::batch_normalization(in("image"), in("gamma"), in("beta"),
                                {.running_mean = mean, .running_var = var});
         return stack({mean, var});
       }},
      {"fixed_batch_normalization",
       [](const Operands& in) {
         return F::fixed_batch_normalization(in("small_image"), in("gamma"), in("beta"), in("mean"),
                                             in("var"))
             .data();
       }},
      row("BatchNormalization", "small_image",
          [](V x) { return F::BatchNormalization(6, {.dtype = Dtype::kFloat64})(x); }),
      row("untrained", "small_image",
          [](V x) { return F::BatchNormalization(6, {.dtype = Dtype::kFloat64})(x, false); }),
      {"averages",
       [](const Operands& in) {
         const F::BatchNormalization bn(6, {.dtype = Dtype::kFloat64});
         const Array mean = bn.avg_mean.data().copy(), var = bn.avg_var.data().copy();
         bn(in("image"));
         return stack({mean, var, bn.avg_mean.data(), bn.avg_var.data()});
       }},
      affine("group_normalization", "small_image",
             [](V x, V gamma, V beta) { return F::group_normalization(x, 3, gamma, beta); }),
      row("GroupNormalization", "small_image",
          [](V x) { return F::GroupNormalization(3, 6, {.dtype = Dtype::kFloat64})(x); }),
      affine("instance_normalization", "small_image",
             [](V x, V gamma, V beta) { return F::instance_normalization(x, gamma, beta); }),
      row("InstanceNormalization", "small_image",
          [](V x) { return F::InstanceNormalization(6, {.dtype = Dtype::kFloat64})(x); }),
      affine("layer_normalization", "small",
             [](V x, V gamma, V beta) { return F::layer_normalization(x, gamma, beta); }),
      row("LayerNormalization", "small",
          [](V x) { return F::LayerNormalization(6, {.dtype = Dtype::kFloat64})(x); }),
      row("rms_normalization", "small", "gamma",
          [](V x, V gamma) { return F::rms_normalization(x, gamma); }),
      row("RMSNormalization", "small",
          [](V x) { return F::RMSNormalization(6, {.dtype = Dtype::kFloat64})(x); }),
      row("local_response_normalization", "image",
          [](V x) { return F::local_response_normalization(x); }),
  };
}

Variable moved(V y, V tiny, double times) { return y + tiny * times; }

Rows losses() {
  return {
      row("softmax_cross_entropy", "y", "ignored",
          [](V y, V t) { return F::softmax_cross_entropy(y, t); }),
      row("softmax_cross_entropy_options", "y", "ignored",
          [](V y, V t) { return F::softmax_cross_entropy(y, t, F::SoftmaxCrossEntropyOptions()); }),
      row("sigmoid_cross_entropy", "x", "wide_labels",
          [](V x, V t) { return F::sigmoid_cross_entropy(x, t); }),
      row("sigmoid_cross_entropy_options", "x", "wide_labels",
          [](V x, V t) { return F::sigmoid_cross_entropy(x, t, F::SigmoidCrossEntropyOptions()); }),
      row("negative_log_likelihood", "y", "ignored",
          [](V y, V t) { return F::negative_log_likelihood(F::log_softmax(y), t); }),
      row("mean_squared_error", "x", "y", [](V x, V y) { return F::mean_squared_error(x, y); }),
      row("mean_absolute_error", "x", "y", [](V x, V y) { return F::mean_absolute_error(x, y); }),
      row("huber_loss", "x", "y", [](V x, V y) { return F::huber_loss(x, y, 1); }),
      row("smooth_l1", "x", "y", [](V x, V y) { return F::smooth_l1(x, y); }),
      row("hinge", "y", "labels", [](V y, V t) { return F::hinge(y, t); }),
      row("triplet", "y", "tiny",
          [](V y, V d) { return F::triplet(y, moved(y, d, 1), moved(y, d, -1)); }),
      {"contrastive",
       [](const Operands& in) {
         return F::contrastive(in("y"), moved(in("y"), in("tiny"), 1), in("signs")).data();
       }},
      row("focal_loss", "y", "wide_labels",
          [](V y, V t) { return F::focal_loss(y, maximum(t.data(), 0)); }),
      row("kl_divergence", "y", "x",
          [](V y, V x) { return F::kl_divergence(F::log_softmax(y), F::softmax(x)); }),
      row("cosine_similarity", "tiny", "y",
          [](V a, V b) { return F::cosine_similarity(a * 1e-4, b * 1e-8); }),
      {"cosine_embedding_loss",
       [](const Operands& in) {
         return F::cosine_embedding_loss(in("y"), moved(in("y"), in("tiny"), 1000),
                                         in("plus_minus"))
             .data();
       }},
      row("gaussian_kl_divergence", "x", "y",
          [](V x, V y) { return F::gaussian_kl_divergence(x, y); }),
      row("bernoulli_nll", "y", "x", [](V y, V x) { return F::bernoulli_nll(F::sigmoid(y), x); }),
      {"gaussian_nll",
       [](const Operands& in) { return F::gaussian_nll(in("x"), in("y"), in("tiny")).data(); }},
      row("connectionist_temporal_classification", "steps", "targets",
          [](V x, V t) { return F::connectionist_temporal_classification(x, t, 0); }),
      {"scores",
       [](const Operands& in) {
         const Variable y(in("y").copy());
         F::check_labels(in("ignored"), 3);
         F::softmax_cross_entropy(y, in("ignored"), F::SoftmaxCrossEntropyOptions()).backward();
         return y.data();
       }},
  };
}

Rows measures() {
  return {
      row("accuracy", "y", "ignored", [](V y, V t) { return F::accuracy(y, t); }),
      row("binary_accuracy", "x", "wide_labels", [](V x, V t) { return F::binary_accuracy(x, t); }),
      row("top_k_accuracy", "y", "ignored", [](V y, V t) { return F::top_k_accuracy(y, t, 2); }),
      row("precision", "y", "labels", [](V y, V t) { return F::precision(y, t); }),
      row("recall", "y", "labels", [](V y, V t) { return F::recall(y, t); }),
      row("f1_score", "y", "labels", [](V y, V t) { return F::f1_score(y, t); }),
      row("r2_score", "y", "x", [](V y, V x) { return F::r2_score(y, x); }),
  };
}

// The share of ones that became zeros, to a tenth, and the largest number.
Array dropped(const Variable& y) {
  const Array share = rint(mean(y.data() == 0) * 10) / 10;
  return stack({share, y.data().max()});
}

// The shares of the rows that a sampler draws, by its table: each slot has a row below its
// threshold and one above.
Array shares(const F::WalkerAlias& sampler) {
  std::vector<double> share(size_t(sampler.size()), 0);
  const auto threshold = sampler.threshold.data().to_vector<double>();
  const auto values = sampler.values.data().to_vector<int32_t>();
  for (size_t k = 0; k < threshold.size(); ++k) {
    share[size_t(values[2 * k])] += threshold[k] / double(share.size());
    share[size_t(values[2 * k + 1])] += (1 - threshold[k]) / double(share.size());
  }
  return array(share);
}

Rows noise() {
  return {
      {"dropout", [](const Operands&) { return dropped(F::dropout(ones({10000}))); }},
      {"Dropout", [](const Operands&) { return dropped(F::Dropout()(ones({10000}))); }},
      {"NegativeSampling",
       [](const Operands&) {
         return shares(F::NegativeSampling(2, {1, 16, 81}, 1).sampler);
       }},
  };
}

TEST(Defaults, OfFunctions) {
  Rows all;
  for (const Rows& some : {activations(), arrays(), mathematics(), windows(), normalization(),
                           losses(), measures(), noise()})
    all.insert(all.end(), some.begin(), some.end());
  random::seed(1);
  testing::expect_defaults("functions", all, 1e-6);
}

template <class Rule>
testing::DefaultRow drawn(const char* name, const Rule& rule) {
  return {name, [=](const Operands&) {
            return sqrt(mean(square(rule({300, 200}).astype(Dtype::kFloat64))));
          }};
}

// Start values of layers: layer_initializers_test.cpp.
TEST(Defaults, OfInitializers) {
  using namespace initializers;
  random::seed(1);
  testing::expect_defaults("initializers",
                           {
                               drawn("Uniform", Uniform()),
                               drawn("Normal", Normal()),
                               drawn("LeCunNormal", LeCunNormal()),
                               drawn("LeCunUniform", LeCunUniform()),
                               drawn("GlorotNormal", GlorotNormal()),
                               drawn("GlorotUniform", GlorotUniform()),
                               drawn("HeNormal", HeNormal()),
                               drawn("HeUniform", HeUniform()),
                               drawn("Orthogonal", Orthogonal()),
                           },
                           0.03);
}

// NStepLSTM's own default is the state of the layer.
TEST(Defaults, NStepLstmDropsUnlessToldOtherwise) {
  const F::NStepLSTM layer(2, 3, 3);
  Variables weights;
  for (const auto& each : layer.layers) weights.insert(weights.end(), {each.Wx, each.Wh, each.b});
  const Array x = ones({2, 2, 3}, dtype::float32);
  const auto last = [&](const auto&... train) {
    return F::n_step_lstm(2, 0.999, {}, {}, weights, x, train...).hy.data();
  };
  EXPECT_NE(testing::difference(last(), last(false)), "");
  EXPECT_EQ(layer(x).hy.data().to_vector<double>(), layer(x, false).hy.data().to_vector<double>());
}

}  // namespace
}  // namespace catena
