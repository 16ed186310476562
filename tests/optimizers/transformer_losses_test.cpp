// Losses of 20 steps of two transformers against those of PyTorch, whose program
// (oracle/transformer_losses.py) has the models of the package transformers, and makes weights and
// tokens by the formula below.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "catena/array/text.h"
#include "catena/functions/attention/gated_mlp.h"
#include "catena/optimizers/adamw.h"
#include "functions/functions_test_util.h"
#include "small_gpt2.h"

namespace catena {
namespace {

constexpr int64_t kBatches = 4;
constexpr double kTolerance = 1e-4;

struct Sizes {
  int64_t vocabulary, width, inner, batch, length;
  double rate = 0.001;
};
constexpr Sizes kGpt2 = {.vocabulary = 256, .width = 64, .inner = 256, .batch = 2, .length = 32};
constexpr Sizes kQwen2 = {.vocabulary = 512, .width = 96, .inner = 560, .batch = 2, .length = 32};
// With the sizes of Qwen2.5-1.5B, of whose 28 layers it has two. By a rate of 0.001 its losses
// jump so that two ways in which PyTorch itself computes attention differ by 9e-4.
constexpr Sizes kFullWidth = {
    .vocabulary = 151936, .width = 1536, .inner = 8960, .batch = 1, .length = 32, .rate = 0.0001};

// The formula -------------------------------------------------------------------------------------

// FNV-1a of the name, with which the hash of an index begins.
uint32_t seed_of(const std::string& name) {
  uint32_t seed = 2166136261;
  for (const char byte : name) seed = (seed ^ uint8_t(byte)) * 16777619;
  return seed;
}

// C. Wellons' lowbias32.
uint32_t bits(uint32_t seed, int64_t index) {
  uint32_t x = uint32_t(index) * 0x9E3779B9 + seed;
  x = (x ^ (x >> 16)) * 0x7FEB352D;
  x = (x ^ (x >> 15)) * 0x846CA68B;
  return x ^ (x >> 16);
}

// Uniform within 1 / sqrt(width); scales of normalizations around 1.
void fill(Parameterized& model, int64_t width) {
  const double bound = 1 / std::sqrt(double(width));
  for (const auto& [path, p] : model.named_parameters()) {
    const std::string name = path.substr(path.front() == '/');
    const double centre = name.ends_with("gamma") ? 1 : 0;
    const uint32_t seed = seed_of(name);
    std::vector<float> values(size_t(p.size()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = float(centre + (double(bits(seed, int64_t(i)) >> 8) / (1 << 23) - 1) * bound);
    p.copy_from(array(values, p.shape()));
  }
}

// What goes in and what comes next.
struct Tokens {
  Array ids, next;
  Tokens(int64_t number, const Sizes& sizes, Device device) {
    const uint32_t seed = seed_of("tokens " + std::to_string(number));
    std::vector<int64_t> all(size_t(sizes.batch * (sizes.length + 1)));
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = bits(seed, int64_t(i)) % uint32_t(sizes.vocabulary);
    const Array rows = array(all, {sizes.batch, sizes.length + 1}).to(device);
    ids = rows(Slice(), Slice(0, sizes.length));
    next = rows(Slice(), Slice(1, none));
  }
};

// The models --------------------------------------------------------------------------------------

struct Gpt2 : testing::SmallGpt2 {
  explicit Gpt2(const Sizes& s)
      : SmallGpt2({.vocabulary = s.vocabulary,
                   .length = s.length,
                   .width = s.width,
                   .heads = 4,
                   .inner = s.inner}) {}
};

// A layer of Qwen2, in which q, k and v alone have a bias.
struct Qwen2Layer : FunctionSet {
  F::MultiHeadAttention self_attn;
  F::GatedMlp mlp;
  F::RMSNormalization norm1, norm2;
  CATENA_FUNCTIONS(self_attn, mlp, norm1, norm2)

  explicit Qwen2Layer(const Sizes& s)
      : self_attn(s.width, 12, {.groups = 2, .rotary = F::RotaryOptions{.base = 1e6}}),
        mlp(s.width, s.inner),
        norm1(s.width, {.eps = 1e-6}),
        norm2(s.width, {.eps = 1e-6}) {
    self_attn.out_proj = F::Linear(s.width, s.width, {.nobias = true});
  }
  void add_to(F::ResidualStream& stream) const {
    stream.add(self_attn(stream.normalized(norm1), {.causal = true}));
    stream.add(mlp(stream.normalized(norm2)));
  }
};

struct Qwen2 : FunctionSet {
  F::EmbedID tokens;
  std::vector<Qwen2Layer> layers;
  F::RMSNormalization norm;
  CATENA_FUNCTIONS(tokens, layers, norm)

  explicit Qwen2(const Sizes& s) : tokens(s.vocabulary, s.width), norm(s.width, {.eps = 1e-6}) {
    for (int i = 0; i < 2; ++i) layers.emplace_back(s);
  }
  Variable loss(const Array& ids, const Array& next) const {
    F::ResidualStream stream(tokens(ids));
    for (const Qwen2Layer& layer : layers) layer.add_to(stream);
    return F::linear_cross_entropy(stream.normalized(norm), tokens.W, next);
  }
};

// The steps ---------------------------------------------------------------------------------------

template <class Model>
void expect_losses(const Sizes& sizes, Device device, const Array& expected) {
  const DeviceScope scope(device);
  Model model(sizes);
  fill(model, sizes.width);
  optimizers::AdamW rule(sizes.rate, {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .decay = 0.1});
  rule.setup(model);
  double largest = 0;
  const std::vector<double> losses = expected.to_vector<double>();
  for (size_t step = 0; step < losses.size(); ++step) {
    const Tokens batch(int64_t(step) % kBatches, sizes, device);
    const Variable loss = model.loss(batch.ids, batch.next);
    rule.zero_grads();
    loss.backward();
    rule.update();
    EXPECT_NEAR(loss.item<double>(), losses[step], kTolerance) << "step " << step;
    largest = std::max(largest, std::abs(loss.item<double>() - losses[step]));
  }
  EXPECT_EQ(losses.size(), 20U);
  ::testing::Test::RecordProperty("largest_difference", message(largest));
}

class TransformerLosses : public OnDevice {
 protected:
  static Array recorded(int64_t column) {
    return loadtxt(CATENA_TEST_TRANSFORMER_LOSSES)(Slice(), column);
  }
};

TEST_P(TransformerLosses, OfGpt2) { expect_losses<Gpt2>(kGpt2, device(), recorded(0)); }

TEST_P(TransformerLosses, OfQwen2) { expect_losses<Qwen2>(kQwen2, device(), recorded(1)); }

TEST_P(TransformerLosses, OfTheFullWidth) {
  const char* file = std::getenv("CATENA_TEST_FULL_WIDTH_LOSSES");
  if (file == nullptr)
    GTEST_SKIP() << "takes 8 GB and a file of transformer_losses.py --full-width, which "
                    "CATENA_TEST_FULL_WIDTH_LOSSES names";
  expect_losses<Qwen2>(kFullWidth, device(), loadtxt(file));
}

CATENA_ON_DEVICES(TransformerLosses);

}  // namespace
}  // namespace catena
