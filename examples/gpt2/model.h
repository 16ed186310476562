// The network of GPT-2 (A. Radford et al., Language models are unsupervised multitask learners,
// 2019).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catena/functions/attention/key_value_cache.h"
#include "catena/functions/attention/transformer.h"
#include "catena/functions/connection/embed_id.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/noise/dropout.h"
#include "catena/functions/normalization/layer_normalization.h"
#include "catena/functions/recompute_plan.h"

namespace gpt2 {

namespace F = catena::functions;
using catena::Array;
using catena::Variable;

// Sizes of the network. A head always has 64 numbers.
struct Sizes {
  int64_t vocabulary = 256, positions = 256, layers = 4, width = 256;
  double dropout = 0;  // in train state
  catena::Dtype dtype = catena::dtype::float32;
  int64_t heads() const { return width / 64; }
};
// Layers and width of a network with a name; ValueError that lists the names.
Sizes sizes_by_name(const std::string& name);
std::vector<std::string> names_of_sizes();
// Those of a model that was saved, by the shapes in its file. IoError where the file is not one.
Sizes sizes_in(const std::string& file);

// Vectors of tokens and positions, layers of causal attention that normalize what goes in, and
// scores of the next token by the vectors of tokens once more.
class Gpt2 : public catena::FunctionSet {
 public:
  F::EmbedID tokens, places;
  std::vector<F::TransformerEncoderLayer> layers;
  F::LayerNormalization norm;
  CATENA_FUNCTIONS(tokens, places, layers, norm)

  // From normal numbers of deviation 0.02, biases from 0. What is added to the stream of the layers
  // starts smaller, by the root of the number of such sums.
  explicit Gpt2(const Sizes& sizes);

  // ids: (batch, n), integers, with n of at most positions(). What is known behind each of them,
  // (batch, n, width). ValueError for more.
  Variable states(const Array& ids) const;
  // The same for tokens that follow those in the cache, which gets them; for generation, under
  // NoBackprop. ValueError where the cache has no room for n more.
  Variable states(const Array& ids, F::KeyValueCache& cache) const;
  // An empty one, of the dtype and on the device of the parameters.
  F::KeyValueCache make_cache(int64_t batch) const;
  // From now on layers keep for backward what the options say, and compute the rest again.
  void recompute(const F::RecomputeOptions& options) { plan_.emplace(options); }
  // Scores of the next token behind each, (batch, n, vocabulary).
  Variable operator()(const Array& ids) const { return scores(states(ids)); }
  // Those of states of (..., width): (..., vocabulary). A loss needs none of them in memory
  // (linear_cross_entropy).
  Variable scores(const Variable& states) const { return F::linear(states, tokens.W); }

  int64_t positions() const { return places.in_size(); }
  int64_t vocabulary() const { return tokens.in_size(); }

 private:
  double dropout_;
  mutable std::optional<F::RecomputePlan> plan_;  // learns in the first step
};

}  // namespace gpt2
