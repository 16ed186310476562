// Every type of layer that CaffeFunction reads, in both formats, against the functions that it
// stands for.
#include <functional>

#include "catena/array/manipulation.h"
#include "catena/functions/activation/elementwise.h"
#include "catena/functions/activation/softmax.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/deconvolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "catena/functions/normalization/local_response_normalization.h"
#include "catena/functions/pooling/average_pooling_2d.h"
#include "catena/functions/pooling/max_pooling_2d.h"
#include "functions/caffe/caffe_models.h"

namespace catena {
namespace {

using namespace caffe_models;

Array array_of(const Variable& v) { return v.data(); }
const Array& array_of(const Array& a) { return a; }

struct Case {
  template <class Expected>
  Case(const char* its_name, std::string its_model, Shape shape, Expected function)
      : name(its_name),
        model(std::move(its_model)),
        data(shape),
        expected([=](const Array& x) { return array_of(function(x)); }) {}

  const char* name;
  std::string model;
  Shape data;
  std::function<Array(const Array& x)> expected;
};

std::vector<Case> weighted_cases() {
  const Array W = numbers({4, 2, 3, 2}, 1), b = numbers({4}, 2), square = numbers({3, 2, 3, 3}, 3),
              D = numbers({4, 3, 3, 2}, 4), six = numbers({6}, 5), M = numbers({3, 40}, 6),
              three = numbers({3}, 7), mean = numbers({2}, 8), var = numbers({2}, 9) + 1,
              gamma = numbers({2, 1, 1}, 10), beta = numbers({2, 1, 1}, 11),
              table = numbers({5, 4}, 12);
  const auto moved = [=](const Array& x) {
    return F::convolution_2d(x, W, b, {.stride = {2, 3}, .pad = {1, 2}, .groups = 2});
  };
  const std::string moved_text =
      "convolution_param { num_output: 4 kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 3 "
      "pad_h: 1 pad_w: 2 group: 2 } ";
  const auto product = [=](const Array& x) { return F::linear(x.reshape({-1, 40}), M, three); };
  const Shape images{2, 2, 5, 4};
  return {
      {"Convolution",
       layer("Convolution",
             "convolution_param { num_output: 4 kernel_h: 3 kernel_w: 2 } " + blob(W) + blob(b)),
       images, [=](const Array& x) { return F::convolution_2d(x, W, b); }},
      {"ConvolutionMoved",
       layer("Convolution", moved_text + blob(W) + blob(b)),
       {2, 4, 7, 6},
       moved},
      {"ConvolutionMovedV1",
       old_layer(4, moved_text + old_blob({4, 2, 3, 2}, W) + old_blob({1, 1, 1, 4}, b)),
       {2, 4, 7, 6},
       moved},
      {"ConvolutionSquare",
       layer("Convolution",
             "convolution_param { num_output: 3 kernel_size: 3 stride: 2 pad: 1 dilation: 2 "
             "bias_term: false } " +
                 blob(square)),
       images,
       [=](const Array& x) {
         return F::convolution_2d(x, square, {.stride = 2, .pad = 1, .dilation = 2});
       }},
      {"ConvolutionByAxis",
       layer("Convolution",
             "convolution_param { num_output: 4 kernel_size: 3 kernel_size: 2 stride: 2 stride: 1 "
             "pad: 1 pad: 0 } " +
                 blob(W) + blob(b)),
       images,
       [=](const Array& x) {
         return F::convolution_2d(x, W, b, {.stride = {2, 1}, .pad = {1, 0}});
       }},
      {"ConvolutionWide",
       layer("Convolution",
             "convolution_param { num_output: 4 kernel_h: 3 kernel_w: 2 pad_w: 1 pad: 7 } " +
                 blob(W) + blob(b)),
       images,
       // pad_w counts although pad_h is 0.
       [=](const Array& x) {
         return F::convolution_2d(x, W, b, {.pad = {0, 1}});
       }},
      {"Deconvolution",
       layer("Deconvolution",
             "convolution_param { num_output: 6 kernel_h: 3 kernel_w: 2 stride: 2 pad: 1 group: 2 "
             "} " +
                 blob(D) + blob(six)),
       {2, 4, 3, 4},
       [=](const Array& x) {
         return F::deconvolution_2d(x, D, six, {.stride = 2, .pad = 1, .groups = 2});
       }},
      {"InnerProduct",
       layer("InnerProduct", "inner_product_param { num_output: 3 } " + blob(M) + blob(three)),
       images, product},
      {"InnerProductTransposed",
       layer(
           "InnerProduct",
           "inner_product_param { num_output: 3 transpose: true bias_term: false } " + blob(M.T())),
       images,
       [=](const Array& x) {
         return F::linear(x.reshape({-1, 40}), M);
       }},
      {"InnerProductV1",
       old_layer(14, "inner_product_param { num_output: 3 } " + old_blob({1, 1, 3, 40}, M) +
                         old_blob({1, 1, 1, 3}, three)),
       images, product},
      {"BatchNorm",
       layer("BatchNorm",
             "batch_norm_param { eps: 1e-3 } " + blob(mean) + blob(var) + blob(array({4.f}))),
       images,
       [=](const Array& x) {
         const Array one = ones({2}, dtype::float32);
         return F::fixed_batch_normalization(x, one, zeros_like(one), mean / 4, var / 4,
                                             {.eps = 1e-3});
       }},
      {"Scale",
       layer("Scale", "scale_param { bias_term: true } " + blob(gamma.reshape({2})) +
                          blob(beta.reshape({2}))),
       images, [=](const Array& x) { return x * gamma + beta; }},
      {"ScaleLastAxes", layer("Scale", "scale_param { axis: -2 num_axes: -1 } " + blob(table)),
       images, [=](const Array& x) { return x * table; }},
  };
}

std::vector<Case> other_cases() {
  const Shape images{2, 2, 5, 4};
  const auto twice = [](int64_t axis) {
    return [=](const Array& x) { return concatenate({x, x}, axis); };
  };
  const std::string again = "bottom: 'data' ";
  const auto unchanged = [](const Array& x) { return x; };
  const auto positive = [](const Array& x) { return F::relu(x); };
  return {
      {"Concat", layer("Concat", again + "concat_param { axis: 2 } "), images, twice(2)},
      {"ConcatV1", old_layer(3, again + "concat_param { concat_dim: 0 } "), images, twice(0)},
      {"ConcatChannels", layer("Concat", again), images, twice(1)},
      {"EltwiseSum", layer("Eltwise", again + "eltwise_param { coeff: 2 coeff: -0.5 } "), images,
       [](const Array& x) { return x * 1.5; }},
      {"EltwiseDefault", layer("Eltwise", again), images, [](const Array& x) { return x * 2; }},
      {"EltwiseProduct", layer("Eltwise", again + again + "eltwise_param { operation: 0 } "),
       images, [](const Array& x) { return x * x * x; }},
      {"EltwiseMaximumV1",
       "layers { type: 18 bottom: 'data' top: 'r' name: 'r' } "
       "layers { type: 25 name: 'f' bottom: 'data' bottom: 'r' top: 'y' "
       "eltwise_param { operation: 2 } }",
       images, positive},
      {"ReLU", layer("ReLU", ""), images, positive},
      {"ReLULeakyV1", old_layer(18, "relu_param { negative_slope: 0.25 } "), images,
       [](const Array& x) { return F::leaky_relu(x, 0.25); }},
      {"Sigmoid", layer("Sigmoid", ""), images, [](const Array& x) { return F::sigmoid(x); }},
      {"TanHV1", old_layer(23, ""), images, [](const Array& x) { return F::tanh(x); }},
      {"Softmax", layer("Softmax", ""), images, [](const Array& x) { return F::softmax(x); }},
      {"DropoutInTest", layer("Dropout", "dropout_param { dropout_ratio: 0.3 } "), images,
       unchanged},
      {"Split", layer("Split", "top: 'other' "), images, unchanged},
      {"LRN",
       layer("LRN", "lrn_param { local_size: 3 alpha: 0.6 beta: 0.5 k: 2 } "),
       {2, 6, 3, 2},
       [](const Array& x) { return F::local_response_normalization(x, 3, 2, 0.2, 0.5); }},
  };
}

// Sizes are rounded up, but no window begins behind the image.
std::vector<Case> pooling_cases() {
  const auto largest = [](F::Extent2D window, F::MaxPooling2DOptions options) {
    return [=](const Array& x) { return F::max_pooling_2d(x, window, options); };
  };
  const Shape images{2, 2, 5, 4};
  const std::string square = "pooling_param { kernel_size: 3 stride: 2 ";
  return {
      {"PoolingMax", layer("Pooling", square + "} "), images,
       largest(3, {.stride = F::Extent2D(2)})},
      {"PoolingFloor", layer("Pooling", square + "round_mode: 1 } "), images,
       largest(3, {.stride = F::Extent2D(2), .cover_all = false})},
      {"PoolingClippedV1",
       old_layer(17,
                 "pooling_param { kernel_h: 2 kernel_w: 3 stride_h: 2 stride_w: 1 pad_h: 1 "
                 "pad_w: 1 } "),
       {2, 2, 3, 4},
       largest({2, 3}, {.stride = F::Extent2D(2, 1), .pad = 1})},
      {"PoolingClippedRows",
       layer("Pooling", "pooling_param { kernel_h: 2 kernel_w: 3 stride: 2 pad: 1 } "), images,
       largest({2, 3}, {.stride = F::Extent2D(2), .pad = 1})},
      {"PoolingClippedColumns",
       layer("Pooling", "pooling_param { kernel_h: 3 kernel_w: 2 stride: 2 pad: 1 } "),
       {2, 2, 4, 5},
       largest({3, 2}, {.stride = F::Extent2D(2), .pad = 1})},
      {"PoolingGlobal", layer("Pooling", "pooling_param { global_pooling: true } "), images,
       largest({5, 4}, {})},
      {"PoolingGlobalAverage", layer("Pooling", "pooling_param { pool: 1 global_pooling: true } "),
       images, [](const Array& x) { return F::global_average_pooling_2d(x); }},
      {"PoolingAverage", layer("Pooling", square + "pool: 1 pad: 1 } "), images,
       [](const Array& x) {
         return F::average_pooling_2d(x, 3,
                                      {.stride = F::Extent2D(2), .pad = 1, .cover_all = true});
       }},
  };
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> result = weighted_cases();
    for (Case& c : other_cases()) result.push_back(c);
    for (Case& c : pooling_cases()) result.push_back(c);
    for (const Case& c : result) Models::all().add(c.name, c.model);
    return result;
  }();
  return all;
}
const size_t g_registered = cases().size();

class CaffeLayers : public OnDevice {};

TEST_P(CaffeLayers, AreTheirFunctions) {
  CATENA_NEEDS_PROTOBUF();
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    F::CaffeFunction f(Models::all().path(c.name));
    f.to(device());
    const Array x = numbers(c.data, 0.3), data = x.to(device());
    const Variable y = run(f, data);
    expect_equal(y.data(), c.expected(x));
    const Array last = run(f, F::channels_last(data)).data();
    EXPECT_EQ(testing::difference(last, y.data(), 1e-6, 1e-6), "");
  }
}

// Of (n, classes, 1, 1).
double at(const Array& p, int64_t n, int64_t c) { return p.at({n, c, 0, 0}).item<double>(); }

const int g_loss = Models::all().add(
    "Loss",
    "layer { name: 'f' type: 'SoftmaxWithLoss' bottom: 'data' bottom: 'label' top: 'y' "
    "top: 'p' }");

TEST_P(CaffeLayers, LossOfLabels) {
  CATENA_NEEDS_PROTOBUF();
  F::CaffeFunction f(Models::all().path("Loss"));
  const Array x = numbers({3, 4, 1, 1}, 0.3).to(device()), p = F::softmax(x).data().to_cpu();
  const Array t = array<int32_t>({2, 0, 3}).reshape({3, 1, 1}).to(device());
  const Variables y = f({{"data", x}, {"label", t}}, {"y", "p"});
  const double expected =
      -(std::log(at(p, 0, 2)) + std::log(at(p, 1, 0)) + std::log(at(p, 2, 3))) / 3;
  EXPECT_NEAR(y[0].item<float>(), expected, 1e-6);
  expect_equal(y[1].data(), p);
}

const int g_ignoring =
    Models::all().add("IgnoringLoss",
                      "layer { name: 'f' type: 'SoftmaxWithLoss' bottom: 'data' bottom: 'label' "
                      "top: 'mean' loss_param { ignore_label: 255 } } "
                      "layer { name: 'g' type: 'SoftmaxWithLoss' bottom: 'data' bottom: 'label' "
                      "top: 'batch' loss_param { ignore_label: 255 normalize: false } } "
                      "layer { name: 'h' type: 'SoftmaxWithLoss' bottom: 'data' bottom: 'label' "
                      "top: 'sum' loss_param { ignore_label: 255 normalization: 3 } }");
const int g_full_loss = Models::all().add(
    "FullLoss",
    "layer { name: 'f' type: 'SoftmaxWithLoss' bottom: 'data' bottom: 'label' top: 'y' "
    "loss_param { ignore_label: 255 normalization: 0 } }");

TEST_P(CaffeLayers, LossesIgnoreALabel) {
  CATENA_NEEDS_PROTOBUF();
  F::CaffeFunction f(Models::all().path("IgnoringLoss"));
  const Array x = numbers({3, 4, 1, 1}, 0.3).to(device()), p = F::softmax(x).data().to_cpu();
  const Array t = array<int32_t>({2, 255, 3}).reshape({3, 1, 1}).to(device());
  const Variables y = f({{"data", x}, {"label", t}}, {"mean", "batch", "sum"});
  const double sum = -std::log(at(p, 0, 2)) - std::log(at(p, 2, 3));
  EXPECT_NEAR(y[0].item<float>(), sum / 2, 1e-6);
  EXPECT_NEAR(y[1].item<float>(), sum / 3, 1e-6);
  EXPECT_NEAR(y[2].item<float>(), sum, 1e-6);
  EXPECT_THROW(F::CaffeFunction(Models::all().path("FullLoss")), IoError);
}

const int g_slices =
    Models::all().add("Slice",
                      "layer { name: 'f' type: 'Slice' bottom: 'data' top: 'a' top: 'b' top: 'c' "
                      "slice_param { axis: 2 slice_point: 1 slice_point: 3 } } "
                      "layer { name: 'g' type: 'Slice' bottom: 'data' top: 'd' top: 'e' }");

TEST_P(CaffeLayers, SlicesHaveTheirPoints) {
  CATENA_NEEDS_PROTOBUF();
  F::CaffeFunction f(Models::all().path("Slice"));
  const Array x = numbers({2, 4, 5, 3}, 0.3).to(device());
  const Variables y = f({{"data", x}}, {"a", "b", "c", "d", "e"});
  const Slice all;
  const Arrays expected = {x(all, all, Slice(0, 1)), x(all, all, Slice(1, 3)),
                           x(all, all, Slice(3, 5)), x(all, Slice(0, 2)), x(all, Slice(2, 4))};
  for (size_t i = 0; i < y.size(); ++i) expect_equal(y[i].data(), expected[i]);
}

const int g_factor =
    Models::all().add("Factor",
                      "layer { name: 'f' type: 'Scale' bottom: 'data' bottom: 'w' top: 'y' "
                      "scale_param { axis: 0 bias_term: true } " +
                          blob(numbers({2}, 3)) + "}");

// Scale whose factors are a blob, as gates of channels have it.
TEST_P(CaffeLayers, FactorsMayBeABlob) {
  CATENA_NEEDS_PROTOBUF();
  F::CaffeFunction f(Models::all().path("Factor"));
  f.to(device());
  const Array x = numbers({2, 4, 3}, 0.3).to(device()), w = numbers({2, 4}, 2).to(device());
  const Variable y = f({{"data", x}, {"w", w}}, {"y"}, {}, true)[0];
  // The offsets have the axes of w's first one on.
  const Array offsets = numbers({2, 1, 1}, 3).to(device());
  expect_equal(y.data(), x * w.expand_dims(2) + offsets);
}

// Statistics of the batch in train state, unless the layer says that they are given.
const std::string kStatistics =
    blob(numbers({2}, 8)) + blob(array({1.f, 2.f})) + blob(array({1.f}));
const int g_norms =
    Models::all().add("Norm", layer("BatchNorm",
                                    "batch_norm_param { moving_average_fraction: 0.75 "
                                    "} " +
                                        kStatistics)) +
    Models::all().add(
        "FixedNorm",
        layer("BatchNorm", "batch_norm_param { use_global_stats: true } " + kStatistics));

TEST_P(CaffeLayers, BatchNormTrains) {
  CATENA_NEEDS_PROTOBUF();
  const Array data = numbers({4, 2, 3}, 0.3).to(device());
  F::CaffeFunction f(Models::all().path("Norm")), fixed(Models::all().path("FixedNorm"));
  f.to(device()), fixed.to(device());
  expect_equal(run(fixed, data, true).data(), run(f, data, false).data());
  const Array first = data(Slice(), 0);
  const double mean = first.mean().item<double>();
  expect_equal(run(f, data, true).data()(Slice(), 0), (first - mean) / sqrt(var(first) + 1e-5));
  const auto& bn = f.fs.get<F::BatchNormalization>("f");
  EXPECT_NEAR(bn.avg_mean.data()(0).item<double>(),
              0.75 * numbers({2}, 8)(0).item<double>() + 0.25 * mean, 1e-6);
}

TEST_P(CaffeLayers, DropoutDropsInTrainState) {
  CATENA_NEEDS_PROTOBUF();
  F::CaffeFunction f(Models::all().path("DropoutInTest"));
  const Array ones_of = ones({1, 1, 100, 100}, {Dtype::kFloat32, device()});
  EXPECT_NEAR(mean(run(f, ones_of, true).data() == 0).item<double>(), 0.3, 0.05);
  f.eval();  // what the call does not say, the state does
  EXPECT_EQ(testing::difference(f({{"data", ones_of}}, {"y"})[0].data(), ones_of), "");
}

CATENA_ON_DEVICES(CaffeLayers);

}  // namespace
}  // namespace catena
