// Training steps of ResNet-50 (K. He et al., Deep Residual Learning, CVPR 2016; the stride is in
// the 3 x 3 convolutions) on random images: SGD with momentum, channels last, eager and replayed as
// a graph. CATENA_CONVOLUTION_TUNE=1 measures cuDNN's plans in the first step.
//
//   bench_resnet50 [bf16|tf32|float32|autocast] [batch] [device] [pixels]
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "catena/array/random.h"
#include "catena/autograd/autocast.h"
#include "catena/core/graph.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/extent_2d.h"
#include "catena/functions/loss.h"
#include "catena/functions/math.h"
#include "catena/functions/normalization.h"
#include "catena/functions/pooling.h"
#include "catena/optimizers/momentum_sgd.h"
#include "timing.h"

namespace {

namespace F = catena::functions;
using catena::Dtype;
using catena::Variable;

F::Convolution2DOptions without_bias(int64_t stride, int64_t pad, Dtype dtype) {
  return {.stride = stride, .pad = pad, .nobias = true, .dtype = dtype};
}

struct Projection : catena::FunctionSet {
  F::Convolution2D conv;
  F::BatchNormalization bn;
  CATENA_FUNCTIONS(conv, bn)
  Projection(int64_t in, int64_t out, int64_t stride, Dtype d)
      : conv(in, out, 1, without_bias(stride, 0, d)), bn(out) {}
  Variable operator()(const Variable& x) { return bn(conv(x)); }
};

struct Bottleneck : catena::FunctionSet {
  F::Convolution2D conv1, conv2, conv3;
  F::BatchNormalization bn1, bn2, bn3;
  std::vector<Projection> shortcut;  // one, or none: x itself
  CATENA_FUNCTIONS(conv1, bn1, conv2, bn2, conv3, bn3, shortcut)

  Bottleneck(int64_t in, int64_t mid, int64_t stride, Dtype d)
      : conv1(in, mid, 1, without_bias(1, 0, d)),
        conv2(mid, mid, 3, without_bias(stride, 1, d)),
        conv3(mid, 4 * mid, 1, without_bias(1, 0, d)),
        bn1(mid),
        bn2(mid),
        bn3(4 * mid) {
    if (stride != 1 || in != 4 * mid) shortcut.emplace_back(in, 4 * mid, stride, d);
  }
  Variable operator()(const Variable& x) {
    const Variable h = conv3(bn2.relu(conv2(bn1.relu(conv1(x)))));
    return bn3.add_relu(h, shortcut.empty() ? x : shortcut[0](x));
  }
};

struct ResNet50 : catena::FunctionSet {
  F::Convolution2D stem;
  F::BatchNormalization bn{64};
  std::vector<Bottleneck> blocks;
  F::Linear classes;
  CATENA_FUNCTIONS(stem, bn, blocks, classes)

  explicit ResNet50(Dtype d)
      : stem(3, 64, 7, without_bias(2, 3, d)), classes(2048, 1000, {.dtype = d}) {
    int64_t in = 64, mid = 64;
    for (const int count : {3, 4, 6, 3}) {
      for (int i = 0; i < count; ++i) {
        blocks.emplace_back(in, mid, i == 0 && mid > 64 ? 2 : 1, d);
        in = 4 * mid;
      }
      mid *= 2;
    }
  }
  Variable operator()(const Variable& x) {
    Variable h = bn.relu(stem(x));
    h = F::max_pooling_2d(h, 3, {.stride = F::Extent2D(2), .pad = 1, .cover_all = false});
    for (Bottleneck& block : blocks) h = block(h);
    return classes(F::mean(h, {2, 3}));
  }
};

struct Case {
  std::string precision;
  int64_t batch;
  catena::Device device;
  int64_t pixels;
};

void print(const Case& c, const char* way, const bench::Times& time) {
  std::printf("| ResNet-50, %lld x %lld, batch %lld, %s | %s | %.2f ms | %.0f images/s |\n",
              static_cast<long long>(c.pixels), static_cast<long long>(c.pixels),
              static_cast<long long>(c.batch), way, c.precision.c_str(), time.median * 1e3,
              double(c.batch) / time.median);
}

void run(const Case& c) {
  const catena::DeviceScope scope(c.device);
  if (c.precision == "tf32") catena::config().matmul_precision = catena::Precision::kTf32;
  const Dtype dtype = c.precision == "bf16" ? Dtype::kBFloat16 : Dtype::kFloat32;
  const Dtype low = c.precision == "autocast" ? Dtype::kBFloat16 : Dtype::kFloat32;
  ResNet50 model(dtype);
  F::channels_last(model);
  catena::optimizers::MomentumSGD optimizer(0.01, 0.9);
  optimizer.setup(model);
  const catena::Array images =
                          F::channels_last(catena::random::normal({c.batch, 3, c.pixels, c.pixels},
                                                                  0, 1, Dtype::kFloat32)
                                               .astype(dtype)),
                      labels = catena::random::integers({c.batch}, 0, 1000, Dtype::kInt32);
  Variable loss;
  const auto step = [&] {
    const catena::AutocastScope autocast(low);
    optimizer.zero_grads();
    loss = F::softmax_cross_entropy(model(images).astype(Dtype::kFloat32), labels);
    loss.backward();
    optimizer.update();
  };
  const double start = bench::now();
  step();
  catena::synchronize(c.device);
  std::printf("%s: first step %.2f s, loss %.4f\n", c.precision.c_str(), bench::now() - start,
              double(loss.item<float>()));
  const bool gpu = c.device.is_cuda();
  const bench::Sampling sampling = {3, gpu ? 5 : 1, gpu ? 10 : 1};
  print(c, "eager", bench::wall_time(sampling, c.device, step));
  if (!gpu) return;
  optimizer.prepare_for_capture();
  auto graph = catena::cuda::Graph::capture(c.device, step);
  print(c, "replayed", bench::wall_time(sampling, c.device, [&] { graph.launch(); }));
}

}  // namespace

int main(int argc, char** argv) {
  const auto word = [&](int i, const char* otherwise) { return argc > i ? argv[i] : otherwise; };
  run({word(1, "bf16"), std::atoll(word(2, "256")), catena::Device(word(3, "cuda:0")),
       std::atoll(word(4, "224"))});
}
