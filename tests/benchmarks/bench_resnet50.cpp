// Training steps of ResNet-50 (K. He et al., Deep Residual Learning, CVPR 2016; the stride is in
// the 3 x 3 convolutions) on random images: SGD with momentum, channels last, eager and replayed as
// a graph. CATENA_CONVOLUTION_TUNE=1 measures cuDNN's plans in the first step.
//
//   bench_resnet50 [bf16|tf32|float32|autocast] [batch] [device] [pixels]
//   catena-run -n 4 bench_resnet50 --ranks [bf16|...] [batch of a rank] [ignored] [pixels]
//
// Over ranks it trains data-parallel, with batch normalization by each rank's own statistics and by
// those of all ranks, in turn: what the exchange costs a whole step.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "catena/catena.h"
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

// One of a model and its batch.
struct Training {
  explicit Training(const Case& c)
      : dtype(c.precision == "bf16" ? Dtype::kBFloat16 : Dtype::kFloat32),
        low(c.precision == "autocast" ? Dtype::kBFloat16 : Dtype::kFloat32),
        model(dtype),
        images(F::channels_last(
            catena::random::normal({c.batch, 3, c.pixels, c.pixels}, 0, 1, Dtype::kFloat32)
                .astype(dtype))),
        labels(catena::random::integers({c.batch}, 0, 1000, Dtype::kInt32)) {
    F::channels_last(model);
  }
  template <class Rule>
  void step(Rule& optimizer) {
    const catena::AutocastScope autocast(low);
    optimizer.zero_grads();
    loss = F::softmax_cross_entropy(model(images).astype(Dtype::kFloat32), labels);
    loss.backward();
    optimizer.update();
  }

  Dtype dtype, low;
  ResNet50 model;
  catena::Array images, labels;
  Variable loss;
};

void use_precision(const Case& c) {
  if (c.precision == "tf32") catena::config().matmul_precision = catena::Precision::kTf32;
}

void run(const Case& c) {
  const catena::DeviceScope scope(c.device);
  use_precision(c);
  Training training(c);
  catena::optimizers::MomentumSGD optimizer(0.01, 0.9);
  optimizer.setup(training.model);
  const auto step = [&] { training.step(optimizer); };
  const double start = bench::now();
  step();
  catena::synchronize(c.device);
  std::printf("%s: first step %.2f s, loss %.4f\n", c.precision.c_str(), bench::now() - start,
              double(training.loss.item<float>()));
  const bool gpu = c.device.is_cuda();
  const bench::Sampling sampling = {3, gpu ? 5 : 1, gpu ? 10 : 1};
  print(c, "eager", bench::wall_time(sampling, c.device, step));
  if (!gpu) return;
  optimizer.prepare_for_capture();
  auto graph = catena::cuda::Graph::capture(c.device, step);
  print(c, "replayed", bench::wall_time(sampling, c.device, [&] { graph.launch(); }));
}

// Over ranks -------------------------------------------------------------------------------------

// A network that is trained over all ranks, by its own statistics or by those of all.
class Parallel {
 public:
  Parallel(const Case& c, const catena::CommunicatorPtr& comm, bool synchronised)
      : comm_(comm),
        training_(c),
        optimizer_(std::make_unique<catena::optimizers::MomentumSGD>(0.01, 0.9), *comm) {
    if (synchronised) catena::parallel::synchronize_normalization(training_.model, comm);
    optimizer_.setup(training_.model);
    for (int i = 0; i < 3; ++i) step();
  }
  void capture() {
    optimizer_->prepare_for_capture();
    graph_ = catena::cuda::Graph::capture(comm_->device(), [this] { step(); });
  }
  // Median seconds of a step.
  double time(const bench::Sampling& sampling) {
    comm_->barrier();
    const auto once = [this] { graph_.defined() ? graph_.launch() : step(); };
    return bench::wall_time(sampling, comm_->device(), once).median;
  }

 private:
  void step() { training_.step(optimizer_); }

  catena::CommunicatorPtr comm_;
  Training training_;
  catena::parallel::MultiNodeOptimizer optimizer_;
  catena::cuda::Graph graph_;
};

// The least of several rounds in turn: others may use the machine.
void compare(const Case& c, const char* way, const catena::Communicator& comm, Parallel& plain,
             Parallel& together) {
  const bool gpu = c.device.is_cuda();
  const bench::Sampling sampling = {1, gpu ? 3 : 1, gpu ? 10 : 1};
  double own = 1e9, all = 1e9;
  for (int round = 0; round < 3; ++round) {
    own = std::min(own, plain.time(sampling));
    all = std::min(all, together.time(sampling));
  }
  if (comm.rank() != 0) return;
  const double images = double(c.batch) * comm.size();
  std::printf(
      "| ResNet-50 over %d ranks, %lld images each, %s | %s | own statistics: %.2f ms, %.0f "
      "images/s | of all ranks: %.2f ms, %.0f images/s | %.1f %% | goal >= 97 %% |\n",
      comm.size(), static_cast<long long>(c.batch), way, c.precision.c_str(), own * 1e3,
      images / own, all * 1e3, images / all, 100 * own / all);
}

void run_over_ranks(Case c) {
  const catena::CommunicatorPtr comm = catena::create_communicator();
  c.device = comm->device();
  const catena::DeviceScope scope(c.device);
  use_precision(c);
  Parallel plain(c, comm, false), together(c, comm, true);
  compare(c, "eager", *comm, plain, together);
  if (!c.device.is_cuda()) return;
  plain.capture();
  together.capture();
  compare(c, "replayed", *comm, plain, together);
}

int body(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool over_ranks = std::erase(words, "--ranks") > 0;
  const auto word = [&](size_t i, const char* otherwise) {
    return words.size() > i ? words[i] : std::string(otherwise);
  };
  const Case c{word(0, "bf16"), std::atoll(word(1, "256").c_str()),
               catena::Device(word(2, over_ranks ? "cpu" : "cuda:0")),
               std::atoll(word(3, "224").c_str())};
  over_ranks ? run_over_ranks(c) : run(c);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return bench::run(body, argc, argv); }
