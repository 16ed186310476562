// Every type of layer that CaffeFunction reads, in both formats, against loops.
#include <algorithm>
#include <functional>

#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/normalization/batch_normalization.h"
#include "functions/caffe/caffe_models.h"
#include "functions/connection/convolution_reference.h"

namespace catena {
namespace {

using namespace caffe_models;

struct Case {
  const char* name;
  std::string model;
  Shape data;
  std::function<Plain(const Plain& x)> expected;
  double error = 1e-5;
};

struct Geometry {
  int64_t kh, kw, sh = 1, sw = 1, ph = 0, pw = 0;
};

// f(values of the window without the padding, elements of the window inside the padded image).
Plain pooled(const Plain& x, const Geometry& g, int64_t oh, int64_t ow,
             const std::function<double(const std::vector<double>&)>& f) {
  return plain({x.shape[0], x.shape[1], oh, ow}, [&](const Shape& i) {
    std::vector<double> seen;
    for (int64_t u = 0; u < g.kh; ++u)
      for (int64_t v = 0; v < g.kw; ++v) {
        const int64_t row = i[2] * g.sh - g.ph + u, column = i[3] * g.sw - g.pw + v;
        if (row >= 0 && row < x.shape[2] && column >= 0 && column < x.shape[3])
          seen.push_back(x(i[0], i[1], row, column));
      }
    return f(seen);
  });
}

std::vector<Case> weighted_cases() {
  const Plain W = numbers({4, 2, 3, 2}, 1), b = numbers({4}, 2);
  const auto moved = [=](const Plain& x) {
    return convolution_of({x, W, b}, {.stride = {2, 3}, .pad = {1, 2}, .groups = 2});
  };
  const std::string moved_text =
      "convolution_param { num_output: 4 kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 3 "
      "pad_h: 1 pad_w: 2 group: 2 } ";
  const Plain square = numbers({3, 2, 3, 3}, 3);
  const Plain D = numbers({4, 3, 3, 2}, 4), six = numbers({6}, 5), M = numbers({3, 40}, 6),
              three = numbers({3}, 7);
  const auto product = [=](const Plain& x, bool bias) {
    return plain({x.shape[0], 3}, [&](const Shape& i) {
      double sum = bias ? three(i[1]) : 0;
      for (int64_t k = 0; k < 40; ++k) sum += x.values[size_t(i[0] * 40 + k)] * M(i[1], k);
      return sum;
    });
  };
  const Plain MT = plain({40, 3}, [&](const Shape& i) { return M(i[1], i[0]); });
  const Plain mean = numbers({2}, 8), var = mapped(numbers({2}, 9), [](double v) { return v + 1; });
  const auto normalized = [=](const Plain& x) {
    return plain(x.shape, [&](const Shape& i) {
      return (x.at(i) - mean(i[1]) / 4) / std::sqrt(var(i[1]) / 4 + 1e-3);
    });
  };
  const Plain gamma = numbers({2}, 10), beta = numbers({2}, 11), table = numbers({5, 4}, 12);
  const Shape images{2, 2, 5, 4};
  return {
      {"Convolution",
       layer("Convolution",
             "convolution_param { num_output: 4 kernel_h: 3 "
             "kernel_w: 2 } " +
                 blob(W) + blob(b)),
       images,
       [=](const Plain& x) {
         return convolution_of({x, W, b});
       }},
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
             "convolution_param { num_output: 3 kernel_size: 3 stride: 2 pad: 1 "
             "dilation: 2 bias_term: false } " +
                 blob(square)),
       images,
       [=](const Plain& x) {
         return convolution_of({x, square}, {.stride = 2, .pad = 1, .dilation = 2});
       }},
      {"ConvolutionByAxis",
       layer("Convolution",
             "convolution_param { num_output: 4 kernel_size: 3 kernel_size: 2 "
             "stride: 2 stride: 1 pad: 1 pad: 0 } " +
                 blob(W) + blob(b)),
       images,
       [=](const Plain& x) {
         return convolution_of({x, W, b}, {.stride = {2, 1}, .pad = {1, 0}});
       }},
      {"ConvolutionWide",
       layer("Convolution",
             "convolution_param { num_output: 4 kernel_h: 3 kernel_w: 2 pad_w: 1 "
             "pad: 7 } " +
                 blob(W) + blob(b)),
       images,
       // pad_w counts although pad_h is 0.
       [=](const Plain& x) {
         return convolution_of({x, W, b}, {.pad = {0, 1}});
       }},
      {"Deconvolution",
       layer("Deconvolution",
             "convolution_param { num_output: 6 kernel_h: 3 kernel_w: 2 stride: 2 "
             "pad: 1 group: 2 } " +
                 blob(D) + blob(six)),
       {2, 4, 3, 4},
       [=](const Plain& x) {
         return deconvolution_of({x, D, six}, {.stride = 2, .pad = 1, .groups = 2});
       }},
      {"InnerProduct",
       layer("InnerProduct", "inner_product_param { num_output: 3 } " + blob(M) + blob(three)),
       images, [=](const Plain& x) { return product(x, true); }},
      {"InnerProductTransposed",
       layer("InnerProduct",
             "inner_product_param { num_output: 3 transpose: true bias_term: false "
             "} " +
                 blob(MT)),
       images, [=](const Plain& x) { return product(x, false); }},
      {"InnerProductV1",
       old_layer(14, "inner_product_param { num_output: 3 } " + old_blob({1, 1, 3, 40}, M) +
                         old_blob({1, 1, 1, 3}, three)),
       images, [=](const Plain& x) { return product(x, true); }},
      {"BatchNorm",
       layer("BatchNorm",
             "batch_norm_param { eps: 1e-3 } " + blob(mean) + blob(var) + blob(Plain{{1}, {4}})),
       images, normalized},
      {"Scale", layer("Scale", "scale_param { bias_term: true } " + blob(gamma) + blob(beta)),
       images,
       [=](const Plain& x) {
         return plain(x.shape, [&](const Shape& i) { return x.at(i) * gamma(i[1]) + beta(i[1]); });
       }},
      {"ScaleLastAxes", layer("Scale", "scale_param { axis: -2 num_axes: -1 } " + blob(table)),
       images,
       [=](const Plain& x) {
         return plain(x.shape, [&](const Shape& i) { return x.at(i) * table(i[2], i[3]); });
       }},
  };
}

std::vector<Case> other_cases() {
  const Shape images{2, 2, 5, 4};
  const auto concatenated = [](int64_t axis) {
    return [=](const Plain& x) {
      Shape shape = x.shape;
      shape[size_t(axis)] *= 2;
      return plain(shape, [&](Shape i) {
        i[size_t(axis)] %= x.shape[size_t(axis)];
        return x.at(i);
      });
    };
  };
  const std::string twice = "bottom: 'data' ";
  const auto combined = [](std::function<double(double)> f) {
    return [=](const Plain& x) { return mapped(x, f); };
  };
  return {
      {"Concat", layer("Concat", twice + "concat_param { axis: 2 } "), images, concatenated(2)},
      {"ConcatV1", old_layer(3, twice + "concat_param { concat_dim: 0 } "), images,
       concatenated(0)},
      {"ConcatChannels", layer("Concat", twice), images, concatenated(1)},
      {"EltwiseSum", layer("Eltwise", twice + "eltwise_param { coeff: 2 coeff: -0.5 } "), images,
       combined([](double v) { return 1.5 * v; })},
      {"EltwiseDefault", layer("Eltwise", twice), images, combined([](double v) { return 2 * v; })},
      {"EltwiseProduct", layer("Eltwise", twice + twice + "eltwise_param { operation: 0 } "),
       images, combined([](double v) { return v * v * v; })},
      {"EltwiseMaximumV1",
       "layers { type: 18 bottom: 'data' top: 'r' name: 'r' } "
       "layers { type: 25 name: 'f' bottom: 'data' bottom: 'r' top: 'y' "
       "eltwise_param { operation: 2 } }",
       images, combined([](double v) { return std::max(v, 0.0); })},
      {"ReLU", layer("ReLU", ""), images, combined([](double v) { return std::max(v, 0.0); })},
      {"ReLULeakyV1", old_layer(18, "relu_param { negative_slope: 0.25 } "), images,
       combined([](double v) { return v < 0 ? v / 4 : v; })},
      {"Sigmoid", layer("Sigmoid", ""), images,
       combined([](double v) { return 1 / (1 + std::exp(-v)); })},
      {"TanHV1", old_layer(23, ""), images, combined([](double v) { return std::tanh(v); })},
      {"Softmax", layer("Softmax", ""), images, [](const Plain& x) { return softmax_of(x, 1); }},
      {"DropoutInTest", layer("Dropout", "dropout_param { dropout_ratio: 0.3 } "), images,
       combined([](double v) { return v; })},
      {"Split", layer("Split", "top: 'other' "), images, combined([](double v) { return v; })},
      // 5 x 4: rounded up to 2 x 2 by 3 x 3 with stride 2; the last window sees less.
      {"PoolingMax", layer("Pooling", "pooling_param { kernel_size: 3 stride: 2 } "), images,
       [](const Plain& x) {
         return pooled(x, {3, 3, 2, 2}, 2, 2, largest_of);
       }},
      {"PoolingFloor",
       layer("Pooling", "pooling_param { kernel_size: 3 stride: 2 round_mode: 1 } "), images,
       [](const Plain& x) {
         return pooled(x, {3, 3, 2, 2}, 2, 1, largest_of);
       }},
      // A third row of windows would begin behind the image: Caffe leaves it out.
      {"PoolingClippedV1",
       old_layer(17,
                 "pooling_param { kernel_h: 2 kernel_w: 3 stride_h: 2 stride_w: 1 pad_h: 1 "
                 "pad_w: 1 } "),
       {2, 2, 3, 4},
       [](const Plain& x) {
         return pooled(x, {2, 3, 2, 1, 1, 1}, 2, 4, largest_of);
       }},
      // Rows as above; columns have a third window, which begins in the image.
      {"PoolingClippedRows",
       layer("Pooling", "pooling_param { kernel_h: 2 kernel_w: 3 stride: 2 pad: 1 } "),
       {2, 2, 5, 4},
       [](const Plain& x) {
         return pooled(x, {2, 3, 2, 2, 1, 1}, 3, 3, largest_of);
       }},
      {"PoolingClippedColumns",
       layer("Pooling", "pooling_param { kernel_h: 3 kernel_w: 2 stride: 2 pad: 1 } "),
       {2, 2, 4, 5},
       [](const Plain& x) {
         return pooled(x, {3, 2, 2, 2, 1, 1}, 3, 3, largest_of);
       }},
      {"PoolingGlobal", layer("Pooling", "pooling_param { global_pooling: true } "), images,
       [](const Plain& x) {
         return pooled(x, {5, 4}, 1, 1, largest_of);
       }},
      {"PoolingGlobalAverage", layer("Pooling", "pooling_param { pool: 1 global_pooling: true } "),
       images,
       [](const Plain& x) {
         return pooled(x, {5, 4}, 1, 1, [](auto& v) { return added_up(v) / 20; });
       }},
  };
}

std::vector<Case> neighbour_cases() {
  return {
      {"PoolingAverage",
       layer("Pooling", "pooling_param { pool: 1 kernel_size: 3 stride: 2 pad: 1 } "),
       {2, 2, 5, 4},
       [](const Plain& x) {
         Plain y = pooled(x, {3, 3, 2, 2, 1, 1}, 3, 3, [](auto& v) { return added_up(v) / 9; });
         // Of the third column of windows two columns are in the padded image.
         for (size_t i = 2; i < y.values.size(); i += 3) y.values[i] *= 1.5;
         return y;
       }},
      {"LRN",
       layer("LRN", "lrn_param { local_size: 3 alpha: 0.6 beta: 0.5 k: 2 } "),
       {2, 6, 3, 2},
       [](const Plain& x) {
         return plain(x.shape, [&](const Shape& i) {
           double squares = 0;
           for (int64_t c = std::max<int64_t>(i[1] - 1, 0); c < std::min<int64_t>(i[1] + 2, 6); ++c)
             squares += x(i[0], c, i[2], i[3]) * x(i[0], c, i[2], i[3]);
           return x.at(i) / std::sqrt(2 + 0.2 * squares);
         });
       }},
  };
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> result = weighted_cases();
    for (Case& c : other_cases()) result.push_back(c);
    for (Case& c : neighbour_cases()) result.push_back(c);
    for (const Case& c : result) Models::all().add(c.name, c.model);
    return result;
  }();
  return all;
}
const size_t g_registered = cases().size();

class CaffeLayers : public OnDevice {};

TEST_P(CaffeLayers, AreTheirDefinitions) {
  CATENA_NEEDS_PROTOBUF();
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    F::CaffeFunction f(Models::all().path(c.name));
    f.to(device());
    const Plain x = numbers(c.data, 0.3);
    const Array data = array_of(x, device());
    const Variable y = run(f, data);
    expect_equal(y.data().to_cpu(), c.expected(x), c.error);
    const Array last = run(f, F::channels_last(data)).data();
    EXPECT_EQ(testing::difference(last, y.data(), 1e-6, 1e-6), "");
  }
}

const int g_loss = Models::all().add(
    "Loss",
    "layer { name: 'f' type: 'SoftmaxWithLoss' bottom: 'data' bottom: 'label' top: 'y' "
    "top: 'p' }");

TEST_P(CaffeLayers, LossOfLabels) {
  CATENA_NEEDS_PROTOBUF();
  F::CaffeFunction f(Models::all().path("Loss"));
  const Plain x = numbers({3, 4, 1, 1}, 0.3), p = softmax_of(x, 1);
  const Array t = array<int32_t>({2, 0, 3}).reshape({3, 1, 1}).to(device());
  const Variables y = f({{"data", array_of(x, device())}, {"label", t}}, {"y", "p"});
  const double expected =
      -(std::log(p(0, 2, 0, 0)) + std::log(p(1, 0, 0, 0)) + std::log(p(2, 3, 0, 0))) / 3;
  EXPECT_NEAR(y[0].item<float>(), expected, 1e-6);
  expect_equal(y[1].data().to_cpu(), p);
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
  const Plain x = numbers({3, 4, 1, 1}, 0.3), p = softmax_of(x, 1);
  const Array t = array<int32_t>({2, 255, 3}).reshape({3, 1, 1}).to(device());
  const Variables y = f({{"data", array_of(x, device())}, {"label", t}}, {"mean", "batch", "sum"});
  const double sum = -std::log(p(0, 2, 0, 0)) - std::log(p(2, 3, 0, 0));
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
  const Plain x = numbers({2, 4, 5, 3}, 0.3);
  const Variables y = f({{"data", array_of(x, device())}}, {"a", "b", "c", "d", "e"});
  const auto part = [&](size_t axis, int64_t begin, int64_t end) {
    Shape shape = x.shape;
    shape[axis] = end - begin;
    return plain(shape, [&, axis, begin](Shape i) {
      i[axis] += begin;
      return x.at(i);
    });
  };
  const std::vector<Plain> expected = {part(2, 0, 1), part(2, 1, 3), part(2, 3, 5), part(1, 0, 2),
                                       part(1, 2, 4)};
  for (size_t i = 0; i < y.size(); ++i) expect_equal(y[i].data().to_cpu(), expected[i]);
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
  const Plain x = numbers({2, 4, 3}, 0.3), w = numbers({2, 4}, 2);
  const Variable y =
      f({{"data", array_of(x, device())}, {"w", array_of(w, device())}}, {"y"}, {}, true)[0];
  // The offsets have the axes of w's first one on.
  const Plain offsets = numbers({2}, 3);
  expect_equal(y.data().to_cpu(), plain(x.shape, [&](const Shape& i) {
                 return x.at(i) * w(i[0], i[1]) + offsets(i[0]);
               }));
}

// Statistics of the batch in train state, unless the layer says that they are given.
const std::string kStatistics =
    blob(numbers({2}, 8)) + blob(Plain{{2}, {1, 2}}) + blob(Plain{{1}, {1}});
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
  const Plain x = numbers({4, 2, 3}, 0.3);
  const Array data = array_of(x, device());
  F::CaffeFunction f(Models::all().path("Norm")), fixed(Models::all().path("FixedNorm"));
  f.to(device()), fixed.to(device());
  expect_equal(run(fixed, data, true).data().to_cpu(),
               plain_of(run(f, data, false).data().to_cpu()));
  double mean = 0, square = 0;
  for (int64_t n = 0; n < 4; ++n)
    for (int64_t i = 0; i < 3; ++i) mean += x(n, 0, i) / 12, square += x(n, 0, i) * x(n, 0, i) / 12;
  const double var = square - mean * mean;
  const Array y = run(f, data, true).data().to_cpu();
  EXPECT_NEAR(y.at({1, 0, 2}).item<float>(), (x(1, 0, 2) - mean) / std::sqrt(var + 1e-5), 1e-5);
  const auto& bn = f.fs.get<F::BatchNormalization>("f");
  EXPECT_NEAR(bn.avg_mean.data().to_cpu().at({0}).item<float>(),
              0.75 * numbers({2}, 8)(0) + 0.25 * mean, 1e-6);
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
