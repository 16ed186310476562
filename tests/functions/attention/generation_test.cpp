// Greedy tokens of a small GPT with a cache of keys: those without a cache, those of PyTorch, and
// those of captured steps.
#include "catena/array/arguments.h"
#include "catena/array/sorting.h"
#include "catena/core/graph.h"
#include "catena/functions/attention/key_value_cache.h"
#include "catena/functions/attention/transformer.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/connection/linear.h"
#include "catena/testing_markers.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

using Tokens = std::vector<int64_t>;
using Texts = std::vector<Tokens>;

class Generation : public OnDevice {};

struct Form {
  const char* name;
  int64_t groups = 2;
  std::optional<F::RotaryOptions> rotary = {};  // else vectors of positions
  bool pre_norm = true;
};

const Form kForms[] = {{"positions", 2},
                       {"groups, rotary", 1, F::RotaryOptions{}},
                       {"rotary from 5, part of a head, post norm", 2,
                        F::RotaryOptions{.rotated = 2, .interleaved = true, .start = 5}, false}};

// A small GPT of 11 words and 12 positions.
class SmallGpt : public FunctionSet {
 public:
  static constexpr int64_t kWords = 11, kMost = 12, kWidth = 8;
  F::EmbedID tokens{kWords, kWidth}, places{kMost, kWidth};
  std::vector<F::TransformerEncoderLayer> layers;
  F::LayerNormalization norm{kWidth};
  F::Linear head{kWidth, kWords, {.nobias = true}};
  CATENA_FUNCTIONS(tokens, places, layers, norm, head)

  explicit SmallGpt(const Form& form) : form_(form) {
    for (int i = 0; i < 2; ++i)
      layers.emplace_back(kWidth, 2,
                          F::TransformerOptions{.inner = 16,
                                                .dropout = 0,
                                                .pre_norm = form.pre_norm,
                                                .groups = form.groups,
                                                .rotary = form.rotary});
    // The numbers of the script that gave PyTorch's tokens.
    int k = 0;
    visit_parameters([&](const std::string& path, Parameter& p) {
      const Array i = arange(p.size(), Dtype::kFloat64);
      const Array waves = sin(i * i * 0.46 + double(k++));
      p.copy_from(
          (path.ends_with("gamma") ? waves + 1 : waves).reshape(p.shape()).astype(p.dtype()));
    });
  }
  F::KeyValueCache make_cache(int64_t batch) const {
    return F::KeyValueCache({.layers = 2,
                             .batch = batch,
                             .groups = form_.groups,
                             .capacity = kMost,
                             .depth = kWidth / 2,
                             .device = tokens.W.device()});
  }

  // Scores of (batch, n) words, (batch, n, words).
  Variable operator()(const Array& ids) const {
    Variable h = begun(ids, arange(ids.shape(1), {Dtype::kInt32, ids.device()}));
    for (const auto& layer : layers) h = layer(h, {.causal = true});
    return head(norm(h));
  }
  Variable operator()(const Array& ids, F::KeyValueCache& cache) const {
    cache.extend(ids.shape(1));
    Variable h = begun(ids, cache.positions());
    for (size_t i = 0; i < layers.size(); ++i) h = layers[i](h, cache.layer(int64_t(i)));
    return head(norm(h));
  }

 private:
  Variable begun(const Array& ids, const Array& positions) const {
    return form_.rotary ? tokens(ids) : tokens(ids) + places(positions);
  }
  Form form_;
};

int64_t likeliest(const Variable& scores, int64_t row, int64_t position) {
  return argmax(scores.data()(row, position)).item<int64_t>();
}

// `count` words that follow, each computed from all before it.
Tokens greedy(const SmallGpt& model, Tokens text, int64_t count) {
  const size_t given = text.size();
  for (int64_t i = 0; i < count; ++i) {
    const Array ids = array(text, model.tokens.W.device()).reshape({1, -1});
    text.push_back(likeliest(model(ids), 0, ids.shape(1) - 1));
  }
  return Tokens(text.begin() + std::ptrdiff_t(given), text.end());
}

// The same for each row of a batch, from prompts that follow what is in the cache.
Texts greedy(const SmallGpt& model, F::KeyValueCache& cache, const Texts& prompts, int64_t count) {
  const Device device = model.tokens.W.device();
  size_t longest = 0;
  for (const Tokens& prompt : prompts) longest = std::max(longest, prompt.size());
  Tokens padded, lengths = cache.lengths();
  for (size_t b = 0; b < prompts.size(); ++b) {
    padded.insert(padded.end(), prompts[b].begin(), prompts[b].end());
    padded.resize((b + 1) * longest, 0);
    lengths[b] += int64_t(prompts[b].size());
  }
  Variable scores =
      model(array(padded, device).reshape({int64_t(prompts.size()), int64_t(longest)}), cache);
  cache.truncate(lengths);
  Texts results(prompts.size());
  for (int64_t i = 0; i < count; ++i) {
    Tokens words;
    for (size_t b = 0; b < prompts.size(); ++b) {
      words.push_back(likeliest(scores, int64_t(b), i == 0 ? int64_t(prompts[b].size()) - 1 : 0));
      results[b].push_back(words.back());
    }
    if (i + 1 < count) scores = model(array(words, device).reshape({-1, 1}), cache);
  }
  return results;
}

const Texts kPrompts = {{3}, {1, 4, 1, 5, 9}, {2, 7, 1, 8, 2, 8, 1, 8, 4}};

// Alone up to the capacity, then side by side; then rows of which a part is kept.
TEST_P(Generation, TokensAreThoseWithoutACache) {
  const NoBackprop scope;
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.name);
    SmallGpt model(form);
    model.to(device());
    F::KeyValueCache one = model.make_cache(1);
    const Tokens whole{5, 3, 8, 0, 9, 7, 9, 3, 2, 3, 8, 4};
    for (const Tokens& prompt : {kPrompts[0], kPrompts[1], whole}) {
      one.clear();
      const int64_t count = SmallGpt::kMost - int64_t(prompt.size()) + 1;
      EXPECT_EQ(greedy(model, one, {prompt}, count)[0], greedy(model, prompt, count));
      EXPECT_EQ(one.lengths(), Tokens{SmallGpt::kMost});
    }
    F::KeyValueCache three = model.make_cache(3);
    const Texts tokens = greedy(model, three, kPrompts, 4);
    for (size_t b = 0; b < 3; ++b) EXPECT_EQ(tokens[b], greedy(model, kPrompts[b], 4)) << b;
    three.truncate({0, 3, 2});
    const Texts more{{6, 0, 6, 5}, {10}, {9, 9, 1, 0, 4, 2}};
    const Texts rest = greedy(model, three, more, 4);
    for (size_t b = 0; b < 3; ++b) {
      Tokens text(kPrompts[b].begin(), kPrompts[b].begin() + Tokens{0, 3, 2}[b]);
      text.insert(text.end(), more[b].begin(), more[b].end());
      EXPECT_EQ(rest[b], greedy(model, text, 4)) << b;
    }
  }
}

// Of two nn.TransformerEncoderLayer(8, 2, 16, norm_first=True) between embeddings and a
// normalization with a product, parameter k with sin(0.46 i^2 + k) as number i (weights of
// normalizations 1 more), torch 2.15 in float64. The likeliest word leads by 0.05 at least.
TEST_P(Generation, TokensArePyTorchs) {
  const NoBackprop scope;
  SmallGpt model(kForms[0]);
  model.to(device());
  const Texts expected = {
      {9, 6, 6, 6, 6, 8, 9, 8, 6, 6, 8, 8}, {2, 8, 2, 8, 2, 6, 8, 2}, {6, 6, 8, 2}};
  F::KeyValueCache cache = model.make_cache(3);
  const Texts tokens = greedy(model, cache, kPrompts, 4);
  for (size_t b = 0; b < 3; ++b) {
    EXPECT_EQ(tokens[b], Tokens(expected[b].begin(), expected[b].begin() + 4)) << b;
    F::KeyValueCache one = model.make_cache(1);
    EXPECT_EQ(greedy(model, one, {kPrompts[b]}, int64_t(expected[b].size()))[0], expected[b]) << b;
  }
}

CATENA_ON_DEVICES(Generation);

// The device chooses each word, wherever the rows have come to when the graph is launched.
TEST(GenerationInGraphs, GoOnFromPresentLengths) {
  CATENA_NEEDS_GPU();
  const NoBackprop scope;
  const Device gpu = cuda_device(0);
  const DeviceScope device(gpu);
  SmallGpt model(kForms[1]);
  model.to(gpu);
  F::KeyValueCache cache = model.make_cache(2);
  const Array ids = zeros({2, 1}, {Dtype::kInt64, gpu});
  const auto step = [&] { ids.assign(argmax(model(ids, cache).data(), 2)); };
  const auto prompt = [&](const Texts& prompts) {
    const Texts first = greedy(model, cache, prompts, 1);
    for (size_t b = 0; b < 2; ++b) ids(int64_t(b)).fill(first[b][0]);
    return first;
  };
  prompt({{3}, {4}});
  step();
  cuda::Graph graph = cuda::Graph::capture(gpu, [&] { step(), step(); });
  EXPECT_EQ(cache.lengths(), (Tokens{2, 2})) << "recorded, not run";
  for (const Texts& prompts : {Texts{kPrompts[0], kPrompts[1]}, Texts{{7, 7, 7, 7, 7, 7}, {0}}}) {
    cache.clear();
    Texts tokens = prompt(prompts);
    for (int launch = 0; launch < 3; ++launch) {
      graph.launch();
      for (size_t b = 0; b < 2; ++b) tokens[b].push_back(ids(int64_t(b), 0).item<int64_t>());
    }
    for (size_t b = 0; b < 2; ++b) {
      EXPECT_EQ(cache.lengths()[b], int64_t(prompts[b].size()) + 6);
      const Tokens all = greedy(model, prompts[b], 7);
      EXPECT_EQ(tokens[b], (Tokens{all[0], all[2], all[4], all[6]})) << b;
    }
  }
  EXPECT_EQ(cache.lengths(), (Tokens{12, 7}));
  cache.truncate({11, 7});
  expect_contains(error_of<ValueError>([&] { graph.launch(); }),
                  {"row 0 has 11 positions of a capacity of 12, asked for 2 more"});
  EXPECT_EQ(cache.lengths(), (Tokens{11, 7}));
  cache.truncate({10, 7});
  graph.launch();
  EXPECT_EQ(cache.lengths(), (Tokens{12, 9}));
  cache.clear();
  cache.extend(1);
  expect_contains(error_of<Error>([&] {
                    cuda::Graph::capture(
                        gpu, [&] { model.layers[0](model.tokens(ids), cache.layer(0)); });
                  }),
                  {"captured together"});
  for (const char* what : {"truncate()", "making a cache"})
    expect_contains(error_of<Error>([&] {
                      cuda::Graph::capture(gpu, [&] {
                        if (what[0] == 't') return cache.clear();
                        model.make_cache(1);
                      });
                    }),
                    {what, "cannot be captured"});
}

}  // namespace
}  // namespace catena
