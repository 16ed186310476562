// Training steps of transformers with AdamW. On a GPU in bfloat16, replayed as a graph: the
// language model Qwen2.5-1.5B (Qwen Team, 2024) on windows of 1024 tokens, and ViT-B/16
// (Dosovitskiy et al., ICLR 2021) on images of 224 x 224. On a CPU in float32: GPT-2 of 4 layers,
// 256 wide, for bytes, and ViT-Ti/16. Weights and data are random. transformer_peers.py times the
// same with PyTorch.
//
//   bench_transformers qwen|qwen16|vit [device] [batch] [layers]
//                                  qwen16: states of AdamW in bfloat16, no float32 copies
//   bench_transformers head [device] [tokens of a chunk...]
//                                  GPT-2's head with its loss by itself, beside its products
//   bench_transformers serve       for transformer_peers.py: reads requests, answers each with the
//                                  seconds of one step
//     gpt2 batch tokens
//     vit-tiny batch
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "catena/catena.h"
#include "gpt2/model.h"
#include "timing.h"

namespace {

namespace F = catena::functions;
using catena::Array;
using catena::Dtype;
using catena::Variable;

constexpr Dtype kDtype = Dtype::kBFloat16;
const catena::initializers::Normal kStart(0.02);

struct Case {
  std::string model;
  catena::Device device;
  int64_t batch, layers;
};

// A block of Qwen2: heads share keys and values, positions turn queries and keys, and only the
// projections to q, k and v have biases.
struct QwenBlock : catena::FunctionSet {
  static constexpr int64_t kSize = 1536, kHeads = 12, kGroups = 2, kDepth = kSize / kHeads;
  static constexpr int64_t kInner = 8960;

  F::RMSNormalization norm1{kSize, {.eps = 1e-6, .dtype = kDtype}};
  F::RMSNormalization norm2{kSize, {.eps = 1e-6, .dtype = kDtype}};
  F::Linear in_proj{kSize, kSize + 2 * kGroups* kDepth, {.initialW = kStart, .dtype = kDtype}};
  F::Linear out_proj{kSize, kSize, {.nobias = true, .initialW = kStart, .dtype = kDtype}};
  F::GatedMlp mlp{kSize, kInner, {.initialW = kStart, .dtype = kDtype}};
  CATENA_FUNCTIONS(norm1, norm2, in_proj, out_proj, mlp)

  static Variable heads(const Variable& x, int64_t count) {
    const catena::Shape& shape = x.shape();
    return F::transpose(F::reshape(x, {shape[0], shape[1], count, kDepth}), {0, 2, 1, 3});
  }
  Variable attend(const Variable& x) const {
    const catena::Variables parts = F::split_axis(in_proj(x), {kSize, kSize + kGroups * kDepth}, 2);
    const F::RotaryOptions rotary{.base = 1e6};
    const Variable y =
        F::scaled_dot_product_attention(F::rotary_embedding(heads(parts[0], kHeads), rotary),
                                        F::rotary_embedding(heads(parts[1], kGroups), rotary),
                                        heads(parts[2], kGroups), {.causal = true});
    return out_proj(F::reshape(F::transpose(y, {0, 2, 1, 3}), x.shape()));
  }
  void add_to(F::ResidualStream& stream) const {
    stream.add(attend(stream.normalized(norm1)));
    stream.add(mlp(stream.normalized(norm2)));
  }
};

// The classes are the words again.
struct Qwen : catena::FunctionSet {
  static constexpr int64_t kWords = 151'936, kTokens = 1024;

  F::EmbedID words{kWords, QwenBlock::kSize, {.initialW = kStart, .dtype = kDtype}};
  std::vector<QwenBlock> blocks;
  F::RMSNormalization norm{QwenBlock::kSize, {.eps = 1e-6, .dtype = kDtype}};
  CATENA_FUNCTIONS(words, blocks, norm)

  explicit Qwen(const Case& c)
      : blocks(size_t(c.layers)),
        ids(catena::random::integers({c.batch, kTokens}, 0, kWords, Dtype::kInt32)),
        labels(catena::random::integers({c.batch, kTokens}, 0, kWords, Dtype::kInt32)) {}
  Variable loss() const {
    F::ResidualStream stream(words(ids));
    for (const QwenBlock& block : blocks) block.add_to(stream);
    return F::linear_cross_entropy(stream.normalized(norm), words.W, labels);
  }
  double samples(const Case& c) const { return double(c.batch * kTokens); }

  Array ids, labels;
};

struct Vit : catena::FunctionSet {
  static constexpr int64_t kPatch = 16, kPixels = 224, kClasses = 1000;
  static constexpr int64_t kPatches = (kPixels / kPatch) * (kPixels / kPatch);

  F::Convolution2D patches;
  F::EmbedID first, places;
  std::vector<F::TransformerEncoderLayer> layers;
  F::LayerNormalization norm;
  F::Linear classes;
  CATENA_FUNCTIONS(patches, first, places, layers, norm, classes)

  // Heads have 64 numbers.
  explicit Vit(const Case& c, int64_t size = 768, Dtype dtype = kDtype)
      : patches(3, size, kPatch,
                {.stride = F::Extent2D(kPatch), .initialW = kStart, .dtype = dtype}),
        first(1, size, {.initialW = kStart, .dtype = dtype}),
        places(kPatches + 1, size, {.initialW = kStart, .dtype = dtype}),
        norm(size, {.dtype = dtype}),
        classes(size, kClasses, {.initialW = kStart, .dtype = dtype}),
        images(catena::random::normal({c.batch, 3, kPixels, kPixels}, 0, 1, Dtype::kFloat32)
                   .astype(dtype)),
        labels(catena::random::integers({c.batch}, 0, kClasses, Dtype::kInt32)) {
    for (int64_t i = 0; i < c.layers; ++i)
      layers.emplace_back(size, size / 64,
                          F::TransformerOptions{.inner = 4 * size,
                                                .dropout = 0,
                                                .activation = F::TransformerActivation::kGelu,
                                                .pre_norm = true,
                                                .initialW = kStart,
                                                .dtype = dtype});
  }
  Variable loss() const {
    const int64_t batch = images.shape()[0], size = norm.gamma.shape()[0];
    const Variable of_patches =
        F::transpose(F::reshape(patches(images), {batch, size, kPatches}), {0, 2, 1});
    const Variable token = first(catena::zeros({batch, 1}, Dtype::kInt32));
    F::ResidualStream stream(F::concat({token, of_patches}, 1) +
                             places(catena::arange(kPatches + 1)));
    for (const F::TransformerEncoderLayer& layer : layers) layer.add_to(stream);
    const Variable of_token = F::get_item(stream.sum(), {catena::Slice(), 0});
    return F::softmax_cross_entropy(classes(norm(of_token)), labels);
  }
  double samples(const Case& c) const { return double(c.batch); }

  Array images, labels;
};

// The net of examples/gpt2.
struct Gpt2 : gpt2::Gpt2 {
  static constexpr int64_t kWords = 256;

  Gpt2(int64_t batch, int64_t tokens)
      : gpt2::Gpt2({.vocabulary = kWords, .positions = tokens, .layers = 4, .width = 256}),
        ids(catena::random::integers({batch, tokens}, 0, kWords, Dtype::kInt32)),
        labels(catena::random::integers({batch, tokens}, 0, kWords, Dtype::kInt32)) {}
  Variable loss() const { return F::linear_cross_entropy(states(ids), tokens.W, labels); }

  Array ids, labels;
};

using catena::optimizers::AdamWOptions;

template <class Model>
class Training {
 public:
  template <class... Arguments>
  explicit Training(const Arguments&... arguments) : Training(AdamWOptions{}, arguments...) {}
  template <class... Arguments>
  explicit Training(const AdamWOptions& options, const Arguments&... arguments)
      : model(arguments...), optimizer(1e-4, options) {
    optimizer.setup(model);
  }
  void step() {
    optimizer.zero_grads();
    loss = Variable();  // and with it what the last step kept
    loss = model.loss();
    loss.backward();
    optimizer.update();
  }

  Model model;
  catena::optimizers::AdamW optimizer;
  Variable loss;
};

// qwen16: as PyTorch's optimizer does it for bfloat16 parameters.
AdamWOptions options_of(const Case& c) {
  if (c.model != "qwen16") return {};
  return {.state_dtype = Dtype::kBFloat16, .master_copies = false};
}

template <class Model>
void run(const Case& c, const char* unit) {
  const catena::DeviceScope scope(c.device);
  Training<Model> training(options_of(c), c);
  const auto step = [&] { training.step(); };
  const double start = bench::now();
  step();
  catena::synchronize(c.device);
  std::printf("%s: first step %.2f s, loss %.4f\n", c.model.c_str(), bench::now() - start,
              double(training.loss.template item<float>()));
  const bool gpu = c.device.is_cuda();
  const bench::Sampling sampling = {2, gpu ? 5 : 1, gpu ? 5 : 1};
  const auto print = [&](const char* way, const bench::Times& time) {
    std::printf("| %s, batch %lld, %s | %.2f ms | %.0f %s/s |\n", c.model.c_str(),
                static_cast<long long>(c.batch), way, time.median * 1e3,
                training.model.samples(c) / time.median, unit);
  };
  // What is in use at most since the last call.
  const auto print_memory = [&] {
    const double bytes = double(catena::memory_statistics(c.device).peak_in_use);
    std::printf("peak memory %.1f GiB\n", bytes / double(int64_t{1} << 30));
    catena::reset_peak_memory(c.device);
  };
  catena::reset_peak_memory(c.device);
  print("eager", bench::wall_time(sampling, c.device, step));
  if (!gpu) return;
  print_memory();
  training.optimizer.prepare_for_capture();
  training.loss = Variable();  // a graph has memory of its own
  catena::reset_peak_memory(c.device);
  auto graph = catena::cuda::Graph::capture(c.device, step);
  print("replayed", bench::wall_time(sampling, c.device, [&] { graph.launch(); }));
  print_memory();
}

// The head of GPT-2 124M with its loss, forward and backward, and the three products in it alone:
// those of scores, of the gradient of h and of the gradient of W.
class Head {
 public:
  Head(int64_t tokens, int64_t size, int64_t words)
      : h_(normal({tokens, size}, 1)),
        W_(normal({words, size}, 0.02)),
        t_(catena::random::integers({tokens}, 0, words, Dtype::kInt32)),
        scores_(catena::matmul(h_.data(), W_.data().T())),
        gscores_(catena::exp(scores_)) {}

  std::string name() const {
    return catena::message(h_.shape()[0], " x ", h_.shape()[1], " onto ", W_.shape()[0], ", ",
                           kDtype);
  }
  void pass(std::optional<int64_t> chunk) const {
    for (const Variable& x : {h_, W_}) x.set_grad(Array());
    F::linear_cross_entropy(h_, W_, t_, {.chunk = chunk}).backward();
  }
  // The gradient of the scores is, but for a factor and the labels, their exponential. The values
  // matter: they decide how much power a product takes, and so the clock.
  void products() {
    catena::matmul(h_.data(), W_.data().T(), scores_);
    catena::matmul(gscores_, W_.data(), gh_);
    catena::matmul(gscores_.T(), h_.data(), gW_);
  }
  // Bytes at the peak of a pass beyond those of the operands and gradients, which stay.
  double extra_bytes(std::optional<int64_t> chunk) const {
    const catena::Device device = t_.device();
    pass(chunk);
    catena::synchronize(device);
    catena::reset_peak_memory(device);
    pass(chunk);
    const catena::PoolStatistics memory = catena::memory_statistics(device);
    return double(memory.peak_in_use - memory.in_use);
  }

 private:
  static Array normal(const catena::Shape& shape, double deviation) {
    return catena::random::normal(shape, 0, deviation, Dtype::kFloat32).astype(kDtype);
  }

  Variable h_, W_;
  Array t_, scores_, gscores_;
  Array gh_ = catena::empty_like(h_.data()), gW_ = catena::empty_like(W_.data());
};

int time_head(int argc, char** argv) {
  const catena::Device device(argc > 2 ? argv[2] : "cuda:0");
  const catena::DeviceScope scope(device);
  Head head = device.is_cuda() ? Head(32768, 768, 50304) : Head(512, 64, 1000);
  std::vector<std::optional<int64_t>> chunks{std::nullopt};
  for (int i = 3; i < argc; ++i) chunks.push_back(std::stoll(argv[i]));
  std::printf(
      "| head with its loss | chunk | forward and backward | products alone | ratio | "
      "memory beside operands and gradients |\n|---|---|---|---|---|---|\n");
  for (const std::optional<int64_t>& chunk : chunks) {
    const bench::Sampling sampling{3, 7, 5};
    const double pass = bench::device_time(sampling, device, [&] { head.pass(chunk); }).median,
                 products = bench::device_time(sampling, device, [&] { head.products(); }).median;
    std::printf("| %s | %s | %.3f ms | %.3f ms | %.3f | %.1f MiB |\n", head.name().c_str(),
                chunk ? std::to_string(*chunk).c_str() : "default", pass * 1e3, products * 1e3,
                pass / products, head.extra_bytes(chunk) / double(int64_t{1} << 20));
    std::fflush(stdout);
  }
  return 0;
}

using Step = std::function<void()>;

template <class Model, class... Arguments>
Step training_of(const Arguments&... arguments) {
  return [training = std::make_shared<Training<Model>>(arguments...)] { training->step(); };
}

Step requested(const std::string& request) {
  std::istringstream words(request);
  std::string name;
  int64_t batch = 0, tokens = 0;
  words >> name >> batch >> tokens;
  if (name == "gpt2" && batch > 0 && tokens > 0) return training_of<Gpt2>(batch, tokens);
  CATENA_CHECK(ValueError, name == "vit-tiny" && batch > 0, "bench_transformers: unknown request '",
               request, "', expected gpt2 BATCH TOKENS or vit-tiny BATCH");
  return training_of<Vit>(Case{name, catena::cpu(), batch, 12}, int64_t{192}, Dtype::kFloat32);
}

// The first step of each request is not timed.
int serve(int, char**) {
  std::map<std::string, Step> steps;
  for (std::string request; std::getline(std::cin, request);) {
    Step& step = steps[request];
    if (!step) {
      step = requested(request);
      step();
    }
    const double start = bench::now();
    step();
    std::cout << bench::now() - start << std::endl;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto word = [&](int i, const char* otherwise) {
    return std::string(argc > i ? argv[i] : otherwise);
  };
  const std::string model = word(1, "");
  if (model == "serve") return bench::run(serve, argc, argv);
  if (model == "head") return bench::run(time_head, argc, argv);
  const bool is_qwen = model == "qwen" || model == "qwen16";
  if (!is_qwen && model != "vit") {
    std::fprintf(stderr,
                 "usage: bench_transformers qwen|qwen16|vit [device] [batch] [layers], "
                 "head [device] [chunk...], or serve\n");
    return 2;
  }
  const Case c{model, catena::Device(word(2, "cuda:0")),
               std::atoll(word(3, is_qwen ? "8" : "256").c_str()),
               std::atoll(word(4, is_qwen ? "28" : "12").c_str())};
  is_qwen ? run<Qwen>(c, "tokens") : run<Vit>(c, "images");
  return 0;
}
